"""Confidence bands of DET curves: worked numbers, what has no spread, and the points that are drawn."""

from __future__ import annotations

import math
from typing import Any

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
    columns = [
        {"query_id": query, "doc_id": "d", "channel": 1, "score": score}
        | {"start": None if score is None else 1.0, "ref_start": 1.0 if true else None}
        for query, score, true in rows
    ]
    return pa.Table.from_pylist(columns, TRIALS)


# a: 2 true, one found at 0.9, one missed; b: 1 true, found at 0.5 below a false alarm; c: none true.
LIST: Rows = [("a", 0.9, True), ("a", None, True), ("b", 0.5, True), ("b", 0.7, False), ("c", 0.95, False)]


def banded(rows: Rows, number: int = 11, beta: float = 2.0, **counted: int) -> Any:
    table = trials(rows)
    return bands(Counts.of(table, **counted), Squares.of(table), trials=number, beta=beta)


def test_bands_by_hand() -> None:
    found, squares, counts = banded(LIST), Squares.of(trials(LIST)), Counts.of(trials(LIST))
    assert (squares.hits.tolist(), squares.false_alarms.tolist()) == ([1, 0, 1], [0, 1, 0])
    assert found.curve.threshold.tolist() == [0.5, 0.7, 0.9, 0.9]
    # Pmiss of a and b: 1/2 0, 1/2 1, 1/2 1, 1 1. Of two values the sample deviation is |difference| / sqrt(2), n - 1 is 1.
    assert found.pmiss_error == pytest.approx([0.5 / math.sqrt(2)] * 3 + [0], abs=1e-15)
    assert found.pfa_error == pytest.approx([0.1 / math.sqrt(2)] * 2 + [0, 0], abs=1e-15)
    # The curve is the one without bands.
    curve = twv_curve(counts, trials=11, beta=2.0)
    for name in ("threshold", "pmiss", "pfa", "twv"):
        assert getattr(found.curve, name).tobytes() == getattr(curve, name).tobytes()
    # Queries without references are left out even where they were counted.
    every = Counts.of(trials(LIST), terms=3)
    assert (every != counts, referenced(every) == counts) == (True, True)
    other = banded(LIST, terms=3)
    assert found.curve.twv.tolist() == other.curve.twv.tolist()
    assert found.pmiss_error.tolist() == other.pmiss_error.tolist()
    assert found.pfa_error.tolist() == other.pfa_error.tolist()


def test_what_has_no_spread() -> None:
    one = banded([("a", 0.9, True), ("a", 0.5, False)])
    assert np.isnan(one.pmiss_error).all()
    assert np.isnan(one.pfa_error).all()
    equal = banded([(q, score, score > 0.3) for q in "abcdefg" for score in (0.1, 0.3, 0.7)], 13, 999.9)
    assert max(equal.pmiss_error.max(), equal.pfa_error.max()) < 1e-8
    nothing = banded([("a", None, True), ("b", None, True)], 10)
    assert (nothing.curve.pmiss.tolist(), nothing.pmiss_error.tolist()) == ([1.0], [0.0])
    with raises(families.MISMATCH):
        bands(Counts.of(trials(LIST)), Squares.of(trials(LIST[1:])), trials=11, beta=2.0)
    with raises(codes.NO_REFERENCES):
        bands(Counts.zero(), Squares.of(trials([])), trials=10, beta=2.0)


def test_a_drawing_keeps_few_points_and_both_ends() -> None:
    random = np.random.default_rng(3)
    rows: Rows = [(query, float(score), bool(score > 0.8)) for query in "abcd" for score in random.random(200)]
    curve = twv_curve(Counts.of(trials(rows)), trials=100_000, beta=66.66)
    drawn = det(curve, step=0.1)
    assert len(drawn.x) < len(curve.pfa) / 2
    assert np.isin(drawn.threshold, curve.threshold).all()
    assert (drawn.threshold[0], drawn.threshold[-1]) == (curve.threshold[0], curve.threshold[-1])
    assert drawn.y.tolist() == ppndf(drawn.pmiss).tolist()
