"""Cross entropy and bands of DET curves: worked numbers, the censored rule, and what has no value."""

import math
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.types import TRIALS
from swsdist.score.measures.cnxe import (
    Trials,
    bayes_threshold,
    cnxe,
    cnxe_min,
    cnxe_pav,
    cross_entropy,
    effective_prior,
    log_cost,
    measure,
    prior_entropy,
)
from swsdist.score.measures.curve import Counts
from swsdist.score.measures.det import Squares, bands
from swsdist.score.measures.protocol import prior_of_beta
from tests.support.coded import raises


def test_priors_and_costs_by_hand() -> None:
    prior = effective_prior(0.00015, cost_miss=100, cost_false_alarm=1)
    assert prior == pytest.approx(0.0148, abs=2e-5)  # of SWS 2013
    assert prior_of_beta((1 - prior) / prior) == pytest.approx(prior, rel=1e-15)
    assert bayes_threshold(prior) == pytest.approx(math.log(1 / prior - 1), rel=1e-15)
    assert (bayes_threshold(0.5), prior_entropy(0.5)) == (0, 1)
    assert prior_entropy(0.25) == pytest.approx(0.25 * 2 + 0.75 * math.log2(4 / 3), rel=1e-15)
    assert log_cost(math.log(3), 0.5, target=True) == pytest.approx(math.log(4 / 3))
    assert log_cost(math.log(3), 0.5, target=False) == pytest.approx(math.log(4))
    assert log_cost([math.inf, -math.inf], 0.1, target=True).tolist() == [0, math.inf]
    assert log_cost([math.inf, -math.inf], 0.1, target=False).tolist() == [math.inf, 0]
    trials = Trials.of([math.log(3)], [0.0, -math.log(3)])
    # Targets cost ln(4/3), non-targets (ln 2 + ln(4/3)) / 2, both weigh 1/2.
    bits = (math.log2(4 / 3) + (1 + math.log2(4 / 3)) / 2) / 2
    assert cross_entropy(trials, 0.5) == cnxe(trials, 0.5) == pytest.approx(bits, rel=1e-15)
    assert cnxe(trials, 0.1) == pytest.approx(cross_entropy(trials, 0.1) / prior_entropy(0.1), rel=1e-15)
    nothing = Trials.of([0.0, 0.0], [0.0])  # scores that say nothing
    assert [cnxe(nothing, prior) for prior in (0.01, 0.5, 0.9)] == pytest.approx([1, 1, 1], rel=1e-14)


def test_censored_and_parted_scores() -> None:
    censored = Trials.of([2.0, -1.0], [1.0], n_true=3, n_false=4)
    whole = Trials.of([2.0, -1.0, -1.0], [1.0, -1.0, -1.0, -1.0])
    assert censored.complete() == whole
    for value in (cnxe, cnxe_pav, lambda trials, prior: cnxe_min(trials, prior)):
        assert value(censored, 0.1) == value(whole, 0.1)
    found = measure(Trials.of([], [], n_true=5, n_false=100), 0.2)
    assert (found.cnxe, found.cnxe_min, found.cnxe_pav) == pytest.approx((1, 1, 1), rel=1e-14)
    assert found.smallest is None
    assert cnxe_min(Trials.of([1.0, 2.0], [0.0, -1.0]), 0.1)[:2] == (0, math.inf)
    assert cnxe_min(Trials.of([0.0, -1.0], [1.0, 2.0]), 0.1)[:2] == (0, -math.inf)
    assert math.isnan(cnxe_min(Trials.of([1.0], [0.0]), 0.1).delta)
    assert cnxe_pav(Trials.of([1.0, 2.0], [0.0, -1.0]), 0.1) == 0
    assert cnxe_min(Trials.of([3.0], [3.0, 3.0]), 0.2) == (1, 0, 0)
    # At score 0 half of the targets and a third of the non-targets: prior 1/2 gives weights 1/4 and 1/6 there.
    least = (math.log2(1 + 2 / 3) / 4 + math.log2(1 + 3 / 2) / 6) / 1
    for highest in (1.0, 1e9):
        trials = Trials.of([0.0, highest], [0.0, -1.0, -2.0])
        assert cnxe_min(trials, 0.5)[:2] == (pytest.approx(least, rel=1e-14), math.inf)
        assert cnxe_pav(trials, 0.5) == pytest.approx(least, rel=1e-14)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_an_outlier_does_not_stop_the_search(scale: float) -> None:
    random = np.random.default_rng(5)
    true, false = random.normal(2, 1, 300) * scale, np.append(random.normal(0, 1, 5000), -1e6) * scale
    least = cnxe_min(Trials.of(true, false, n_true=400, n_false=10**6), 0.015)
    assert 0 < least.cnxe < 1
    # Near the minimum nothing is lower.
    for gamma, delta in ((1.001, 0.0), (0.999, 0.0), (1.0, 0.01), (1.0, -0.01)):
        moved = [least.gamma * gamma * part + least.delta + delta for part in (true, false)]
        assert cnxe(Trials.of(*moved, n_true=400, n_false=10**6), 0.015) > least.cnxe


