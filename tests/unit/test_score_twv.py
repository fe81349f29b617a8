"""TWV: worked numbers, the ends of the curve, and what has no value."""

from __future__ import annotations

import math
import pickle

import pyarrow as pa
import pytest

from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.errors import UserError
from swsdist.core.types import TRIALS
from swsdist.score.measures.curve import Counts, total
from swsdist.score.measures.det import det, ppndf
from swsdist.score.measures.twv import atwv, mtwv, per_term, twv_curve
from tests.oracles.thresholds import fit_threshold
from tests.support.coded import raises

Rows = list[tuple[str, float | None, bool | None, bool]]


def trials(rows: Rows) -> pa.Table:
    """Rows (query_id, score, decision, is it true)."""
    return pa.Table.from_pylist(
        [
            {"query_id": query, "doc_id": "d", "channel": 1, "score": score, "decision": decision}
            | {"start": None if score is None else 1.0, "ref_start": 1.0 if true else None}
            for query, score, decision, true in rows
        ],
        TRIALS,
    )


# a: 2 true, one found at 0.9, one missed; b: 1 true, found at 0.5 under a false alarm; c: none true.
LIST: Rows = [
    ("a", 0.9, True, True),
    ("a", None, None, True),
    ("a", 0.5, True, False),
    ("b", 0.5, False, True),
    ("b", 0.7, True, False),
    ("c", 0.95, True, False),
]


def test_the_lowest_threshold_of_equal_maxima() -> None:
    rows: Rows = [("a", 0.9, True, True), ("a", 0.8, True, False), ("a", 0.7, True, True), ("a", None, None, True)]
    # beta / (N - 3) = 1 / 3: what the false alarm costs, the second hit brings.
    counts = Counts.of(trials(rows))
    best = mtwv(twv_curve(counts, trials=13, beta=10 / 3))
    assert (best.twv, best.threshold) == (pytest.approx(1 / 3), 0.7)
    assert fit_threshold(counts, trials=13, beta=10 / 3) == 0.7
    assert per_term(trials(rows), trials=13, beta=10 / 3)["best_threshold"].to_pylist() == [0.7]


def test_rejecting_everything_is_labelled_with_the_highest_score_but_fitted_above_it() -> None:
    rows: Rows = [("a", 0.9, True, False), ("a", 0.8, True, True), ("b", None, None, True)]
    counts = Counts.of(trials(rows))
    assert mtwv(twv_curve(counts, trials=10, beta=100.0)) == (0.0, 1.0, 0.0, 0.9)
    fitted = fit_threshold(counts, trials=10, beta=100.0)
    assert 0.9 < fitted < 0.9 + 1e-12
    assert per_term(trials(rows), trials=10, beta=100.0)["best_threshold"].to_pylist() == [None, None]


def test_a_system_that_detects_nothing() -> None:
    nothing = trials([("a", None, None, True), ("b", None, None, True)])
    counts = Counts.of(nothing)
    curve = twv_curve(counts, trials=10, beta=2.0)
    assert math.isnan(curve.threshold[0])
    assert mtwv(curve) == (0.0, 1.0, 0.0, None)
    assert atwv(counts, trials=10, beta=2.0) == (0.0, 1.0, 0.0, None)
    assert det(curve).pmiss.tolist() == [1.0]
    assert per_term(nothing, trials=10, beta=2.0)["twv"].to_pylist() == [0.0, 0.0]
    with pytest.raises(UserError, match="no query with references has a detection"):
        fit_threshold(counts, trials=10, beta=2.0)


@pytest.mark.parametrize("rows", [[], [("a", 0.5, True, False)]])
def test_no_reference_at_all(rows: Rows) -> None:
    table = trials(rows)
    counts = Counts.of(table)
    assert counts == Counts.zero()
    assert len(per_term(table, trials=10, beta=2.0)) == len(rows)
    for measure in (twv_curve, atwv):
        with raises(codes.NO_REFERENCES):
            measure(counts, trials=10, beta=2.0)


def test_undecided_has_no_actual_value() -> None:
    table = trials([*LIST, ("a", 0.1, None, False)])
    with raises(codes.UNDECIDED_DETECTIONS, count=1):
        atwv(Counts.of(table), trials=12, beta=2.0)
    rows = per_term(table, trials=12, beta=2.0).to_pylist()
    assert [row["twv"] is None for row in rows] == [True, False, True]
    assert rows[0]["best_threshold"] == 0.9


def test_as_many_occurrences_as_trials() -> None:
    table = trials(LIST)
    for measure in (twv_curve, atwv, fit_threshold):
        with raises(families.UNDEFINED, trials=2):
            measure(Counts.of(table), trials=2, beta=2.0)
    with raises(families.UNDEFINED, trials=2):
        per_term(table, trials=2, beta=2.0)


def test_more_occurrences_than_trials_warn() -> None:
    counts = Counts.of(trials([*LIST, ("b", None, None, True), ("a", None, None, True)]))
    with pytest.warns(UserWarning, match=r"up to 3 references in 1 trials.*\[negative-false-alarm-rates\]"):
        assert (twv_curve(counts, trials=1, beta=2.0).pfa <= 0).all()


def test_counts_are_values() -> None:
    counts = Counts.of(trials(LIST))
    assert counts + Counts.zero() == counts == Counts.zero() + counts == pickle.loads(pickle.dumps(counts))
    assert counts != Counts.zero()
    assert counts != 3
    assert total([]) == Counts.zero()
    doubled = total([counts, counts])
    assert (doubled.terms == 2 * counts.terms).all()
    assert (doubled.hits == 2 * counts.hits).all()
    assert Counts.of(trials([*LIST, ("c", 0.1, None, False)])) == counts, "undecided without references do not matter"
    zero = Counts.of(trials([("a", -0.0, True, True), ("b", 0.0, True, True)])).score
    assert (zero.tolist(), math.copysign(1, zero[0])) == ([0.0], 1)


def test_det_keeps_the_ends_and_thins() -> None:
    rows: Rows = [("a", score / 1000, True, score % 3 == 0) for score in range(1000)]
    curve = twv_curve(Counts.of(trials(rows)), trials=100_000, beta=66.66)
    drawn = det(curve, step=0.1)
    assert len(drawn.x) < len(curve.twv) / 2
    for ends, of in ((drawn.threshold, curve.threshold), (drawn.pmiss, curve.pmiss), (drawn.pfa, curve.pfa)):
        assert (ends[0], ends[-1]) == (of[0], of[-1])
    assert (abs(drawn.x) <= 4.76).all()
    assert ppndf([0.5, 0.975, 0.0, 1.0]) == pytest.approx([0.0, 1.959963984540054, -4.753424308822899, 4.7534243088])
    # No point left out lies farther from a kept one than the square's diagonal.
    x, y = ppndf(curve.pfa), ppndf(curve.pmiss)
    apart = ((x[:, None] - drawn.x) ** 2 + (y[:, None] - drawn.y) ** 2).min(axis=1)
    assert apart.max() <= 2 * 0.1**2
