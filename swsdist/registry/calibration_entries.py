"""Entries of calibration steps: metadata for configs, without the libraries of the steps.

A step maps scores of detections to other scores: q-norm, a logistic regression, term-specific thresholds. Its entry in
`swsdist.registry.registries.CALIBRATION` states the kinds of score that it takes and gives, the candidate statistics
that it uses, whether it is fitted to labelled detections, and the dependencies of its decisions. The class of a step is
in `swsdist.calibrate.steps.interface`.

Kinds of score: `cost` is minus a distance, on a scale that differs between queries; `posterior` is the probability that
the detection is right, 0 to 1; `llr` is a log-likelihood ratio; `any` means only that higher is more likely.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from swsdist.registry.registry import Entry

#: Kinds of score.
Score = Literal["any", "cost", "posterior", "llr"]

#: Dependencies of a decision about a query, besides its detection.
Dependency = Literal["own query", "other queries", "references"]

#: Columns common to lists of detections and aligned lists, which a step may read besides the scores. Joined lists of
#: several systems also have `parts` (`swsdist.core.types.JOINED`); lists of a search before the first step have
#: `speaker`, the number of the document's speaker.
COLUMNS = ("doc_id", "channel", "start", "end", "parts", "speaker")


@dataclass(frozen=True)
class StepEntry(Entry):
    """Metadata of a step.

    Attributes:
        takes: the kind of score it accepts; `any` accepts all.
        gives: the kind of score it returns.
        statistics: names in `swsdist.registry.registries.STATISTICS`, of statistics over all candidates of a query.
            They describe the scores of the search, so only the first step receives them.
        first: it requires its statistics, and must therefore be the first step.
        fits: it is fitted on labelled detections.
        own_threshold: it determines the threshold of its scores.
        operating_point: it receives the number of trials and the weight of false alarms.
        depends_on: see `Dependency`; for a fitted step, the dependencies of its application.
        columns: columns it reads besides query and score; of `COLUMNS`.
        says: its effect on scores, in a few words.
        cohort: it uses the matches of cohort queries, which only serve to judge others, at each place; if the corpus
            has none, the run's other queries serve, and decisions depend on these. The option `window` (s) sets the
            length of the places in documents; without it, a place is a complete document.
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
    """The problem of a sequence of steps; None if they fit together.

    Args:
        names: of the steps.
        entries: of each of these.
        score: the kind of the search's scores.
        joined: whether the lists are joined from several systems, and thus have no candidate statistics.
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
            return f"{name} occurs twice"
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
    """Names of the candidate statistics of a sequence of steps: those of the first step."""
    return entries[names[0]].statistics if names else ()


def unfitted(names: Sequence[str], entries: Mapping[str, StepEntry]) -> int:
    """Number of steps before the first fitted one, which need no aligned lists."""
    return next((k for k, name in enumerate(names) if entries[name].fits), len(names))


def decision_dependencies(
    names: Sequence[str],
    entries: Mapping[str, StepEntry],
    *,
    fit: str,
    threshold: Literal["own", "fitted"],
    cohort: bool = False,
) -> tuple[Dependency, ...]:
    """Dependencies of decisions about a query; evaluations with independent decisions allow `own query` only.

    Args:
        names: of the steps.
        entries: of each of these.
        fit: `none`, `crossfit`, `oracle`, or the name of a file fitted elsewhere, which adds no dependency on this run.
        threshold: whether the last step's own threshold decides, if it has one.
        cohort: whether the corpus has a cohort.
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
