"""Entries: metadata of registered objects for configs and plans, without loading the objects.

The options of an entry are a pydantic model in a light module. `checked` validates options and fills in the defaults, so that
equal options have equal values however they are written. The object itself is loaded by the tasks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, SupportsInt, TypeVar, cast

from swsdist.core.codes import error_of
from swsdist.core.codes import registry as codes
from swsdist.registry.calibration_entries import Score
from swsdist.registry.registry import Entry, Registry

if TYPE_CHECKING:
    from pydantic import BaseModel


@dataclass(frozen=True)
class Configured(Entry):
    """An entry with options.

    Attributes:
        options: `module:model` of its options, a pydantic model that forbids others; empty where it takes none.
    """

    options: str = ""

    def model(self) -> type[BaseModel] | None:
        """The model of its options; None where it takes none.

        Raises:
            ConfigError: it cannot be imported.
        """
        return Entry(self.options, self.version).load() if self.options else None

    def takes(self) -> tuple[str, ...]:
        """Names of its options."""
        model = self.model()
        return tuple(model.model_fields) if model else ()


@dataclass(frozen=True)
class ChainEntry(Configured):
    """A chain.

    Attributes:
        joined: its lists are those of several systems, joined; it searches nothing itself.
        searches: it has the steps of the chain search, so that its lists can be fused, and scored at many points of a sweep.
        of_points: it scores points of a sweep, whose command writes its config.
    """

    joined: bool = False
    searches: bool = False
    of_points: bool = False


def is_chain(registry: Registry[Entry], chain: object, fact: Literal["joined", "searches", "of_points"]) -> bool:
    """Whether a chain of that name is known, and this is true of it."""
    if not isinstance(chain, str) or chain not in registry:
        return False
    entry = registry[chain]
    return isinstance(entry, ChainEntry) and bool(getattr(entry, fact))


@dataclass(frozen=True)
class MethodEntry(Configured):
    """A method of search.

    The target makes it: ``target(search: swsdist.config.search.Search) -> Method`` (`swsdist.methods.method`).

    Attributes:
        queries: `spoken` or `text`: those it takes; others are rejected.
        reads: kind of the store that it searches.
        score: what kind of number ``-cost / scale`` of its candidates is.
        merge: what overlapping candidates of a query make together, unless `reduce.merge` says otherwise.
    """

    queries: Literal["spoken", "text"] = "spoken"
    reads: str = "frames"
    score: Score = "cost"
    merge: Literal["best", "sum"] = "best"


@dataclass(frozen=True)
class Quantity:
    """A number that a measure gives, as tables, pages, sweeps and comparisons show it.

    Attributes:
        key: its name in files, unique among all measures.
        label: its name for people; empty: the key.
        best: which is best; empty where neither is, as of a threshold.
        decimals: that are shown.
        unit: what it is in; empty for a plain number.
        of: the key of the value that this is the threshold of, or a rate at it: it is shown beside that, and is called as it
            is with `_threshold`, `_pmiss` or `_pfa`.
        by_query: the column of the table of terms (`swsdist.score.PER_TERM`) that it is the mean of, decided at its threshold
            where it has one; empty: of none.
        missed: the value there of a query that a list lacks.
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
        """Its name for people."""
        return self.label or self.key.replace("_", " ")

    @property
    def sign(self) -> int:
        """-1 where less is better, else 1."""
        return -1 if self.best == "lowest" else 1


@dataclass(frozen=True)
class MeasureEntry(Entry):
    """A measure of an aligned list.

    Attributes:
        gives: its numbers, in the order in which they are shown.
        takes: what it is about: trials of any kind, or pairs of a query and a document.
        basic: whether it is shown where not all measures are asked for.
    """

    gives: tuple[Quantity, ...] = ()
    takes: Literal["trials", "pairs"] = "trials"
    basic: bool = False


@dataclass(frozen=True)
class DistanceEntry(Configured):
    """A local distance.

    The target makes it: ``target(name, unit, dimension, **options) -> Distance`` (`swsdist.kernels.distances.interface`).

    Attributes:
        unit: the integer that stands for a distance of 1; a power of two.
        posteriors: it is between probabilities, which no normalisation leaves as they are.
    """

    unit: int = 2048
    posteriors: bool = False


