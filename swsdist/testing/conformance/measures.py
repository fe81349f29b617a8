"""Checks measures of other packages, and computes the digest of a measure's results.

    from swsdist.testing.conformance.measures import check_measure

    def test_mine():
        check_measure(ENTRY)      # the registry's entry

It checks the requirements of a run (`swsdist.score.events`): part tables keep schema and key; queries in any parts, in
any order, merge to identical tables and values; empty counts are the zero and add nothing; values are the
ones of the entry, numbers or None; the order of rows has no effect. It needs no test framework: a failure is an
AssertionError with its cause.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from swsdist.core.types import TRIALS
from swsdist.registry.entries import MeasureEntry
from swsdist.score.events import Measure, Merged, Parts, Source, Value, of_table
from swsdist.score.measures.protocol import OperatingPoint, operating_point, protocol
from swsdist.testing.scenes import numbers

QUERIES, DOCUMENTS, SECONDS = 13, 9, 5000.0


def example() -> pa.Table:
    """An aligned list of 11 queries, two of them without references, with ties, misses, and an undecided detection."""
    draw = numbers(7)
    rows = []
    for q in range(11):
        for d in range(DOCUMENTS):
            for k in range(next(draw) % 4):
                true = next(draw) % 4 == 0 and q < 9
                start = 10.0 * k + next(draw) % 8 / 4
                detected = not true or next(draw) % 3 > 0
                score = (next(draw) % 23 - 11 + 5 * true) / 4
                row = (f"q{q:02d}", f"d{d}", 1, start, start + 0.5, score, score > 1.0)
                rows.append(
                    (*(row if detected else (*row[:3], *[None] * 4)), *((start, start + 0.6) if true else (None, None)))
                )
    columns = list(zip(*rows, strict=True))
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, TRIALS, strict=True)], TRIALS)


def example_point(name: str = "sws2013", *, documents: int | None = DOCUMENTS) -> OperatingPoint:
    """An operating point for the example."""
    true = example()["ref_start"].is_valid().to_numpy().sum()
    return operating_point(protocol(name), seconds=SECONDS, true=int(true), queries=QUERIES, documents=documents)


def check_measure(entry: MeasureEntry) -> None:
    """Check one measure.

    Args:
        entry: of the registry.

    Raises:
        AssertionError: a check fails; the message names the check, and the table or value.
    """
    table, measure, keys = example(), entry.load()(), [item.key for item in entry.gives]
    assert len(set(keys)) == len(keys), f"its entry gives one key twice: {keys}"
    for point in (example_point(), example_point("kwseval"), example_point(documents=None)):
        _check_values(measure, keys, table, point)
        _check_partitions(measure, table, point)
        _check_nothing(measure, keys, table, point)
    undecided = table.set_column(6, TRIALS.field("decision"), pa.nulls(table.num_rows, pa.bool_()))
    _check_values(measure, keys, undecided, example_point())


def value_digest(measure: Measure) -> str:
    """SHA-256 of a measure's part tables, to the bit, and values, to 9 digits, of the example, by two programs' conventions.

    (Logarithms, and so cross entropies, may differ in the last bit between CPU types.)

    Tests pin it with the measure's version: changed bytes require a new version.
    """
    digest = hashlib.sha256()
    for point in (example_point(), example_point("kwseval")):
        parts = merged(measure, [example()], point)
        for name in sorted(parts):
            for row in parts[name].table().to_pylist():
                digest.update("\t".join(_shown(value) for value in row.values()).encode() + b"\n")
        for key, value in sorted(measure.values(parts, point).items()):
            digest.update(f"{key}\t{value if value is None else format(value, '.9g')}\n".encode())
    return digest.hexdigest()


def merged(measure: Measure, tables: list[pa.Table], point: OperatingPoint) -> Parts:
    """The merged part tables of aligned lists."""
    result: dict[str, Merged] = {}
    for part in measure.parts:
        sources: list[Source] = [of_table(part.of(table, point)) for table in tables]
        result[part.name] = Merged(part.schema, part.key, part.adds, sources)
    return result


def _check_values(measure: Measure, keys: list[str], table: pa.Table, point: OperatingPoint) -> None:
    values = measure.values(merged(measure, [table], point), point)
    assert set(values) <= set(keys), f"its values are {sorted(values)}, its entry gives {sorted(keys)}"
    for key, value in values.items():
        assert value is None or isinstance(value, float | int), f"{key} is {value!r}: give a number or None"
    for part in measure.parts:
        assert tuple(part.schema.names[: len(part.key)]) == part.key, f"{part.name}: the key columns come first"
        for field in list(part.schema)[len(part.key) :]:
            assert not part.adds or field.type == pa.int64(), f"{part.name}: {field.name} adds, so it is an int64"
        assert part.adds or part.key[0] == "query_id", f"{part.name}: only tables by query need not add"
    order = np.random.default_rng(3).permutation(table.num_rows)
    shuffled = measure.values(merged(measure, [table.take(pa.array(order))], point), point)
    _same(shuffled, values, "rows in another order")


def _check_partitions(measure: Measure, table: pa.Table, point: OperatingPoint) -> None:
    unsplit = merged(measure, [table], point)
    expected = {name: merge.table() for name, merge in unsplit.items()}
    values = measure.values(unsplit, point)
    query = np.array([int(name[1:]) for name in table["query_id"].to_pylist()])
    for parts in (2, 3, 11):
        for order in (1, -1):
            pieces = [table.filter(pa.array(query % parts == k)) for k in range(parts)][::order]
            result = merged(measure, pieces, point)
            for name, merge in result.items():
                assert merge.table().equals(expected[name]), f"table {name} differs, made of {parts} parts"
            _same(measure.values(result, point), values, f"made of {parts} parts")


def _check_nothing(measure: Measure, keys: list[str], table: pa.Table, point: OperatingPoint) -> None:
    nothing = TRIALS.empty_table()
    for part in measure.parts:
        assert part.of(nothing, point).equals(part.zero()), f"table {part.name} of no trials is not the zero"
    values = measure.values(merged(measure, [table], point), point)
    _same(measure.values(merged(measure, [nothing, table, nothing], point), point), values, "with empty parts")
    alone = measure.values(merged(measure, [nothing], point), replace(point, true=0))
    assert set(alone) <= set(keys), "of nothing it gives other values"


def _same(result: Mapping[str, Value], expected: Mapping[str, Value], how: str) -> None:
    for key, value in expected.items():
        assert _shown(result[key]) == _shown(value), f"{key} is {result[key]}, and was {value}: {how}"


def _shown(value: object) -> str:
    """A value to the bit."""
    return struct.pack(">d", value).hex() if isinstance(value, float) else repr(value)
