"""KST and STO: the claims of their source, decisions against exact fractions, and sums in any order."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from swsdist.calibrate.rescoring import Rescoring
from swsdist.calibrate.steps.by_term import METHODS, UNIT, PosteriorSums, Thresholding, kst_threshold, sums
from swsdist.score.measures.curve import Counts
from swsdist.score.measures.twv import atwv
from tests.oracles import calibrate as oracle
from tests.support.aligned import aligned_list

probabilities = st.one_of(
    st.sampled_from([0.0, 1e-9, 1e-3, 0.25, 0.5, 0.75, 1.0]), st.floats(0, 1, allow_subnormal=False)
)
terms = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=2),
    st.tuples(st.integers(0, 4), st.lists(st.tuples(probabilities, st.booleans()), max_size=8)),
    min_size=1,
    max_size=6,
)
methods = st.sampled_from(METHODS)
trials = st.integers(13, 40_000)
betas = st.sampled_from([0.5, 1.0, 4.0, 66.66, 999.9])
alphas = st.floats(0.1, 5)


def exact(lists: dict[str, Any]) -> dict[str, oracle.Term]:
    return {
        query: oracle.Term(missed + sum(hit for _, hit in detections), detections)
        for query, (missed, detections) in lists.items()
    }


def true(lists: dict[str, Any]) -> dict[str, int]:
    return {query: term.ntrue for query, term in exact(lists).items()}


def borderline(lists: dict[str, Any], method: str, trials: int, beta: float, alpha: float) -> bool:
    """Whether doubles may decide a detection otherwise than fractions."""
    for term in exact(lists).values():
        limit = oracle.threshold(method, term, trials, beta, alpha)
        if limit is not None and any(abs(Fraction(p) - limit) <= limit / 10**12 for p, _ in term.detections):
            return True
        if 0 < oracle.posterior_sum(term) < Fraction(1, 10**6):  # rounded to 2^-62
            return True
    return False


@given(st.integers(1, 12), trials, betas, st.fractions(0, 1))
def test_eq_3_is_where_keeping_begins_to_pay(ntrue: int, trials: int, beta: float, p: Fraction) -> None:
    limit = oracle.kst_threshold(Fraction(ntrue), trials, Fraction(beta))
    assert (p >= limit) == (oracle.gain_of_keeping(p, ntrue, trials, Fraction(beta)) >= 0)
    assert float(kst_threshold(ntrue, trials=trials, beta=beta)) == pytest.approx(float(limit), rel=1e-14)


@given(st.floats(1e-9, 1e4), trials, betas, alphas)
def test_eq_6_is_eq_5_times_the_posterior_sum(total: float, trials: int, beta: float, alpha: float) -> None:
    """STO's global threshold, brought back to raw probabilities; KST's differs by S(w) in the denominator only."""
    sto, kst = (Thresholding(m, trials, beta, alpha) for m in ("sto", "kst"))
    assert float(sto.thresholds(total)) == pytest.approx(
        beta * alpha * total / (trials + (beta - 1) * alpha), rel=1e-12
    )
    assert float(sto.thresholds(total)) == sto.threshold * total
    assume(alpha * total <= trials)
    assert float(kst.thresholds(total)) == pytest.approx(
        beta * alpha * total / (trials + (beta - 1) * alpha * total), rel=1e-12
    )


@given(trials, betas, alphas, st.lists(st.floats(0, 1e5), min_size=2, max_size=20))
def test_sto_never_detects_frequent_terms_and_thresholds_rise(trials, beta, alpha, values) -> None:
    """From S(w) = 1 / eq. 5 on the threshold is above 1, where no probability lies; KST's stays within [0, 1]."""
    sto, kst = (Thresholding(m, trials, beta, alpha) for m in ("sto", "kst"))
    frequent = np.array([1.001, 2.0, 100.0]) / sto.threshold
    assert (sto.thresholds(frequent) > 1).all()
    assert (sto.normalised(np.ones(3), frequent) < sto.threshold).all()
    assert (kst.thresholds(frequent) <= 1).all()
    assert (kst.normalised(np.ones(3), frequent) >= kst.threshold).all()
    assert all((np.diff(how.thresholds(np.sort(values))) >= 0).all() for how in (sto, kst))
    # That of the true numbers has a least one, of a term that occurs once; S(w), and so KST's, comes as low as it likes.
    found = Thresholding("oracle-kst", trials, beta).thresholds(0.0, np.arange(1, trials + 1))
    assert (np.diff(found[:13]) > 0).all()
    assert found[0] == found.min() == pytest.approx(beta / (trials + beta - 1), rel=1e-14)
    assert Thresholding("kst", trials, beta).thresholds(1e-6) < found[0]


