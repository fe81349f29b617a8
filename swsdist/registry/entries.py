"""Entries: metadata of registered objects for configs and plans, without loading the objects.

The options of an entry are a pydantic model in a light module. `checked` validates them and fills in defaults, so equal
options have equal values however they are written. Tasks load the object itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, SupportsInt, TypeVar, cast

from swsdist.core.codes import error_of
from swsdist.core.codes import config as codes
from swsdist.registry.calibration_entries import Score
from swsdist.registry.registry import Entry, Registry

if TYPE_CHECKING:
    from pydantic import BaseModel


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
        by_query: the column of the table of terms (`swsdist.score.PER_TERM`) whose mean it is, decided at its threshold
            if it has one; empty if it is not such a mean.
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
        takes: its domain: trials of any kind, pairs of a query and a document, or QUESST's trials, where the protocol is
            QUESST's.
        basic: whether it is shown by default, when not all measures are requested.
    """

    gives: tuple[Quantity, ...] = ()
    takes: Literal["trials", "pairs", "quesst"] = "trials"
    basic: bool = False


@dataclass(frozen=True)
class DiscoveryMeasureEntry(Entry):
    """A measure of term discovery: ``target() -> Measure`` (`swsdist.discovery.measures.evaluating`).

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
    from pydantic import ValidationError

    try:
        # By way of JSON, for a strict tuple takes no list.
        return model.model_validate_json(json.dumps(dict(options)), strict=True).model_dump()
    except ValidationError as error:
        errors = error.errors()
        option = ".".join(map(str, errors[0]["loc"]))
        if len(errors) == 1 and (part := error_of(errors[0], where, f"{option}: " if option else "")):
            raise part from None
        problems = "; ".join(_problem(error["loc"], error["msg"], error.get("ctx", {})) for error in errors)
        raise codes.INVALID_ENTRY_OPTION(where=where, name=name, problems=problems) from None


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
