"""From an aligned list to values of measures, for runs and for lists.

A run scores in three steps; a list is a single part::

    point = operating_point(rules, seconds=T, true=references, queries=queries, documents=documents)
    tables = measure_parts(trials_of_a_bucket, point)     # {name: table}, a file each; needs all rows of each query
    parts = merge(sources)                                # {name: Merged} of {name: a source a bucket}, streamed
    found = values(parts, point)                          # {key: number or None}

`point` must be the same for all buckets. The tables of a bucket may be written with any row groups, as rows ascend by key.
`merge` opens a source whenever a measure reads its table; a measure keeps in memory a block of 65 536 rows of each
source, one row per query, or (cross entropies only) one row per distinct score.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import pyarrow as pa

from swsdist.core.codes import score as codes
from swsdist.core.text import suggestion
from swsdist.corpora.places import Places
from swsdist.registry.registries import MEASURES, quantities
from swsdist.score.measures.protocol import OperatingPoint
from swsdist.score.parts.events import Measure, Parts, PartTable, Value
from swsdist.score.parts.merging import Merged, Source, of_table


def measure(name: str) -> Measure:
    """A registered measure.

    Raises:
        ConfigError: there is none of that name, or it cannot be loaded.
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
                raise codes.DUPLICATE_PART_TABLE(where=f"measure {name}", part=part.name)
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
    """As `merge`, for tables in memory from `measure_parts`."""
    sources: dict[str, list[Source]] = {}
    for tables in parts:
        for name, table in tables.items():
            sources.setdefault(name, []).append(of_table(table))
    return merge(sources, measures)


def values(parts: Parts, point: OperatingPoint, measures: Iterable[str] | None = None) -> dict[str, Value]:
    """Values of measures by key, in the order of the registry; None if undefined or not finite.

    Raises:
        UserError: a query has as many references as trials, or there are more queries than the point says.
        ConfigError: two measures give a value of one name, or one gives a value that its entry does not name.
    """
    quantities()  # names are unique
    result: dict[str, Value] = {}
    with _quiet():
        for name in measures_of(point) if measures is None else measures:
            keys = [item.key for item in MEASURES[name].gives]
            values_of_measure = measure(name).values(parts, point)
            if strange := sorted(values_of_measure.keys() - set(keys)):
                raise codes.UNDECLARED_MEASURE_VALUE(where=f"measure {name}", measure=name, names=", ".join(strange))
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
            raise codes.UNKNOWN_MEASURE(where=where, key=key, meant=meant, measures=", ".join(names))
    return tuple(keys)


def measures_of(point: OperatingPoint) -> tuple[str, ...]:
    """Names of the measures of a protocol's trials."""
    has_quesst = point.conventions == "quesst" and point.trials_are == "document"
    return tuple(name for name in MEASURES if has_quesst or MEASURES[name].takes != "quesst")


def basic_measures(point: OperatingPoint) -> tuple[str, ...]:
    """Names of those that are shown by default."""
    return tuple(name for name in measures_of(point) if MEASURES[name].basic)


def identities(measures: Iterable[str]) -> list[list[str | int]]:
    """Names and versions of measures, for fingerprints."""
    return [MEASURES.identity(name) for name in measures]


def _quiet() -> warnings.catch_warnings[None]:
    """Suppress the warning of negative rates, which was noted when the operating point was computed."""
    return warnings.catch_warnings(action="ignore", category=UserWarning)
