"""Measures from tables that add: part tables, their merging, and the interface of measures.

A measure does not process detections. It names **part tables**: counts of some queries, given all rows of these
queries. A part table has a key, with rows ascending; further integer columns are summed for equal keys, so tables of
any partition of the queries merge to the same table, in any order. A measure's values come from the merged tables
alone::

    trials of a bucket --PartTable.make--> tables --Merged--> tables of all queries --Measure.values--> numbers

Most measures need two part tables. `events` has a row per (score, Ntrue): the detections with that score of queries
with that many references. `classes` has a row per Ntrue: the number of queries, and the sums of their events. Queries
without references are class 0; those with neither references nor detections are in no table, but counted by the
operating point (`queries`).

A run scores in three steps; a list is a single part::

    point = operating_point(rules, seconds=T, true=references, queries=queries, documents=documents)
    tables = measure_parts(trials_of_a_bucket, point)     # {name: table}, a file each; needs all rows of each query
    parts = merge(sources)                                # {name: Merged} of {name: a source a bucket}, streamed
    found = values(parts, point)                          # {key: number or None}

`point` must be the same for all buckets. The tables of a bucket may be written with any row groups, as rows ascend by
key. `merge` opens a source whenever a measure reads its table, so a merged table can be read more than once. A measure
keeps in memory a block of 65 536 rows of each source, one row per query, or (cross entropies only) one row per distinct
score. Rows with the same first key column are never in two blocks: a block has all rows of a score, or of a query.

A new measure is a class with the attributes of `Measure`, without arguments, and below it an entry with the label,
format and best direction of each of its values, which `swsdist.registry.registries` names; other packages use an entry
point of the group `swsdist.measures`. `swsdist.testing.conformance` checks a measure.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.arrays import Ints
from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.errors import ConfigError, TableError
from swsdist.core.text import suggestion
from swsdist.core.types import columns
from swsdist.corpora.places import Places
from swsdist.registry.registries import MEASURES, quantities
from swsdist.score.measures.curve import Block, Classes, Counts, Curve, by_score, curve_blocks, query_index
from swsdist.score.measures.protocol import OperatingPoint
from swsdist.score.trials import pairs_of

#: Opens one part's table and yields it in pieces, rows ascending by key.
Source = Callable[[], Iterator[pa.Table]]

#: Rows of a piece that are read at a time, of each source.
ROWS = 65_536


def of_table(table: pa.Table) -> Source:
    """A table in memory as a source."""

    def pieces() -> Iterator[pa.Table]:
        for first in range(0, table.num_rows, ROWS):
            yield table.slice(first, ROWS)

    return pieces


class Merged:
    """The merged tables of all parts.

    Args:
        schema, key, adds: of the part table.
        sources: one per part, in any order.
    """

    def __init__(self, schema: pa.Schema, key: Sequence[str], adds: bool, sources: Sequence[Source]) -> None:
        self.schema, self.key, self.adds, self._sources = schema, tuple(key), adds, tuple(sources)

    def blocks(self) -> Iterator[pa.Table]:
        """The merged rows, ascending by key, in blocks of bounded size; never an empty one."""
        streams = [_Stream(source, self.key[0]) for source in self._sources]
        while streams := [stream for stream in streams if stream.fill()]:
            # Rows below the last row of every unfinished source are complete.
            bounds = [stream.last for stream in streams if stream.more]
            bound = min(bounds) if bounds else None
            taken = [part for stream in streams if (part := stream.below(bound)).num_rows]
            if taken:
                yield self._combined(taken)
            elif bound is not None:
                for stream in streams:
                    if stream.more and stream.last == bound:
                        stream.extend()

    def table(self) -> pa.Table:
        """The merged table in memory, for tables with one row per query or class."""
        return pa.concat_tables([self.schema.empty_table(), *self.blocks()]).combine_chunks()

    def _combined(self, taken: list[pa.Table]) -> pa.Table:
        if len(taken) == 1:
            return taken[0]
        table = pa.concat_tables(taken)
        if self.adds:
            sums = [name for name in self.schema.names if name not in self.key]
            table = table.group_by(list(self.key), use_threads=False).aggregate([(name, "sum") for name in sums])
            table = table.select([*self.key, *(f"{name}_sum" for name in sums)]).rename_columns(self.schema.names)
        return table.sort_by([(name, "ascending") for name in self.key]).cast(self.schema)


class _Stream:
    """Rows of a source that were read but not yet merged."""

    def __init__(self, source: Source, column: str) -> None:
        self._pieces = source()
        self._column = column
        self._held: pa.Table | None = None
        self.more = True

    def fill(self) -> bool:
        """Whether rows are left; reads more if none are in memory."""
        while self.more and not (self._held is not None and self._held.num_rows):
            self.extend()
        return self._held is not None and self._held.num_rows > 0

    def extend(self) -> None:
        """Read another piece."""
        piece = next(self._pieces, None)
        if piece is None:
            self.more = False
        else:
            self._held = piece if self._held is None else pa.concat_tables([self._held, piece])

    @property
    def last(self) -> float | str:
        assert self._held is not None
        value: float | str = self._held[self._column][self._held.num_rows - 1].as_py()
        return value

    def below(self, bound: float | str | None) -> pa.Table:
        """Remove and return the rows whose first key is below the bound; all rows without a bound."""
        assert self._held is not None
        rows = self._held.num_rows
        if bound is not None:
            rows = int(pc.sum(pc.less(self._held[self._column], bound)).as_py() or 0)
        taken, self._held = self._held.slice(0, rows), self._held.slice(rows)
        return taken


def check_part(table: pa.Table, schema: pa.Schema, key: tuple[str, ...], name: str) -> pa.Table:
    """A part's table ordered by its key.

    Raises:
        TableError: the schema differs, or a key is duplicate.
    """
    if table.schema.names != schema.names:
        raise families.EXTENSION.of(TableError)(
            "the part has the columns {columns}",
            "its schema requires {expected}",
            where=f"part table {name}",
            columns=", ".join(table.schema.names),
            expected=", ".join(schema.names),
        )
    table = table.cast(schema).sort_by([(column, "ascending") for column in key]).combine_chunks()
    if table.num_rows > 1:
        same = np.logical_and.reduce([pc.equal(table[c][1:], table[c][:-1]).to_numpy() for c in key])
        if same.any():
            row = table.select(list(key)).slice(int(np.flatnonzero(same)[0]), 1).to_pylist()[0]
            raise families.DUPLICATE_NAME.of(TableError)(
                "duplicate key", "sum the rows of one key", where=f"part table {name}: {row}"
            )
    return table


Value = float | None


@dataclass(frozen=True)
class PartTable:
    """A part table: how it is computed, and how tables of parts are merged.

    Attributes:
        name: short, unique; also the file name of stored parts.
        schema: the key columns first. A float key has no NaN and no -0.0.
        key: the leading columns, unique in a merged table; rows ascend by them.
        make: computes it from the aligned list of some queries (TRIALS, all rows of each), at an operating point.
        adds: whether the other columns, all int64, are summed for equal keys; not needed by tables with rows per query,
            whose keys are never equal.
        by_document: `make` always receives document trials.
    """

    name: str
    schema: pa.Schema
    key: tuple[str, ...]
    make: Callable[[pa.Table, OperatingPoint], pa.Table]
    adds: bool = True
    by_document: bool = False

    def of(self, aligned: pa.Table, point: OperatingPoint, places: Places | None = None) -> pa.Table:
        """The table of some queries, checked against the schema and ordered by key.

        Args:
            aligned: schema TRIALS, all rows of each query.
            point: the operating point.
            places: the documents, if they are places in the recordings named by the list.

        Raises:
            TableError: a key is duplicate, or `make` returned another schema.
        """
        table = self.make(pairs_of(aligned, places) if self.by_document else aligned, point)
        return check_part(table, self.schema, self.key, self.name)

    def zero(self) -> pa.Table:
        """An empty table."""
        return self.schema.empty_table()


#: The merged tables of a list by the name of their part table.
Parts = Mapping[str, Merged]


class Measure(Protocol):
    """Interface of registered measures.

    Attributes:
        parts: its part tables.

    The optional attribute `undefined` maps keys to the reason for an undefined value, as text for reports; the empty
    key is for all others.
    """

    @property
    def parts(self) -> tuple[PartTable, ...]: ...

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        """Values by the keys of its entry; missing ones and None are undefined."""
        ...


_EVENTS = ("hits", "false_alarms", "yes_hits", "yes_false_alarms", "undecided")
_COUNTS = ", ".join(f"{name} int64" for name in _EVENTS)


def count_events(aligned: pa.Table, point: OperatingPoint | None = None) -> pa.Table:
    """Table EVENTS of an aligned list; it does not depend on the point."""
    counts = Counts.of(aligned, terms=len(query_index(aligned)[0]))
    columns = [counts.score, counts.ntrue, *(getattr(counts, name) for name in _EVENTS)]
    return pa.table([pa.array(column) for column in columns], schema=EVENTS.schema)


def count_classes(aligned: pa.Table, point: OperatingPoint | None = None) -> pa.Table:
    """Table CLASSES of an aligned list; it does not depend on the point."""
    names, query = query_index(aligned)
    true, hypothesised = aligned["ref_start"].is_valid().to_numpy(), aligned["score"].is_valid().to_numpy()
    decision = aligned["decision"].cast(pa.int8()).fill_null(-1).to_numpy()
    ntrue = np.bincount(query[true], minlength=len(names))
    distinct, inverse = np.unique(ntrue, return_inverse=True)
    row = inverse[query]
    events = (
        hypothesised & true,
        hypothesised & ~true,
        hypothesised & true & (decision == 1),
        hypothesised & ~true & (decision == 1),
        hypothesised & (decision < 0),
    )
    columns = [distinct, np.bincount(inverse, minlength=len(distinct))]
    columns += [np.bincount(row[chosen], minlength=len(distinct)) for chosen in events]
    return pa.table([pa.array(column.astype(np.int64)) for column in columns], schema=CLASSES.schema)


EVENTS = PartTable("events", columns(f"score float64, ntrue int64, {_COUNTS}"), ("score", "ntrue"), count_events)
CLASSES = PartTable("classes", columns(f"ntrue int64, terms int64, {_COUNTS}"), ("ntrue",), count_classes)


class Sums(NamedTuple):
    """The table of classes as arrays, all int64 (K,), by Ntrue."""

    ntrue: Ints
    terms: Ints
    hits: Ints
    false_alarms: Ints
    yes_hits: Ints
    yes_false_alarms: Ints
    undecided: Ints

    @classmethod
    def from_parts(cls, parts: Parts, point: OperatingPoint, *, refless: bool) -> Sums:
        """Classes with references, and optionally class 0 with all other queries of the point.

        Raises:
            UserError: the tables have more queries than the point.
        """
        table = parts[CLASSES.name].table()
        sums = cls(*(column.to_numpy().copy() for column in table.columns))
        referenced = int(sums.terms[sums.ntrue > 0].sum())
        if int(sums.terms.sum()) > point.queries:
            raise codes.TOO_MANY_QUERIES(listed=sums.terms.sum(), queries=point.queries)
        if not refless:
            return cls(*(column[sums.ntrue > 0] for column in sums))
        if point.queries > referenced:
            if not (sums.ntrue == 0).any():
                sums = cls(*(np.concatenate([np.zeros(1, dtype=np.int64), column]) for column in sums))
            sums.terms[0] = point.queries - referenced
        return sums

    @property
    def referenced(self) -> int:
        """Queries with references."""
        return int(self.terms[self.ntrue > 0].sum())

    @property
    def true(self) -> int:
        """True occurrences of all queries."""
        return int((self.ntrue * self.terms).sum())

    @property
    def classes(self) -> Classes:
        """The classes of a curve."""
        return Classes(self.ntrue, self.terms, self.hits, self.false_alarms)

    def as_one(self) -> Classes:
        """All queries pooled into a single class."""
        ones = np.ones(1, dtype=np.int64)
        return Classes(ones * self.true, ones, ones * self.hits.sum(), ones * self.false_alarms.sum())


def event_blocks(events: Merged, *, refless: bool) -> Iterator[Block]:
    """The stream of events, with or without those of queries without references."""
    for table in events.blocks():
        score, ntrue, hits, false_alarms = (
            table[name].to_numpy() for name in ("score", "ntrue", "hits", "false_alarms")
        )
        used = slice(None) if refless else ntrue > 0
        yield Block(ntrue[used], score[used], hits[used], false_alarms[used])


def pooled_blocks(blocks: Iterable[Block], true: int) -> Iterator[Block]:
    """The events of all queries pooled as one query."""
    for block in blocks:
        scores, *sums = by_score(block)
        yield Block(np.full(len(scores), true), scores, *sums)


def curve_of(parts: Parts, point: OperatingPoint) -> Iterator[Curve]:
    """The term-weighted curve in pieces.

    Raises:
        UserError: no query has a reference, or N = Ntrue for one.
    """
    sums = Sums.from_parts(parts, point, refless=point.include_refless)
    return curve_blocks(
        event_blocks(parts[EVENTS.name], refless=point.include_refless),
        sums.classes,
        trials=point.trials,
        beta=point.beta,
        reject_all=point.rules.rejects_all,
    )


def measure(name: str) -> Measure:
    """A registered measure.

    Raises:
        ConfigError: no measure has that name, or it cannot be loaded.
    """
    instance: Measure = MEASURES[name].load()()
    return instance


def why_undefined(result: Mapping[str, Value]) -> dict[str, str]:
    """Why each value is None or NaN, in the words of its measure.

    Args:
        result: values by key.
    """
    reasons: dict[str, str] = {}
    for name in MEASURES:
        entry = measure(name)
        words: Mapping[str, str] = getattr(entry, "undefined", {})
        for key in (values_of_measure.key for values_of_measure in MEASURES[name].gives):
            if key in result and ((value := result[key]) is None or math.isnan(value)):
                reasons[key] = words.get(key, words.get("", f"the measure {name} does not say when it is"))
    return reasons


def part_tables(measures: Iterable[str] | None = None) -> dict[str, PartTable]:
    """The part tables that measures need, by name.

    Args:
        measures: names; None: all registered ones.

    Raises:
        ConfigError: two measures mean different tables by one name.
    """
    tables: dict[str, PartTable] = {}
    for name in MEASURES if measures is None else measures:
        for part in measure(name).parts:
            if tables.setdefault(part.name, part) is not part:
                raise families.DUPLICATE_NAME.of(ConfigError)(
                    "two measures have a part table {part!r}", "rename one", where=f"measure {name}", part=part.name
                )
    return tables


def measure_parts(
    aligned: pa.Table, point: OperatingPoint, measures: Iterable[str] | None = None, places: Places | None = None
) -> dict[str, pa.Table]:
    """The part tables of some queries.

    Args:
        aligned: schema TRIALS, with final decisions, rows in any order; all rows of each query.
        point: the operating point of the whole list.
        measures: names; None: all that a point of that protocol has.
        places: the documents, if they are places in the recordings named by the list.

    Returns:
        A table for each name of `part_tables`, rows ascending by its key.

    Raises:
        UserError: N = Ntrue for a query.
    """
    with _quiet():
        tables = part_tables(measures_of(point) if measures is None else measures)
        return {name: part.of(aligned, point, places) for name, part in tables.items()}


def merge(sources: Mapping[str, Sequence[Source]], measures: Iterable[str] | None = None) -> Parts:
    """The merged tables of all parts, read as streams.

    Args:
        sources: by name of the part table, functions that open the tables of the parts, in any order.
        measures: as of `measure_parts`.
    """
    tables = part_tables(measures)
    return {name: Merged(part.schema, part.key, part.adds, sources.get(name, ())) for name, part in tables.items()}


def merge_tables(parts: Iterable[Mapping[str, pa.Table]], measures: Iterable[str] | None = None) -> Parts:
    """Merge tables in memory from `measure_parts`, like `merge`."""
    sources: dict[str, list[Source]] = {}
    for tables in parts:
        for name, table in tables.items():
            sources.setdefault(name, []).append(of_table(table))
    return merge(sources, measures)


def values(parts: Parts, point: OperatingPoint, measures: Iterable[str] | None = None) -> dict[str, Value]:
    """Values of measures by key, in the order of the registry; None if undefined or not finite.

    Raises:
        UserError: a query has as many references as trials, or there are more queries than in the point.
        ConfigError: two measures give a value of one name, or one gives a value that its entry does not name.
    """
    quantities()  # names are unique
    result: dict[str, Value] = {}
    with _quiet():
        for name in measures_of(point) if measures is None else measures:
            keys = [item.key for item in MEASURES[name].gives]
            values_of_measure = measure(name).values(parts, point)
            if strange := sorted(values_of_measure.keys() - set(keys)):
                raise families.EXTENSION(
                    "measure {measure} gives {names}, which its entry does not declare",
                    "add a Quantity to `gives` of its MeasureEntry (swsdist help add-a-measure)",
                    where=f"measure {name}",
                    measure=name,
                    names=", ".join(strange),
                )
            values = ((key, values_of_measure.get(key)) for key in keys)
            result |= {key: None if value is None or not math.isfinite(value) else value for key, value in values}
    return result


def measure_names(keys: Sequence[str] | Literal["all"], where: str = "measures") -> tuple[str, ...]:
    """Keys of shown values: all registered ones, or those given.

    Args:
        keys: selected keys.
        where: option that selects them, for messages.

    Raises:
        ConfigError: there is no such value.
    """
    names = list(quantities())
    if keys == "all":
        return tuple(names)
    headings = {item.name.replace(" ", "").lower(): key for key, item in quantities().items()}  # min Cnxe: cnxe_min
    for key in keys:
        if key not in names:
            meant = suggestion(headings.get(key.replace(" ", "").lower(), key), names)
            raise families.UNKNOWN_NAME.of(ConfigError)(
                "unknown measure {key!r}{meant}",
                "measures are {measures}",
                where=where,
                key=key,
                meant=meant,
                measures=", ".join(names),
            )
    return tuple(keys)


def measures_of(point: OperatingPoint) -> tuple[str, ...]:
    """Names of the measures of a protocol's trials."""
    takes = ("trials", "pairs", *([point.conventions] if point.trials_are == "document" else []))
    return tuple(name for name in MEASURES if MEASURES[name].takes in takes)


def basic_measures(point: OperatingPoint) -> tuple[str, ...]:
    """Names of the measures that are shown by default."""
    return tuple(name for name in measures_of(point) if MEASURES[name].basic)


def identities(measures: Iterable[str]) -> list[list[str | int]]:
    """Names and versions of measures, for fingerprints."""
    return [MEASURES.identity(name) for name in measures]


def _quiet() -> warnings.catch_warnings[None]:
    """Suppress the warning of negative rates, which was noted when the operating point was computed."""
    return warnings.catch_warnings(action="ignore", category=UserWarning)
