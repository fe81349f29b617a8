"""Reduce does what the oracle does, and its bytes do not depend on how the candidates were cut into files."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.io.filesystem import Folder
from swsdist.reduce.detections import Reduced, reduce_bucket
from swsdist.store import parquet
from swsdist.testing import oracles_reduce as oracle
from swsdist.types import CANDIDATES, DETECTIONS, QUERY_STATISTICS

Row = dict[str, Any]
SHIFT, UNIT = 0.01, 2048


def candidate(query: str, example: int, doc: str, channel: int, end: int, frames: int, cost: int, length: int) -> Row:
    return {
        "bucket": 0,
        "query_id": query,
        "example": example,
        "doc_id": doc,
        "channel": channel,
        "end_frame": end,
        "frames": min(frames, end + 1),
        "cost": cost,
        "query_frames": length,
    }


@st.composite
def lists(draw: st.DrawFn) -> list[Row]:
    """Candidates with many ties and overlaps; no two of one example end at the same frame of a document."""
    lengths = {(query, example): draw(st.integers(1, 6)) for query in ("q1", "q2", "ɔ") for example in (1, 2, 7)}
    keys = st.tuples(
        st.sampled_from(sorted(lengths)), st.sampled_from(["a", "b", "é", "aa"]), st.integers(1, 2), st.integers(0, 30)
    )
    rows = []
    for (query, example), doc, channel, end in draw(st.sets(keys, max_size=60)):
        frames, cost = draw(st.integers(1, 12)), draw(st.sampled_from([0, 1, 2, 3, 100, 4095, 2**31, 2**32 - 1]))
        rows.append(candidate(query, example, doc, channel, end, frames, cost, lengths[query, example]))
    return rows


def table(rows: list[Row]) -> pa.Table:
    """One file's candidates, in the order in which search writes them."""
    keys = ("query_id", "example", "doc_id", "channel", "end_frame")
    return pa.Table.from_pylist(sorted(rows, key=lambda row: [row[key] for key in keys]), CANDIDATES)


def reduce(files: list[pa.Table], overlap: float = 0.5, nbest: int = 1000, system: str = "s") -> Reduced:
    return reduce_bucket(files, shift=SHIFT, unit=UNIT, overlap=overlap, nbest=nbest, system=system)


OVERLAP = st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0])


@settings(max_examples=80, deadline=None)
@given(rows=lists(), overlap=OVERLAP, nbest=st.integers(1, 20))
def test_reduce_is_the_oracle(rows: list[Row], overlap: float, nbest: int) -> None:
    found = reduce([table(rows)], overlap, nbest)
    expected = oracle.detections(rows, shift=SHIFT, unit=UNIT, overlap=overlap, nbest=nbest, system="s")
    assert found.detections.to_pylist() == expected
    assert found.statistics.to_pylist() == oracle.statistics(rows)


@settings(max_examples=50, deadline=None)
@given(rows=lists(), data=st.data(), overlap=OVERLAP, nbest=st.integers(1, 8))
def test_any_split_by_document_gives_the_same_bytes(tmp_path_factory, rows, data, overlap, nbest) -> None:
    """A document lies whole in one file; files may be any number, empty, and in any order."""
    documents = sorted({(row["doc_id"], row["channel"]) for row in rows})
    place = {key: data.draw(st.integers(0, 4)) for key in documents}
    files = [table([row for row in rows if place[row["doc_id"], row["channel"]] == k]) for k in range(5)]
    order = data.draw(st.permutations(range(5)))
    whole = reduce([table(rows)], overlap, nbest)
    cut = reduce([files[k] for k in order], overlap, nbest)
    folder = Folder(str(tmp_path_factory.mktemp("tables")))
    for schema, one, other in (
        (DETECTIONS, whole.detections, cut.detections),
        (QUERY_STATISTICS, whole.statistics, cut.statistics),
    ):
        assert one.schema.equals(schema)
        written = [
            parquet.publish(folder, f"{name}.parquet", [t], schema).sha256 for name, t in (("a", one), ("b", other))
        ]
        assert written[0] == written[1]


@settings(max_examples=60, deadline=None)
@given(rows=lists())
def test_examples_are_best_of(rows: list[Row]) -> None:
    """With every overlap forbidden, what stays at a place is the best score of any example."""
    found = reduce([table(rows)], 0.0).detections.to_pylist()
    for row in oracle.detections(rows, shift=SHIFT, unit=UNIT, overlap=1.0, nbest=10**6, system="s"):
        over = [
            kept
            for kept in found
            if [kept[k] for k in ("query_id", "doc_id", "channel")]
            == [row[k] for k in ("query_id", "doc_id", "channel")]
            and min(kept["end"], row["end"]) > max(kept["start"], row["start"])
        ]
        assert max(kept["score"] for kept in over) >= row["score"]


