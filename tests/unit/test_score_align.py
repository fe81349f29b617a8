"""Alignment: rules one at a time, and what it refuses."""

import math
from typing import Any

import numpy as np
import pyarrow as pa

from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.types import DETECTIONS, REFERENCES, TRIALS
from swsdist.score.align import align, decimals, score_limits
from tests.support.coded import raises


def detections(*rows: tuple[Any, ...]) -> pa.Table:
    """Rows (start, end, score[, decision[, query_id, doc_id, channel]])."""
    records = []
    for start, end, score, *rest in rows:
        decision, query, doc, channel = [*rest, *(True, "q", "d", 1)[len(rest) :]]
        records.append(
            {"query_id": query, "doc_id": doc, "channel": channel, "start": start, "end": end, "score": score}
            | {"decision": decision}
        )
    return pa.Table.from_pylist(records, DETECTIONS)


def references(*rows: tuple[Any, ...]) -> pa.Table:
    """Rows (start, end[, query_id, doc_id, channel])."""
    records = []
    for start, end, *rest in rows:
        query, doc, channel = [*rest, *("q", "d", 1)[len(rest) :]]
        records.append({"query_id": query, "doc_id": doc, "channel": channel, "start": start, "end": end})
    return pa.Table.from_pylist(records, REFERENCES)


def aligned(found: pa.Table, true: pa.Table, tolerance: float = 0.5) -> list[tuple[Any, ...]]:
    """(start, ref_start) of each row."""
    low, high = score_limits(found["score"])
    table = align(found, true, tolerance=tolerance, low=low, high=high)
    assert table.schema == TRIALS
    return list(zip(table["start"].to_pylist(), table["ref_start"].to_pylist(), strict=True))


def test_hits_false_alarms_and_misses_in_order_and_what_is_paired() -> None:
    found = detections((9.0, 9.5, 0.3, None), (1.1, 1.5, 0.9), (5.0, 5.5, 0.1, False, "p"))
    table = align(found, references((1.0, 1.5), (4.0, 4.5)), tolerance=0.5, low=0.1, high=0.9)
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("p", "d", 1, 5.0, 5.5, 0.1, False, None, None),
        ("q", "d", 1, 1.1, 1.5, 0.9, True, 1.0, 1.5),
        ("q", "d", 1, None, None, None, None, 4.0, 4.5),
        ("q", "d", 1, 9.0, 9.5, 0.3, None, None, None),
    ]
    # More pairs before better scores, scores (also of a NO) before overlap, overlap where they are equal; each once.
    # The good detection could have either reference, the poor one only the first.
    more = aligned(detections((0.0, 0.2, 0.1), (1.0, 1.2, 0.9)), references((0.5, 0.9), (1.5, 1.9)))
    assert more == [(0.0, 0.5), (1.0, 1.5)]
    true = references((35.75, 36.25))
    better = aligned(detections((35.75, 36.25, 0.6), (36.25, 36.75, 0.8, False)), true)
    assert better == [(35.75, None), (36.25, 35.75)]
    rows = aligned(detections((55.75, 56.25, 0.7), (55.625, 56.125, 0.7)), references((55.5, 56.0)))
    assert rows == [(55.625, 55.5), (55.75, None)]
    once = [(1.0, 1.0), (1.0, None), (1.0, None)]
    assert aligned(detections(*[(1.0, 1.5, 0.5)] * 3), references((1.0, 1.5))) == once
    for found in (detections(), detections((1.0, 1.5, 0.5))):
        for true in (references(), references((7.0, 7.5))):
            assert aligned(found, true) == [(1.0, None)] * len(found) + [(None, 7.0)] * len(true)


def test_borders_belong_to_the_tolerance_and_the_duration_column_decides_there() -> None:
    for middle, hit in ((9.5, True), (9.5 - 2**-10, False), (12.5, True), (12.5 + 2**-10, False), (11.0, True)):
        rows = aligned(detections((middle - 0.25, middle + 0.25, 0.5)), references((10.0, 12.0)))
        assert len(rows) == (1 if hit else 2), middle
    # 83.75 + 0.86 / 2 is below 82.88 + 0.8 + 0.5 in decimals and above it in doubles.
    found = detections((83.75, 83.75 + 0.86, 0.4))
    given = found.append_column("duration", pa.array([0.86]))
    true = references((82.88, 83.68))
    assert len(aligned(found, true)) == len(aligned(given, true)) == 2
    longer = found.append_column("duration", pa.array([0.84]))
    assert len(aligned(longer, true)) == 1


def test_group_keys_are_query_document_and_channel_of_any_type() -> None:
    found, columns = detections((1.0, 1.5, 0.5)), ["query_id", "doc_id", "channel", "start", "end", "score"]
    for other in (("p", "d", 1), ("q", "e", 1), ("q", "d", 2)):
        assert len(aligned(found, references((1.0, 1.5, *other)))) == 2
    assert len(aligned(found, references((1.0, 1.5)))) == 1
    found = found.select(columns).set_column(2, "channel", found["channel"].cast(pa.int64()))
    true = references((1.0, 1.5)).set_column(1, "doc_id", pa.array(["d"], pa.large_string()))
    assert align(found, true, tolerance=0.5, low=0.5, high=0.5)["decision"].to_pylist() == [None]


def test_refused() -> None:
    found, true = detections(), references()
    row = "row 1 (query_id q, doc_id d, channel 1)"
    cases: list[tuple[pa.Table, pa.Table, Any, str, dict[str, Any]]] = [
        (detections((1.0, 1.5, math.nan)), true, codes.NOT_FINITE_NUMBER, row, {"column": "score"}),
        (
            *(detections((1.0, 1.5, 0.5), (1.0, math.inf, 0.5)), true, codes.NOT_FINITE_NUMBER),
            *("detections, row 2", {"column": "end"}),
        ),
        (detections((1.0, 0.9, 0.5)), true, families.INVALID_TIMES, "detections, row 1", {}),
        (found, references((1.0, 0.9)), families.INVALID_TIMES, "references, row 1", {}),
        (found.drop_columns(["score"]), true, codes.ABSENT_COLUMN, "detections", {"column": "score"}),
        (found, true.drop_columns(["doc_id"]), codes.ABSENT_COLUMN, "references", {"column": "doc_id"}),
        (found, references((1.0, 2.0, None)), families.BAD_CELL, "references, row 1", {"column": "query_id"}),
    ]
    for left, right, code, where, values in cases:
        with raises(code, where=where, **values):
            align(left, right, tolerance=0.5, low=0.0, high=1.0)


def test_limits_start_where_the_original_starts_and_decimals_are_those_of_printf() -> None:
    assert score_limits([]) == (9999.0, -9999.0)
    assert score_limits([10447.0, 10839.0]) == (9999.0, 10839.0)
    assert score_limits([3.0], *score_limits([5.0, 4.0])) == score_limits([5.0, 4.0, 3.0]) == (3.0, 5.0)
    values = np.array([0.00005, 0.00015, 2.00005, 0.12345, 0.86 + 1e-12, 0.0, 12345.67895, -0.00025])
    assert decimals(values, 4).tolist() == [float(f"{value:.4f}") for value in values]


def test_a_crowded_document() -> None:
    rng = np.random.default_rng(5)
    starts = np.sort(rng.uniform(0, 400, 2000))
    found = detections(*((s, s + 0.4, v) for s, v in zip(starts.round(3), rng.random(2000), strict=True)))
    true = references(*((float(s), s + 0.4) for s in range(0, 400, 2)))
    rows = aligned(found, true, tolerance=20.0)
    assert sum(None not in row for row in rows) == 200
    assert len(rows) == 2000
