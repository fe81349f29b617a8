"""Cross entropy: worked numbers, the censored rule, where the minimum lies, and what has none."""

from __future__ import annotations

import math
import pickle

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
    pool_adjacent_violators,
    prior_entropy,
)
from swsdist.score.measures.protocol import prior_of_beta
from tests.support.coded import raises


def test_the_prior_of_sws_2013() -> None:
    prior = effective_prior(0.00015, cost_miss=100, cost_false_alarm=1)
    assert prior == pytest.approx(0.0148, abs=2e-5)
    assert prior_of_beta((1 - prior) / prior) == pytest.approx(prior, rel=1e-15)
    assert bayes_threshold(prior) == pytest.approx(math.log(1 / prior - 1), rel=1e-15)
    assert bayes_threshold(0.5) == 0


def test_prior_entropy_in_bits() -> None:
    assert prior_entropy(0.5) == 1
    assert prior_entropy(0.25) == pytest.approx(0.25 * 2 + 0.75 * math.log2(4 / 3), rel=1e-15)


def test_cost_of_a_trial() -> None:
    assert log_cost(math.log(3), 0.5, target=True) == pytest.approx(math.log(4 / 3))
    assert log_cost(math.log(3), 0.5, target=False) == pytest.approx(math.log(4))
    assert log_cost([math.inf, -math.inf], 0.1, target=True).tolist() == [0, math.inf]
    assert log_cost([math.inf, -math.inf], 0.1, target=False).tolist() == [math.inf, 0]


def test_by_hand() -> None:
    trials = Trials.of([math.log(3)], [0.0, -math.log(3)])
    # Targets cost ln(4/3), non-targets (ln 2 + ln(4/3)) / 2, both weigh 1/2.
    bits = (math.log2(4 / 3) + (1 + math.log2(4 / 3)) / 2) / 2
    assert cross_entropy(trials, 0.5) == pytest.approx(bits, rel=1e-15)
    assert cnxe(trials, 0.5) == pytest.approx(bits, rel=1e-15)
    assert cnxe(trials, 0.1) == pytest.approx(cross_entropy(trials, 0.1) / prior_entropy(0.1), rel=1e-15)


def test_scores_that_say_nothing() -> None:
    for prior in (0.01, 0.5, 0.9):
        assert cnxe(Trials.of([0.0, 0.0], [0.0]), prior) == pytest.approx(1, rel=1e-14)


def test_censored_trials_get_the_smallest_score() -> None:
    censored = Trials.of([2.0, -1.0], [1.0], n_true=3, n_false=4)
    whole = Trials.of([2.0, -1.0, -1.0], [1.0, -1.0, -1.0, -1.0])
    assert censored.complete() == whole
    for value in (cnxe, cnxe_pav, lambda trials, prior: cnxe_min(trials, prior)):
        assert value(censored, 0.1) == value(whole, 0.1)


def test_nothing_submitted_tells_nothing() -> None:
    nothing = Trials.of([], [], n_true=5, n_false=100)
    found = measure(nothing, 0.2)
    assert (found.cnxe, found.cnxe_min, found.cnxe_pav) == pytest.approx((1, 1, 1), rel=1e-14)
    assert found.smallest is None


def test_minimum_undoes_an_affine_map() -> None:
    scores = np.array([2.0, 0.5, -1.0, 3.0]), np.array([-2.0, 0.0, 1.0, -3.0, 0.4])
    plain = cnxe_min(Trials.of(*scores), 0.3)
    moved = cnxe_min(Trials.of(*(score * 50 + 1000 for score in scores)), 0.3)
    assert moved.cnxe == pytest.approx(plain.cnxe, rel=1e-12)
    assert moved.gamma == pytest.approx(plain.gamma / 50, rel=1e-8)
    assert moved.delta == pytest.approx(plain.delta - 20 * plain.gamma, rel=1e-8)
    at = cnxe(Trials.of(*(plain.gamma * score + plain.delta for score in scores)), 0.3)
    assert at == pytest.approx(plain.cnxe, rel=1e-14)


def test_scores_the_wrong_way_round_have_a_negative_gamma() -> None:
    true, false = [0.0, -1.0, 2.0], [1.0, 3.0, 0.5, 1.5]
    right = cnxe_min(Trials.of([-x for x in true], [-x for x in false]), 0.5)
    wrong = cnxe_min(Trials.of(true, false), 0.5)
    assert wrong.gamma < 0 < right.gamma
    assert wrong.cnxe == pytest.approx(right.cnxe, rel=1e-12)
    assert cnxe_pav(Trials.of(true, false), 0.5) > wrong.cnxe  # which a rising map cannot mend