@dataclass(frozen=True)
class RecurrenceEntry(Configured):
    """A recurrence of warping paths.

    The target makes it: ``target(**options) -> Recurrence`` (`swsdist.kernels.recurrences.interface`).

    Attributes:
        longest_query: most frames of a query that its state holds.
        shortened_by: an option whose value is taken off that; empty for none.
        first_pass: whether windows of a first pass can be searched with it.
    """

    longest_query: int = 1 << 20
    shortened_by: str = ""
    first_pass: bool = False

    def longest(self, options: Mapping[str, object]) -> int:
        """Most frames of a query with these options, complete ones; 0 where they leave none."""
        less = options[self.shortened_by] if self.shortened_by else 0
        return max(0, self.longest_query - int(cast("SupportsInt", less)))


@dataclass(frozen=True)
class BackendEntry(Entry):
    """A backend of the exact search.

    The target makes it of the work: ``target(work) -> Backend`` (`swsdist.methods.dtw.backends.interface`). All find the same
    bytes, so the version enters no fingerprint.

    Attributes:
        gpu: whether it searches on a GPU; None: where the machine has one.
    """

    version: int = 1
    gpu: bool | None = False


@dataclass(frozen=True)
class FirstPassEntry(Configured):
    """A first pass that proposes where to search.

    The target makes it: ``target(**options) -> FirstPass`` (`swsdist.methods.first_pass.interface`). Of the config it is given
    `factors` (or the only one as `factor`) and `visit`, where its model has these.

    Attributes:
        landmarks: what it proposes in one shard depends on landmarks of the whole collection.
        first: the stage that makes what it reads of a store, which a chain puts in front of its search; empty: none.
    """

    landmarks: bool = False
    first: str = ""


@dataclass(frozen=True)
class ExportEntry(Entry):
    """A form that detections are written in.

    The target writes it: ``target(material, folder)`` (`swsdist.exports.interface`).

    Attributes:
        best_hits: it reads the best hits, with the paths of their recordings.
    """

    best_hits: bool = False


@dataclass(frozen=True)
class ReaderEntry(Entry):
    """A format of systems' lists.

    The target reads it: ``target(path, asked: swsdist.evaluation.lists.ReadOptions) -> System``.

    Attributes:
        detector: `module:function` that returns whether a file has this format, by its first bytes, unpacked (at most
            `swsdist.evaluation.lists.HEAD`); empty for the fallback.
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
    """A form that a list is written in.

    The target writes it: ``target(detections, out: Path, about: swsdist.evaluation.writing.ListContext)``.

    Attributes:
        ending: of files that are written so where nothing else is said, with its dot; empty for none.
    """

    ending: str = ""


C = TypeVar("C", bound=Configured)
E = TypeVar("E", bound=Entry)


def checked(
    registry: Registry[C], name: str, given: Mapping[str, object], where: str | None = None
) -> dict[str, object]:
    """Validated, complete options of an entry, as plain Python values.

    Args:
        registry: of the entry.
        name: of the entry.
        given: some of its options.
        where: place for errors.

    Raises:
        ConfigError: the name or an option is unknown, or a value is invalid.
    """
    model = registry[name].model()
    takes = tuple(model.model_fields) if model else ()
    for option in given:
        if option not in takes:
            known = ", ".join(takes) or "none"
            raise codes.UNKNOWN_ENTRY_OPTION(where=where, kind=registry.kind, name=name, option=option, options=known)
    if model is None:
        return {}
    from pydantic import ValidationError

    try:
        # By way of JSON, for a strict tuple takes no list.
        return model.model_validate_json(json.dumps(dict(given)), strict=True).model_dump()
    except ValidationError as error:
        errors = error.errors()
        option = ".".join(map(str, errors[0]["loc"]))
        if len(errors) == 1 and (own := error_of(errors[0], where, f"{option}: " if option else "")):
            raise own from None
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
