"""Confidence bands of DET curves: worked numbers, what has no spread, and the points that are drawn."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from swsdist.errors import UserError
from swsdist.score.measures.det import (
    Squares,
    bands,
    det,
    pooled_bands,
    pooled_curve,
    ppndf,
    referenced,
    total_squares,
)
from swsdist.score.measures.twv import Counts, twv_curve
from swsdist.types import TRIALS

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
    values = [0.5 - (1 - 0.2), 0.5 - (0 - 0.2), 0.5 - 0, 0]
    assert found.twv_error == pytest.approx([abs(value) / math.sqrt(2) for value in values], abs=1e-15)


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
    assert np.isnan(found.twv_error).all()


def test_equal_queries_have_a_spread_of_0() -> None:
    table = trials([(query, score, score > 0.3) for query in "abcdefg" for score in (0.1, 0.3, 0.7)])
    found = bands(Counts.of(table), Squares.of(table), trials=13, beta=999.9)
    assert found.pmiss_error.max() < 1e-8
    assert found.pfa_error.max() < 1e-8


def test_pooled_by_hand() -> None:
    found = pooled_bands(Counts.of(trials(LIST)), trials=11, beta=2.0)
    assert found.curve.pmiss.tolist() == pytest.approx([1 / 3, 2 / 3, 2 / 3, 1])
    assert found.curve.pfa.tolist() == pytest.approx([1 / 19, 1 / 19, 0, 0])
    assert found.pmiss_error == pytest.approx([math.sqrt(2 / 27)] * 3 + [0])
    assert found.pfa_error == pytest.approx([math.sqrt(18 / 19**3)] * 2 + [0, 0])
    assert found.twv_error[0] == pytest.approx(math.sqrt(2 / 27 + 4 * 18 / 19**3))
    curve = pooled_curve(Counts.of(trials(LIST)), trials=11, beta=2.0)
    assert curve.twv.tolist() == (1 - (curve.pmiss + 2.0 * curve.pfa)).tolist()


def test_queries_without_references_are_left_out_even_where_they_were_counted() -> None:
    table = trials(LIST)
    counts, every = Counts.of(table), Counts.of(table, terms=3)
    assert every != counts
    assert referenced(every) == counts
    for measure in (pooled_bands, lambda counts, **rules: bands(counts, Squares.of(table), **rules)):
        one, other = (measure(each, trials=11, beta=2.0) for each in (counts, every))
        assert one.curve.twv.tolist() == other.curve.twv.tolist()
        assert one.twv_error.tolist() == other.twv_error.tolist()


def test_squares_are_values() -> None:
    squares = Squares.of(trials(LIST))
    assert squares.hits.tolist() == [1, 0, 1]
    assert squares.products.tolist() == [1, 0, 0]
    assert squares + Squares.zero() == squares == Squares.zero() + squares
    assert squares != Squares.zero()
    assert squares != 3
    assert total_squares([]) == Squares.zero()
    assert total_squares([squares, squares]).hits.tolist() == [2, 0, 2]


def test_squares_of_another_list() -> None:
    other = Squares.of(trials(LIST[1:]))
    with pytest.raises(UserError, match="different lists"):
        bands(Counts.of(trials(LIST)), other, trials=11, beta=2.0)


def test_no_reference_at_all() -> None:
    for measure in (pooled_curve, pooled_bands, lambda counts, **rules: bands(counts, Squares.zero(), **rules)):
        with pytest.raises(UserError, match="no query has a reference"):
            measure(Counts.zero(), trials=10, beta=2.0)


def test_nothing_detected() -> None:
    table = trials([("a", None, True), ("b", None, True)])
    found = bands(Counts.of(table), Squares.of(table), trials=10, beta=2.0)
    assert (found.curve.pmiss.tolist(), found.pmiss_error.tolist()) == ([1.0], [0.0])


def test_drawn_bands_are_those_of_the_points_kept() -> None:
    random = np.random.default_rng(3)
    rows: Rows = [(query, float(score), bool(score > 0.8)) for query in "abcd" for score in random.random(200)]
    table = trials(rows)
    found = bands(Counts.of(table), Squares.of(table), trials=100_000, beta=66.66)
    plain, drawn = det(found.curve, step=0.1), det(found.curve, step=0.1, bands=found)
    assert plain.y_low is None
    assert drawn.threshold.tolist() == plain.threshold.tolist()
    assert len(drawn.x) < len(found.curve.pfa) / 2
    at = np.flatnonzero(np.isin(found.curve.threshold, drawn.threshold[:-1]))[: len(drawn.x) - 1]
    assert drawn.y_high is not None
    assert drawn.y_high[:-1].tolist() == ppndf((found.curve.pmiss + 2 * found.pmiss_error)[at]).tolist()
    assert drawn.x_low is not None
    assert (drawn.x_low <= drawn.x).all()