def test_perfectly_parted_scores_reach_0_at_infinity_only() -> None:
    assert cnxe_min(Trials.of([1.0, 2.0], [0.0, -1.0]), 0.1)[:2] == (0, math.inf)
    assert cnxe_min(Trials.of([0.0, -1.0], [1.0, 2.0]), 0.1)[:2] == (0, -math.inf)
    assert math.isnan(cnxe_min(Trials.of([1.0], [0.0]), 0.1).delta)
    assert cnxe_pav(Trials.of([1.0, 2.0], [0.0, -1.0]), 0.1) == 0


def test_scores_parted_but_for_one_score_that_both_have() -> None:
    # At score 0 half of the targets and a third of the non-targets: prior 1/2 gives weights 1/4 and 1/6 there.
    trials = Trials.of([0.0, 1.0], [0.0, -1.0, -2.0])
    least = (math.log2(1 + 2 / 3) / 4 + math.log2(1 + 3 / 2) / 6) / 1
    assert cnxe_min(trials, 0.5)[:2] == (pytest.approx(least, rel=1e-14), math.inf)
    assert cnxe_pav(trials, 0.5) == pytest.approx(least, rel=1e-14)
    nearly = Trials.of([0.0, 1e9], [0.0, -1.0, -2.0])
    assert cnxe_min(nearly, 0.5)[:2] == (pytest.approx(least, rel=1e-14), math.inf)


def test_one_score_for_all_is_worth_nothing() -> None:
    assert cnxe_min(Trials.of([3.0], [3.0, 3.0]), 0.2) == (1, 0, 0)


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


def test_pooling_by_hand() -> None:
    blocks = pool_adjacent_violators(np.array([0, 1, 0, 1, 1]), np.array([1, 1, 2, 1, 1]))
    assert [part.tolist() for part in blocks] == [[0, 1, 3], [0, 1, 2], [1, 3, 2]]
    none = pool_adjacent_violators(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    assert [part.tolist() for part in none] == [[], [], []]
    # Equal rates are one block.
    assert pool_adjacent_violators(np.array([1, 2]), np.array([2, 4])).first.tolist() == [0]


def test_an_aligned_list() -> None:
    rows = [("a", 2.0, True), ("a", 1.0, False), ("a", None, True), ("b", -1.0, True), ("b", -1.0, False)]
    table = pa.Table.from_pylist(
        [
            {"query_id": query, "doc_id": "d", "channel": 1, "score": score, "ref_start": 1.0 if true else None}
            for query, score, true in rows
        ],
        TRIALS,
    )
    trials = Trials.of_aligned(table, trials=10, queries=3)
    assert trials == Trials.of([2.0, -1.0], [1.0, -1.0], n_true=3, n_false=27)
    with raises(codes.TOO_MANY_QUERIES, listed=2, queries=1):
        Trials.of_aligned(table, trials=10, queries=1)
    assert Trials.of_aligned(table, trials=2, queries=2).n_false == 2  # not 1: as many as false alarms


def test_trials_are_values() -> None:
    trials = Trials.of([1.0, -0.0], [0.0], n_false=7)
    assert trials.llr.tolist() == [0.0, 1.0]
    assert math.copysign(1, trials.llr[0]) == 1
    assert trials == pickle.loads(pickle.dumps(trials))
    assert trials != Trials.of([], [])
    assert trials != 3
    doubled = trials + trials
    assert (doubled.n_true, doubled.n_false, doubled.true.tolist()) == (4, 14, [2, 2])


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_scores_that_are_not_finite(value: float) -> None:
    with raises(codes.NOT_FINITE_NUMBER):
        Trials.of([1.0], [0.0, value])


@pytest.mark.parametrize("prior", [0.0, 1.0, -0.1, math.nan])
def test_no_prior(prior: float) -> None:
    trials = Trials.of([1.0], [0.0])
    for value in (cnxe, cnxe_min, cnxe_pav, measure):
        with raises(families.INVALID_VALUE):
            value(trials, prior)  # type: ignore[operator]
    with raises(families.INVALID_VALUE):
        effective_prior(prior)


def test_no_cost_and_no_beta() -> None:
    with raises(families.INVALID_VALUE, cost_miss=0):
        effective_prior(0.1, cost_miss=0)
    with raises(codes.VALUE_NOT_POSITIVE, name="beta", value=0):
        prior_of_beta(0)


@pytest.mark.parametrize("trials", [Trials.of([1.0], []), Trials.of([], [1.0]), Trials.of([], [])])
def test_one_kind_of_trial_alone(trials: Trials) -> None:
    for value in (cnxe, cnxe_min, cnxe_pav, measure):
        with raises(families.UNDEFINED):
            value(trials, 0.5)  # type: ignore[operator]


def test_everything_at_once() -> None:
    trials = Trials.of([2.0, -1.0], [1.0, -3.0], n_true=4, n_false=50)
    found = measure(trials, 0.1)
    assert found.loss == found.cnxe - found.cnxe_min
    assert (found.smallest, found.threshold) == (-3.0, bayes_threshold(0.1))
    assert found.cxe_bits / found.entropy_bits == pytest.approx(found.cnxe, rel=1e-15)
