"""What a config must know of the steps of calibration, without the libraries that do them.

A step turns the scores of detections into others: q-norm, a logistic, a threshold for each term. Its entry in
`swsdist.registry.registries.CALIBRATION` says what kind of score it takes and gives, which statistics of candidates it
wants, whether it is fitted on labelled detections, and what a decision about one query looks at when the step is in its way.
The step itself is a class, see `swsdist.calibrate.steps.interface`.

Kinds of score: `cost` is minus a distance, on a scale that each query has for itself; `posterior` is the probability that the
detection is right, 0 to 1; `llr` is a log-likelihood ratio; `any` says no more than that higher is more likely.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from swsdist.registry.registry import Entry

#: Kinds of score.
Score = Literal["any", "cost", "posterior", "llr"]

#: What a decision about a query may look at, besides its own detection.
Dependency = Literal["own query", "other queries", "references"]

#: Columns that lists of detections and aligned lists have in common: what a step may want besides the scores. Lists that were
#: joined of several systems' have `parts` too (`swsdist.core.types.JOINED`); lists of a search that no step came before have
#: `speaker`, a number for who speaks in the document.
COLUMNS = ("doc_id", "channel", "start", "end", "parts", "speaker")


@dataclass(frozen=True)
class StepEntry(Entry):
    """What is known of a step without loading it.

    Attributes:
        takes: the kind of score it can do with; `any` takes all.
        gives: the kind of score it makes.
        statistics: names in `swsdist.registry.registries.STATISTICS`, of what it wants to know of all candidates of a query.
            They describe the scores that the search gave, so a step gets them only where no other step came before it.
        first: it cannot do without its statistics, and so must come first.
        fits: it is fitted on labelled detections.
        own_threshold: it knows the threshold for the scores it makes.
        operating_point: it is told the number of trials and the weight of false alarms.
        depends_on: see `Dependency`; of a fitted step, what its application looks at.
        columns: that it wants besides query and score; of `COLUMNS`.
        says: what it does to scores, in a few words.
        cohort: it wants to know how queries that only serve to judge others match each place; where the corpus has none, the
            run's other queries do, and decisions look at these. An option `window` (s) says which stretches of documents are
            places; without it whole documents are.
    """

    takes: Score = "any"
    gives: Score = "any"
    statistics: tuple[str, ...] = ()
    first: bool = False
    fits: bool = False
    own_threshold: bool = False
    operating_point: bool = False
    depends_on: tuple[Dependency, ...] = ("own query",)
    columns: tuple[str, ...] = ()
    cohort: bool = False
    says: str = ""


def misfit(names: Sequence[str], entries: Mapping[str, StepEntry], score: Score, *, joined: bool = False) -> str | None:
    """What is wrong with the order of some steps; None if they fit together.

    Args:
        names: of the steps.
        entries: of each of these.
        score: the kind that the search gives.
        joined: whether the lists are those of several systems, joined: then there are no candidates to take statistics of.
    """
    kind, before = score, f"the search, whose scores are of the kind {score}"
    for place, name in enumerate(names):
        entry = entries[name]
        if "parts" in entry.columns and (not joined or place):
            return f"{name} is of the scores of several systems: " + (
                f"it must come first, not after {names[place - 1]}" if joined else "it is for the chain fuse"
            )
        if joined and entry.first:
            return f"{name} is of all candidates of a search, and these are lists of several: leave it out"
        if name in names[:place]:
            return f"{name} stands in it twice"
        if entry.first and place:
            return f"{name} is of the scores that the search gave: it must come first, not after {names[place - 1]}"
        if entry.takes not in ("any", kind):
            remedy = {"posterior": "; put logistic before it", "llr": "; put llr before it"}.get(entry.takes, "")
            return f"{name} takes scores of the kind {entry.takes}, but comes after {before}{remedy}"
        if unknown := sorted(set(entry.columns) - set(COLUMNS)):
            return f"{name} wants the column {unknown[0]}; there are {', '.join(COLUMNS)}"
        kind, before = entry.gives, f"{name}, which gives the kind {entry.gives}"
    return None


def statistics_wanted(names: Sequence[str], entries: Mapping[str, StepEntry]) -> tuple[str, ...]:
    """Names of the statistics of candidates that some steps want: those of the first one."""
    return entries[names[0]].statistics if names else ()


def unfitted(names: Sequence[str], entries: Mapping[str, StepEntry]) -> int:
    """How many steps stand before the first that is fitted: those can be done without aligned lists."""
    return next((k for k, name in enumerate(names) if entries[name].fits), len(names))


def decision_dependencies(
    names: Sequence[str],
    entries: Mapping[str, StepEntry],
    *,
    fit: str,
    threshold: Literal["own", "fitted"],
    cohort: bool = False,
) -> tuple[Dependency, ...]:
    """What the decision about a query looks at; evaluations that demand independent decisions allow `own query` only.

    Args:
        names: of the steps.
        entries: of each of these.
        fit: `none`, `crossfit`, `oracle`, or the name of a file, which was fitted elsewhere: on nothing of this run.
        threshold: whether the last step's own decides, where it has one.
        cohort: whether the corpus has one.
    """
    seen: set[Dependency] = {"own query"}
    fitted_here = fit in ("crossfit", "oracle")
    for name in names:
        entry = entries[name]
        seen |= set(entry.depends_on) if fitted_here or not entry.fits else {"own query"}
        if entry.cohort and not cohort:
            seen.add("other queries")
    own_threshold_applies = threshold == "own" and bool(names) and entries[names[-1]].own_threshold
    if fitted_here and not own_threshold_applies:
        seen |= {"other queries", "references"}
    order: Iterable[Dependency] = ("own query", "other queries", "references")
    return tuple(item for item in order if item in seen)