def test_nothing() -> None:
    for files in ([], [CANDIDATES.empty_table()], [CANDIDATES.empty_table()] * 2):
        found = reduce(files)
        assert found.detections.schema.equals(DETECTIONS)
        assert found.detections.num_rows == 0
        assert found.statistics.schema.equals(QUERY_STATISTICS)
        assert found.statistics.num_rows == 0


def test_a_detection_in_full() -> None:
    (row,) = reduce([table([candidate("q", 3, "d", 2, 129, 30, 4096, 25)])], system="mine").detections.to_pylist()
    assert row == {
        "query_id": "q",
        "doc_id": "d",
        "channel": 2,
        "start": 1.0,
        "end": 1.3,
        "score": -4096 / (25 * 2048),
        "decision": None,
        "cost": 4096,
        "frames": 30,
        "example": 3,
        "system": "mine",
    }


@pytest.mark.parametrize(
    ("overlap", "ends"),
    [(0.0, [9]), (0.49, [9]), (0.5, [9, 14]), (1.0, [9, 11, 14])],
)
def test_overlap_of_the_shorter(overlap: float, ends: list[int]) -> None:
    """10 frames; 8 of which 6 are inside; 10 of which 5 are inside: exactly half is not more than half."""
    rows = [
        candidate("q", 1, "d", 1, 9, 10, 1, 10),
        candidate("q", 1, "d", 1, 11, 8, 2, 10),
        candidate("q", 1, "d", 1, 14, 10, 3, 10),
    ]
    found = reduce([table(rows)], overlap).detections
    assert [round(end / SHIFT) - 1 for end in found["end"].to_pylist()] == ends


def test_what_was_suppressed_suppresses_nothing() -> None:
    """Best first: the middle falls to the first, and so does not take the third with it."""
    rows = [candidate("q", 1, "d", 1, end, 10, cost, 10) for end, cost in ((9, 1), (13, 2), (17, 3))]
    assert reduce([table(rows)], 0.5).detections["cost"].to_pylist() == [1, 3]


def test_no_overlap_between_queries_documents_and_channels() -> None:
    rows = [candidate(query, 1, doc, channel, 9, 10, 1, 10) for query in "pq" for doc in "ab" for channel in (1, 2)]
    assert reduce([table(rows)], 0.0).detections.num_rows == 8


def test_ties_go_by_document_channel_time_and_example() -> None:
    rows = [
        candidate("q", 2, "b", 1, 9, 5, 7, 10),
        candidate("q", 1, "b", 1, 9, 5, 7, 10),
        candidate("q", 1, "b", 1, 29, 5, 7, 10),
        candidate("q", 1, "a", 2, 9, 5, 7, 10),
        candidate("q", 1, "a", 1, 39, 5, 7, 10),
        candidate("q", 1, "c", 1, 9, 5, 6, 10),
    ]
    found = reduce([table(rows[k : k + 1]) for k in (5, 3, 4)] + [table(rows[:3])], 0.5).detections.to_pylist()
    assert [(r["doc_id"], r["channel"], r["end"], r["example"]) for r in found] == [
        ("c", 1, 0.1, 1),
        ("a", 1, 0.4, 1),
        ("a", 2, 0.1, 1),
        ("b", 1, 0.1, 1),
        ("b", 1, 0.3, 1),
    ]
    assert [r["doc_id"] for r in reduce([table(rows)], 0.5, nbest=2).detections.to_pylist()] == ["c", "a"]


def test_statistics_of_large_costs_are_exact() -> None:
    """Sums of squares near 2^64 each: no wider integer and no float would hold them."""
    rows = [candidate("q", 1, "d", 1, k, 1, 2**32 - 1 - k, 2**20) for k in range(1000)]
    (row,) = reduce([table(rows)]).statistics.to_pylist()
    assert int(row["cost_square_sum"]) == sum((2**32 - 1 - k) ** 2 for k in range(1000)) > 2**73
    assert int(row["cost_sum"]) == sum(2**32 - 1 - k for k in range(1000))


def test_statistics_are_over_what_came_in() -> None:
    """Before overlaps were removed and the best kept."""
    rows = [candidate("q", 1, "d", 1, k, 5, k + 1, 5) for k in range(10)]
    found = reduce([table(rows)], 0.0, nbest=1)
    assert found.detections.num_rows == 1
    assert found.statistics["candidates"].to_pylist() == [10]