def test_the_seeds_numbers() -> None:
    """T = 36,000 and beta = 999.9: the least threshold is about 0.027, and STO's passes 1 at S(w) of about 25."""
    assert float(Thresholding("oracle-kst", 36_000, 999.9).thresholds(0, 1)) == pytest.approx(0.027, abs=2e-4)
    assert float(Thresholding("sto", 36_000, 999.9).thresholds(25.0)) == pytest.approx(1.0, abs=2e-4)


@given(methods, probabilities, st.floats(0, 50), st.integers(0, 13), trials, betas, alphas)
def test_thresholds_and_normalised_scores_decide_alike(method, p, more, ntrue, trials, beta, alpha) -> None:
    """For the probability itself and its neighbours, and for the threshold and its neighbours."""
    how = Thresholding(method, trials, beta, alpha)
    total = p + more
    limit = float(how.thresholds(total, ntrue))
    near = {p, math.nextafter(p, 0), math.nextafter(p, 1)}
    if limit <= 1:
        near |= {limit, math.nextafter(limit, 0), math.nextafter(limit, 1)}
    found = np.array(sorted(near))
    score = how.normalised(found, total, ntrue)
    assert ((score >= how.threshold) == ((found > 0) & (found >= limit))).all()
    assert np.isfinite(score).all()
    assert (np.diff(score) >= 0).all()


@given(terms, methods, trials, betas, alphas)
def test_decisions_are_those_of_fractions(lists, method, trials, beta, alpha) -> None:
    assume(not borderline(lists, method, trials, beta, alpha))
    how = Thresholding(method, trials, beta, alpha)
    found = how.apply(aligned_list(lists), true=true(lists))
    rows = iter(found.to_pylist())
    for query, term in exact(lists).items():
        kept = oracle.decisions(method, term, trials, beta, alpha)
        missed = [next(rows) for _ in range(lists[query][0])]
        assert all(row["decision"] is None and row["score"] is None for row in missed)
        decided = [next(rows) for _ in term.detections]
        assert [row["decision"] for row in decided] == kept


@given(terms, methods, trials, st.lists(st.tuples(alphas, betas), min_size=1, max_size=4))
def test_sweep_is_deciding_and_counting(lists: dict[str, Any], method: Any, trials: int, points: Any) -> None:
    """The very doubles of the direct way, and the exact value to 1e-12."""
    assume(any(true(lists).values()))
    aligned = aligned_list(lists)
    sweep = Rescoring.of_list(aligned, tolerance=None, conventions="stdeval")
    found = sweep.at(method, [a for a, _ in points], [b for _, b in points], trials=trials).points
    for k, (alpha, beta) in enumerate(points):
        how = Thresholding(method, trials, beta, alpha)
        decided = how.apply(aligned, true=true(lists))
        direct = atwv(Counts.of(decided), trials=trials, beta=beta)
        assert (found.twv[k], found.pmiss[k], found.pfa[k]) == (direct.twv, direct.pmiss, direct.pfa)
        if not borderline(lists, method, trials, beta, alpha):
            value = oracle.value(method, exact(lists), trials, beta, alpha)
            assert found.twv[k] == pytest.approx(float(value), abs=1e-9)


@given(st.lists(st.tuples(st.sampled_from("abc"), probabilities), max_size=30), st.integers(0, 30), st.randoms())
def test_posterior_sums_are_a_monoid(rows: list[tuple[str, float]], cut: int, random: Any) -> None:
    """Any partition in any order gives the same bytes; the sum is exact to half a unit a detection."""
    shuffled = list(rows)
    random.shuffle(shuffled)

    def found(part: list[tuple[str, float]]) -> PosteriorSums:
        lists = {name: (0, [(p, False) for q, p in part if q == name]) for name, _ in part}
        return PosteriorSums.of(aligned_list(lists))

    whole = found(rows)
    parts = found(shuffled[:cut]) + found(shuffled[cut:])
    assert whole == parts == parts + PosteriorSums()
    names = sorted({name for name, _ in rows})
    for name, value in zip(names, whole.values(names).tolist(), strict=True):
        each = [Fraction(p) for q, p in rows if q == name]
        assert abs(Fraction(value) - sum(each)) <= Fraction(len(each), 2 * UNIT) + Fraction(math.ulp(value))
        if all(p == 0 or p >= 1e-3 for p in each):
            assert value == float(sum(each))


def test_many_rows_do_not_overflow() -> None:
    rows = 100_000
    assert sums(np.zeros(rows, dtype=np.int64), np.ones(rows)) == [rows * UNIT]
