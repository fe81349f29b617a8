"""Entries: metadata of registered objects for configs and plans, without loading the objects.

The options of an entry are a pydantic model in a light module. `checked` validates them and fills in defaults, so equal
options have equal values however they are written. Tasks load the object itself.

A step of calibration maps scores of detections to other scores: q-norm, a logistic regression, term-specific
thresholds. Its entry in `swsdist.registry.registries.CALIBRATION` states the kinds of score that it takes and gives,
the candidate statistics that it uses, whether it is fitted to labelled detections, and the dependencies of its
decisions. The class of a step is in `swsdist.calibrate.steps.interface`.

Kinds of score: `cost` is minus a distance, on a scale that differs between queries; `posterior` is the probability that
the detection is right, 0 to 1; `llr` is a log-likelihood ratio; `any` means only that higher is more likely.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, SupportsInt, TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from swsdist.core.codes import error_of, families
from swsdist.registry.registry import Entry, Registry

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


@dataclass(frozen=True)
class Configured(Entry):
    """An entry with options.

    Attributes:
        options: `module:model`, a pydantic model that forbids unknown options; empty if there are no options.
    """

    options: str = ""

    def model(self) -> type[BaseModel] | None:
        """The pydantic model of the options; None if there are none.

        Raises:
            ConfigError: it cannot be imported.
        """
        return Entry(self.options, self.version).load() if self.options else None

    def takes(self) -> tuple[str, ...]:
        """Names of the options."""
        model = self.model()
        return tuple(model.model_fields) if model else ()


@dataclass(frozen=True)
class ChainEntry(Configured):
    """A chain.

    Attributes:
        joined: it joins the lists of several systems, and does not search.
        searches: it has the steps of the chain search, so its lists can be fused, and scored at many points of a sweep.
        of_points: it scores the points of a sweep; the command for sweeps writes its config.
    """

    joined: bool = False
    searches: bool = False
    of_points: bool = False


def is_chain(registry: Registry[Entry], chain: object, fact: Literal["joined", "searches", "of_points"]) -> bool:
    """Whether a chain of this name is registered and has the property."""
    if not isinstance(chain, str) or chain not in registry:
        return False
    entry = registry[chain]
    return isinstance(entry, ChainEntry) and bool(getattr(entry, fact))


@dataclass(frozen=True)
class MethodEntry(Configured):
    """A search method.

    The target creates it: ``target(search: swsdist.config.search.Search) -> Method`` (`swsdist.methods.method`).

    Attributes:
        queries: the kind it accepts, `spoken`, `text`, or `lattices` of queries; others are rejected.
        reads: kind of the store that it searches.
        score: the kind of score that ``-cost / scale`` of its candidates is.
        merge: how overlapping candidates of a query are merged, unless `reduce.merge` overrides it.
    """

    queries: Literal["spoken", "text", "lattices"] = "spoken"
    reads: str = "frames"
    score: Score = "cost"
    merge: Literal["best", "sum"] = "best"


@dataclass(frozen=True)
class LatticeFormatEntry(Entry):
    """A format of lattices or transcripts: ``target(origin: swsdist.lattices.lattice.Origin)`` yields its lattices.

    Attributes:
        detect: `module:function` of a file's name and first 4096 bytes, unpacked: whether it has this format.
        says: what it is, in a few words.
    """

    detect: str = ""
    says: str = ""


@dataclass(frozen=True)
class RecogniserEntry(Configured):
    """A recogniser of recordings.

    The target creates it: ``target(**options) -> Recogniser`` (`swsdist.lattices.recognition`).

    Attributes:
        holds: labels of its lattices: words, or phones, which written words are replaced by.
        libraries: modules that it imports, of an extra or of other packages.
        model_files: patterns of names of files, each of which a folder of a model of it has, by which it is known; none: it is
            known by no model.
    """

    holds: Literal["words", "phones"] = "words"
    libraries: tuple[str, ...] = ()
    model_files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Quantity:
    """A value of a measure, with its presentation in tables, pages, sweeps and comparisons.

    Attributes:
        key: its name in files, unique among all measures.
        label: its name for people; empty: the key.
        best: the best direction; empty if there is none, as for a threshold.
        decimals: number of decimals shown.
        unit: its unit; empty for a plain number.
        of: the key of the value that this is the threshold of, or a rate at that threshold. It is shown beside that
            value, and its key is that key with `_threshold`, `_pmiss` or `_pfa`.
        by_query: the column of the table of terms (`score.measures.twv.PER_TERM`) whose mean it is, decided at its threshold if
            it has one; empty if it is not such a mean.
        missed: the value in that column of a query that a list lacks.
    """

    key: str
    label: str = ""
    best: Literal["highest", "lowest", ""] = "highest"
    decimals: int = 4
    unit: str = ""
    of: str = ""
    by_query: str = ""
    missed: float = 0.0

    @property
    def name(self) -> str:
        """Name for people."""
        return self.label or self.key.replace("_", " ")

    @property
    def sign(self) -> int:
        """-1 if less is better, else 1."""
        return -1 if self.best == "lowest" else 1


@dataclass(frozen=True)
class MeasureEntry(Entry):
    """A measure of an aligned list.

    Attributes:
        gives: its values, in display order.
        takes: its domain: `trials` of any kind, `pairs` of a query and a document, or document trials by the conventions of
            this name (`swsdist.score.conventions`).
        basic: whether it is shown by default, when not all measures are requested.
    """

    gives: tuple[Quantity, ...] = ()
    takes: str = "trials"
    basic: bool = False


@dataclass(frozen=True)
class DiscoveryMeasureEntry(Entry):
    """A measure of term discovery: ``target() -> Measure`` (`swsdist.discovery.measures`).

    Attributes:
        gives: keys of its ratios, those that are averaged over folds.
        of: what it is defined for: classes, lists of pairs, a parse.
        pairs: whether it is of pairs, and so defined within and across talkers.
        words: whether it needs words.
    """

    gives: tuple[str, ...] = ("precision", "recall", "fscore")
    of: tuple[Literal["classes", "pairs", "parse"], ...] = ("classes",)
    pairs: bool = True
    words: bool = False


@dataclass(frozen=True)
class DiscoveryModeEntry(Entry):
    """Whose numbers a score of term discovery has, a description's or a program's.

    The target computes them: ``target(corpus: Corpus, fragments: Fragments, setup: EvaluationSetup) -> dict[str, object]``
    (`swsdist.discovery.units`). The result is nested plain dicts and lists: counts are int, ratios float, undefined is None.
    The corpus is as the files have it: a mode drops silences itself, and a document of the fragments may be without phones.

    Attributes:
        needs: what it does not work without, besides phones and classes.
        instants: whether a fragment may have no length.
        known: whether each document of the classes must have phones.
        partial: whether it scores lists of pairs, and a parse, too.
    """

    needs: tuple[Literal["words", "split", "gold_classes", "folds"], ...] = ()
    instants: bool = False
    known: bool = False
    partial: bool = False


@dataclass(frozen=True)
class DistanceEntry(Configured):
    """A local distance.

    The target creates it: ``target(name, unit, dimension, **options) -> Distance``
        (`swsdist.kernels.distances.interface`).

    Attributes:
        unit: the integer that represents a distance of 1; a power of two.
        posteriors: it compares probabilities, which normalisation would destroy.
    """

    unit: int = 2048
    posteriors: bool = False


@dataclass(frozen=True)
class RecurrenceEntry(Configured):
    """A recurrence of warping paths.

    The target creates it: ``target(**options) -> Recurrence`` (`swsdist.kernels.recurrences.interface`).

    Attributes:
        longest_query: the most frames of a query that its state can represent.
        shortened_by: an option whose value is subtracted from that; empty for none.
        first_pass: whether it can search the windows of a first pass.
    """

    longest_query: int = 1 << 20
    shortened_by: str = ""
    first_pass: bool = False

    def longest(self, options: Mapping[str, object]) -> int:
        """The most frames of a query with these complete options; 0 if they leave none."""
        less = options[self.shortened_by] if self.shortened_by else 0
        return max(0, self.longest_query - int(cast("SupportsInt", less)))


@dataclass(frozen=True)
class BackendEntry(Entry):
    """A backend of the exact search.

    The target creates it: ``target(work) -> Backend`` (`swsdist.methods.dtw.backends.interface`). All backends yield
        the same
    bytes, so the version is not part of any fingerprint.

    Attributes:
        gpu: whether it searches on a GPU; None: if the machine has one.
    """

    version: int = 1
    gpu: bool | None = False


@dataclass(frozen=True)
class ExecutorEntry(Entry):
    """An executor of tasks.

    The target creates it: ``target(context, journal, settings, note) -> Executor``
    (`swsdist.pipeline.execution.executor`). All executors yield the same bytes, so the version is not part of any fingerprint.

    Attributes:
        in_driver: tasks run one after the other in the driver's process.
        address_variable: environment variable with the address of a cluster, if the config has none; empty: tasks run on
            this machine.
        shards: `module:class` of `swsdist.searcher.searcher.Shards`, which spreads a warm searcher's shards over workers;
            empty: a searcher searches in its process.
        check: `module:function` for `swsdist doctor`: of the cluster's address (None: this machine), starts what the executor
            starts, ends it, and says what it has.
    """

    version: int = 1
    in_driver: bool = False
    address_variable: str = ""
    shards: str = ""
    check: str = ""


@dataclass(frozen=True)
class FirstPassEntry(Configured):
    """A first pass that proposes windows to search.

    The target creates it: ``target(**options) -> FirstPass`` (`swsdist.methods.first_pass.interface`). It receives
    `factor` of the config, if its model has it.

    Attributes:
        landmarks: its proposals in one shard depend on landmarks of the entire collection.
        first: the stage that prepares its input from a store, which a chain runs before the search; empty for none.
    """

    landmarks: bool = False
    first: str = ""


@dataclass(frozen=True)
class ExportEntry(Entry):
    """An export format of detections.

    The target writes it: ``target(material, folder)`` (`swsdist.exports.interface`).

    Attributes:
        best_hits: it reads the best hits, with the paths of their recordings.
        rows: the target is a `swsdist.exports.interface.Rows`, so that tasks write the parts of a list.
    """

    best_hits: bool = False
    rows: bool = False


@dataclass(frozen=True)
class ReaderEntry(Entry):
    """A format of systems' lists.

    The target reads it: ``target(path, asked: swsdist.evaluation.scoring_task.ReadOptions) -> System``.

    Attributes:
        detector: `module:function` that detects the format from the first bytes of a file, uncompressed (at most
            `swsdist.evaluation.scoring_task.HEAD`); empty for the fallback.
    """

    detector: str = ""

    def recognises(self, head: bytes) -> bool:
        """Whether a file with these first bytes has this format.

        Raises:
            ConfigError: the detector cannot be imported.
        """
        return bool(self.detector) and bool(Entry(self.detector, self.version).load()(head))


@dataclass(frozen=True)
class WriterEntry(Entry):
    """An output format of lists.

    The target writes it: ``target(detections, out: Path, about: swsdist.evaluation.writing.ListContext)``.

    Attributes:
        ending: the file extension, with its dot, that selects this format by default; empty for none.
    """

    ending: str = ""


C = TypeVar("C", bound=Configured)
E = TypeVar("E", bound=Entry)


def checked(
    registry: Registry[C], name: str, options: Mapping[str, object], where: str | None = None
) -> dict[str, object]:
    """Validate the options of an entry, and return them complete, as plain Python values.

    Args:
        registry: of the entry.
        name: of the entry.
        options: some of its options.
        where: place for errors.

    Raises:
        ConfigError: the name or an option is unknown, or a value is invalid.
    """
    model = registry[name].model()
    takes = tuple(model.model_fields) if model else ()
    for option in options:
        if option not in takes:
            raise registry.unknown_option(name, option, takes, where)
    if model is None:
        return {}
    try:
        # By way of JSON, for a strict tuple takes no list.
        return model.model_validate_json(json.dumps(dict(options)), strict=True).model_dump()
    except ValidationError as error:
        errors = error.errors()
        option = ".".join(map(str, errors[0]["loc"]))
        if len(errors) == 1 and (part := error_of(errors[0], where, f"{option}: " if option else "")):
            raise part from None
        problems = "; ".join(_problem(error["loc"], error["msg"], error.get("ctx", {})) for error in errors)
        raise families.INVALID_VALUE(
            "invalid options of {name}: {problems}", "correct the options", where=where, name=name, problems=problems
        ) from None


def _problem(place: tuple[str | int, ...], message: str, bounds: Mapping[str, object]) -> str:
    option = ".".join(map(str, place))
    for key, words in (
        ("ge", "{:g} or more"),
        ("le", "{:g} or less"),
        ("gt", "more than {:g}"),
        ("lt", "less than {:g}"),
    ):
        if key in bounds:
            return f"{option} must be {words.format(bounds[key])}"
    text = message.removeprefix("Value error, ")
    return f"{option}: {text}" if option else text


def names_where(registry: Registry[E], fact: str) -> Iterator[str]:
    """Names of the entries whose attribute `fact` is true."""
    return (name for name in registry if getattr(registry[name], fact))


class Options(BaseModel):
    """Frozen; unknown options, infinity and NaN are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