def test_aligned_lists_and_trials_are_values() -> None:
    rows = [("a", 2.0, True), ("a", 1.0, False), ("a", None, True), ("b", -1.0, True), ("b", -1.0, False)]
    keys = {"doc_id": "d", "channel": 1}
    cells = [keys | {"query_id": q, "score": s, "ref_start": 1.0 if true else None} for q, s, true in rows]
    table = pa.Table.from_pylist(cells, TRIALS)
    trials = Trials.of_aligned(table, trials=10, queries=3)
    assert trials == Trials.of([2.0, -1.0], [1.0, -1.0], n_true=3, n_false=27)
    with raises(codes.TOO_MANY_QUERIES, listed=2, queries=1):
        Trials.of_aligned(table, trials=10, queries=1)
    assert Trials.of_aligned(table, trials=2, queries=2).n_false == 2  # not 1: as many as false alarms
    found = measure(Trials.of([2.0, -1.0], [1.0, -3.0], n_true=4, n_false=50), 0.1)
    assert found.loss == found.cnxe - found.cnxe_min
    assert (found.smallest, found.threshold) == (-3.0, bayes_threshold(0.1))
    assert found.cxe_bits / found.entropy_bits == pytest.approx(found.cnxe, rel=1e-15)
    trials = Trials.of([1.0, -0.0], [0.0], n_false=7)
    assert (trials.llr.tolist(), math.copysign(1, trials.llr[0])) == ([0.0, 1.0], 1)
    assert trials == pickle.loads(pickle.dumps(trials))
    assert trials not in (Trials.of([], []), 3)
    doubled = trials + trials
    assert (doubled.n_true, doubled.n_false, doubled.true.tolist()) == (4, 14, [2, 2])


def test_what_has_no_value() -> None:
    for value in (math.nan, math.inf, -math.inf):
        with raises(codes.NOT_FINITE_NUMBER):
            Trials.of([1.0], [0.0, value])
    trials, calls = Trials.of([1.0], [0.0]), (cnxe, cnxe_min, cnxe_pav, measure)
    for prior in (0.0, 1.0, -0.1, math.nan):
        for call in (*(lambda p, f=f: f(trials, p) for f in calls), effective_prior):
            with raises(families.INVALID_VALUE):
                call(prior)  # type: ignore[operator]
    with raises(families.INVALID_VALUE, cost_miss=0):
        effective_prior(0.1, cost_miss=0)
    with raises(codes.VALUE_NOT_POSITIVE, name="beta", value=0):
        prior_of_beta(0)
    for one_kind in (Trials.of([1.0], []), Trials.of([], [1.0]), Trials.of([], [])):
        for call in calls:
            with raises(families.UNDEFINED):
                call(one_kind, 0.5)  # type: ignore[operator]


Rows = list[tuple[str, float | None, bool]]


def aligned_rows(rows: Rows) -> pa.Table:
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
    table = aligned_rows(rows)
    return bands(Counts.of(table, **counted), Squares.of(table), trials=number, beta=beta)


def test_what_has_no_spread() -> None:
    one = banded([("a", 0.9, True), ("a", 0.5, False)])
    assert np.isnan(one.pmiss_error).all()
    assert np.isnan(one.pfa_error).all()
    equal = banded([(q, score, score > 0.3) for q in "abcdefg" for score in (0.1, 0.3, 0.7)], 13, 999.9)
    assert max(equal.pmiss_error.max(), equal.pfa_error.max()) < 1e-8
    nothing = banded([("a", None, True), ("b", None, True)], 10)
    assert (nothing.curve.pmiss.tolist(), nothing.pmiss_error.tolist()) == ([1.0], [0.0])
    with raises(families.MISMATCH):
        bands(Counts.of(aligned_rows(LIST)), Squares.of(aligned_rows(LIST[1:])), trials=11, beta=2.0)
    with raises(codes.NO_REFERENCES):
        bands(Counts.zero(), Squares.of(aligned_rows([])), trials=10, beta=2.0)
