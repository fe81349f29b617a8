"""Lists of several systems become one: by hand, and as properties of any lists, held against the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
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
    rows = zip(table.select(["query_id", "doc_id", "start", "end", "score"]).to_pylist(), scores, given, strict=True)
    return [
        (*row.values(), {name: float(score) for name, score, there in zip(names, of, have, strict=True) if there})
        for row, of, have in rows
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
    for other in (listed(("r", "d", 1.0, 2.0, 3.0)), listed(("q", "e", 1.0, 2.0, 3.0))):
        assert join_lists({"one": one, "two": other}).num_rows == 2
    elsewhere = one.set_column(one.schema.get_field_index("channel"), "channel", pa.array([2], pa.int32()))
    assert join_lists({"one": one, "two": elsewhere}).num_rows == 2


def test_no_list_and_empty_lists() -> None:
    with raises(families.EMPTY_INPUT):
        join_lists({})
    assert join_lists({"one": listed(), "two": listed()}).schema == JOINED
    ((*_, parts),) = plain(join_lists({"one": listed(), "two": listed(("q", "d", 1.0, 2.0, 3.0))}))
    assert parts == {"two": 3.0}


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
    tables = {name: _table(rows) for name, rows in zip("abcd", lists, strict=False)}
    found = join_lists(tables, meet=meet, overlap=overlap)
    assert plain(found) == oracle(
        {name: table.to_pylist() for name, table in tables.items()}, meet=meet, overlap=overlap
    )
    shuffled = {name: tables[name] for name in names if name in tables}
    assert join_lists(shuffled, meet=meet, overlap=overlap).equals(found)
    rows = sum(table.num_rows for table in tables.values())
    assert sum(len(row[-1]) for row in plain(found)) == rows  # every detection belongs to one place
    for query in "qr":  # any cut by query gives the same
        cut = {
            name: table.filter(pa.array([q == query for q in table["query_id"].to_pylist()], pa.bool_()))
            for name, table in tables.items()
        }
        mine = found.filter(pa.array([q == query for q in found["query_id"].to_pylist()], pa.bool_()))
        assert plain(join_lists(cut, meet=meet, overlap=overlap)) == plain(mine)


def test_overlaps_within_and_between_queries() -> None:
    table = join_lists(
        {
            "one": listed(
                ("q", "d", 1.0, 2.0, 3.0),
                ("q", "d", 1.2, 2.2, 2.0),
                ("r", "d", 1.1, 2.1, 2.5),
                ("r", "e", 1.1, 2.1, 9.0),
            )
        }
    )
    kept = without_overlaps(table, 0.5)
    assert [(row[0], row[1], row[4]) for row in plain(kept)] == [("q", "d", 3.0), ("r", "e", 9.0), ("r", "d", 2.5)]
    between = without_overlaps(kept, 0.5, between_queries=True)
    assert [(row[0], row[1], row[4]) for row in plain(between)] == [("q", "d", 3.0), ("r", "e", 9.0)]
    assert best_of_overlaps(JOINED.empty_table(), 0.5).shape == (0,)


def test_equal_scores_go_to_the_first_query_by_name() -> None:
    table = join_lists({"one": listed(("r", "d", 1.0, 2.0, 3.0), ("q", "d", 1.0, 2.0, 3.0))})
    order = np.random.default_rng(1).permutation(2)
    for rows in (table, table.take(pa.array(order))):
        assert without_overlaps(rows, 0.5, between_queries=True)["query_id"].to_pylist() == ["q"]
