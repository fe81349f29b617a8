"""Confidence bands of DET curves: worked numbers, what has no spread, and the points that are drawn."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.types import TRIALS
from swsdist.score.measures.curve import Counts
from swsdist.score.measures.det import Squares, bands, det, ppndf, referenced
from swsdist.score.measures.twv import twv_curve
from tests.support.coded import raises

Rows = list[tuple[str, float | None, bool]]


def trials(rows: Rows) -> pa.Table:
    """Rows (query_id, score, is it true)."""
    return pa.Table.from_pylist(
        [
            {"query_id": query, "doc_id": "d", "channel": 1, "score": score}
            | {"start": None if score is None else 1.0, "ref_start": 1.0 if true else None}
            for query, score, true in rows
        ],
        TRIALS,
    )


# a: 2 true, one found at 0.9, one missed; b: 1 true, found at 0.5 below a false alarm; c: none true.
LIST: Rows = [("a", 0.9, True), ("a", None, True), ("b", 0.5, True), ("b", 0.7, False), ("c", 0.95, False)]


def test_bands_by_hand() -> None:
    table = trials(LIST)
    found = bands(Counts.of(table), Squares.of(table), trials=11, beta=2.0)
    assert found.curve.threshold.tolist() == [0.5, 0.7, 0.9, 0.9]
    # Pmiss of a and b: 1/2 0, 1/2 1, 1/2 1, 1 1. Of two values the sample deviation is |difference| / sqrt(2), n - 1 is 1.
    assert found.pmiss_error == pytest.approx([0.5 / math.sqrt(2)] * 3 + [0], abs=1e-15)
    assert found.pfa_error == pytest.approx([0.1 / math.sqrt(2)] * 2 + [0, 0], abs=1e-15)


def test_the_curve_is_the_one_without_bands() -> None:
    table = trials(LIST)
    found, plain = bands(Counts.of(table), Squares.of(table), trials=11, beta=2.0), Counts.of(table)
    curve = twv_curve(plain, trials=11, beta=2.0)
    for name in ("threshold", "pmiss", "pfa", "twv"):
        assert getattr(found.curve, name).tobytes() == getattr(curve, name).tobytes()


def test_one_query_has_no_spread() -> None:
    table = trials([("a", 0.9, True), ("a", 0.5, False)])
    found = bands(Counts.of(table), Squares.of(table), trials=11, beta=2.0)
    assert np.isnan(found.pmiss_error).all()
    assert np.isnan(found.pfa_error).all()


def test_equal_queries_have_a_spread_of_0() -> None:
    table = trials([(query, score, score > 0.3) for query in "abcdefg" for score in (0.1, 0.3, 0.7)])
    found = bands(Counts.of(table), Squares.of(table), trials=13, beta=999.9)
    assert found.pmiss_error.max() < 1e-8
    assert found.pfa_error.max() < 1e-8


def test_queries_without_references_are_left_out_even_where_they_were_counted() -> None:
    table = trials(LIST)
    counts, every = Counts.of(table), Counts.of(table, terms=3)
    assert every != counts
    assert referenced(every) == counts
    one, other = (bands(each, Squares.of(table), trials=11, beta=2.0) for each in (counts, every))
    assert one.curve.twv.tolist() == other.curve.twv.tolist()
    assert one.pmiss_error.tolist() == other.pmiss_error.tolist()
    assert one.pfa_error.tolist() == other.pfa_error.tolist()


def test_squares_by_hand() -> None:
    squares = Squares.of(trials(LIST))
    assert squares.hits.tolist() == [1, 0, 1]
    assert squares.false_alarms.tolist() == [0, 1, 0]


def test_squares_of_another_list() -> None:
    other = Squares.of(trials(LIST[1:]))
    with raises(families.MISMATCH):
        bands(Counts.of(trials(LIST)), other, trials=11, beta=2.0)


def test_no_reference_at_all() -> None:
    with raises(codes.NO_REFERENCES):
        bands(Counts.zero(), Squares.of(trials([])), trials=10, beta=2.0)


def test_nothing_detected() -> None:
    table = trials([("a", None, True), ("b", None, True)])
    found = bands(Counts.of(table), Squares.of(table), trials=10, beta=2.0)
    assert (found.curve.pmiss.tolist(), found.pmiss_error.tolist()) == ([1.0], [0.0])


def test_a_drawing_keeps_few_points_and_both_ends() -> None:
    random = np.random.default_rng(3)
    rows: Rows = [(query, float(score), bool(score > 0.8)) for query in "abcd" for score in random.random(200)]
    curve = twv_curve(Counts.of(trials(rows)), trials=100_000, beta=66.66)
    drawn = det(curve, step=0.1)
    assert len(drawn.x) < len(curve.pfa) / 2
    assert np.isin(drawn.threshold, curve.threshold).all()
    assert (drawn.threshold[0], drawn.threshold[-1]) == (curve.threshold[0], curve.threshold[-1])
    assert drawn.y.tolist() == ppndf(drawn.pmiss).tolist()
