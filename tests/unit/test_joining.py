"""Lists of several systems become one: by hand, and as properties of any lists, held against the definition."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.calibrate.fusion import best_of_overlaps, join_lists, parts_of, without_overlaps
from swsdist.core.codes import families
from swsdist.core.types import JOINED
from tests.oracles.joining import joined as oracle
from tests.support.coded import raises

Row = tuple[str, str, float, float, float]


def listed(*rows: Row) -> pa.Table:
    """query, document, start, end, score."""
    names = ("query_id", "doc_id", "start", "end", "score")
    columns: dict[str, Any] = {name: [row[k] for row in rows] for k, name in enumerate(names)}
    columns["channel"] = pa.array([1] * len(rows), pa.int32())
    kinds = {name: pa.string() if name.endswith("_id") else pa.float64() for name in names}
    return pa.table({name: pa.array(values, kinds.get(name, pa.int32())) for name, values in columns.items()})


def plain(table: pa.Table) -> list[tuple[Any, ...]]:
    """Place, score, and what each system gave, by name."""
    names, scores, given = parts_of(table)
    rows = table.select(["query_id", "doc_id", "start", "end", "score"]).to_pylist()
    return [
        (*row.values(), {name: float(score) for name, score, there in zip(names, of, have, strict=True) if there})
        for row, of, have in zip(rows, scores, given, strict=True)
    ]


def test_the_best_of_each_system_that_overlaps_belongs_to_a_place() -> None:
    one = listed(("q", "d", 1.0, 2.0, 3.0), ("q", "d", 5.0, 6.0, 1.0))
    two = listed(("q", "d", 1.2, 2.2, 2.0), ("q", "d", 0.9, 1.6, 2.5), ("q", "d", 5.5, 6.5, 1.5))
    found = plain(join_lists({"one": one, "two": two}))
    assert found == [
        ("q", "d", 1.0, 2.0, 3.0, {"one": 3.0, "two": 2.5}),
        ("q", "d", 1.2, 2.2, 2.0, {"two": 2.0}),
        # Half of the shorter is not more than half.
        ("q", "d", 5.5, 6.5, 1.5, {"two": 1.5}),
        ("q", "d", 5.0, 6.0, 1.0, {"one": 1.0}),
    ]


def test_by_mid_points_borders_count() -> None:
    one, two = listed(("q", "d", 5.0, 6.0, 1.0)), listed(("q", "d", 5.5, 6.5, 1.5))
    ((*_, parts),) = plain(join_lists({"one": one, "two": two}, meet="middle"))
    assert parts == {"one": 1.0, "two": 1.5}
    apart = listed(("q", "d", 5.500001, 6.6, 1.5))
    assert join_lists({"one": one, "two": apart}, meet="middle").num_rows == 2


def test_other_queries_documents_and_channels_are_other_places() -> None:
    one = listed(("q", "d", 1.0, 2.0, 3.0))
    elsewhere = one.set_column(one.schema.get_field_index("channel"), "channel", pa.array([2], pa.int32()))
    for other in (listed(("r", "d", 1.0, 2.0, 3.0)), listed(("q", "e", 1.0, 2.0, 3.0)), elsewhere):
        assert join_lists({"one": one, "two": other}).num_rows == 2
    assert join_lists({"one": listed(), "two": listed()}).schema == JOINED
    ((*_, parts),) = plain(join_lists({"one": listed(), "two": one}))
    assert parts == {"two": 3.0}
    with raises(families.EMPTY_INPUT):
        join_lists({})


_times = st.integers(0, 12)
_rows = st.lists(st.tuples(st.sampled_from("qr"), st.sampled_from("de"), _times, st.integers(0, 4), st.integers(-2, 2)))


def _table(rows: list[tuple[str, str, int, int, int]]) -> pa.Table:
    return listed(*((q, d, start / 10, (start + long) / 10, float(score)) for q, d, start, long, score in rows))


@settings(deadline=None)
@given(
    st.lists(_rows, min_size=1, max_size=4),
    st.sampled_from(["overlap", "middle"]),
    st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    st.permutations("abcd"),
)
def test_as_defined_whatever_the_order_of_systems(lists: Any, meet: Any, overlap: float, names: Any) -> None:
    def of(table: pa.Table, query: str) -> pa.Table:
        return table.filter(pa.array([q == query for q in table["query_id"].to_pylist()], pa.bool_()))

    how: dict[str, Any] = {"meet": meet, "overlap": overlap}
    tables = {name: _table(rows) for name, rows in zip("abcd", lists, strict=False)}
    found = join_lists(tables, **how)
    assert plain(found) == oracle({name: table.to_pylist() for name, table in tables.items()}, **how)
    assert join_lists({name: tables[name] for name in names if name in tables}, **how).equals(found)
    rows = sum(table.num_rows for table in tables.values())
    assert sum(len(row[-1]) for row in plain(found)) == rows  # every detection belongs to one place
    for query in "qr":  # any cut by query gives the same
        cut = {name: of(table, query) for name, table in tables.items()}
        assert plain(join_lists(cut, **how)) == plain(of(found, query))


def test_overlaps_within_and_between_queries() -> None:
    rows = [("q", "d", 1.0, 2.0, 3.0), ("q", "d", 1.2, 2.2, 2.0), ("r", "d", 1.1, 2.1, 2.5), ("r", "e", 1.1, 2.1, 9.0)]
    kept = without_overlaps(join_lists({"one": listed(*rows)}), 0.5)
    assert [(row[0], row[1], row[4]) for row in plain(kept)] == [("q", "d", 3.0), ("r", "e", 9.0), ("r", "d", 2.5)]
    between = without_overlaps(kept, 0.5, between_queries=True)
    assert [(row[0], row[1], row[4]) for row in plain(between)] == [("q", "d", 3.0), ("r", "e", 9.0)]
    assert best_of_overlaps(JOINED.empty_table(), 0.5).shape == (0,)
    # Equal scores go to the first query by name.
    table = join_lists({"one": listed(("r", "d", 1.0, 2.0, 3.0), ("q", "d", 1.0, 2.0, 3.0))})
    for order in ([0, 1], [1, 0]):
        rows = table.take(pa.array(order))
        assert without_overlaps(rows, 0.5, between_queries=True)["query_id"].to_pylist() == ["q"]
