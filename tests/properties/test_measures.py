"""Cross entropies, retrieval measures, and bands against their definitions; parts against the whole, byte for byte."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from swsdist.score.compare.paired import decided_at
from swsdist.score.measures.cnxe import Trials, cnxe, cnxe_min, measure, pool_adjacent_violators
from swsdist.score.measures.curve import Counts, pooled
from swsdist.score.measures.det import Squares, bands
from swsdist.score.measures.retrieval import equal_error_of, per_query
from swsdist.score.measures.twv import twv_curve
from swsdist.score.trials import document_trials
from tests.oracles import measures as oracle
from tests.support.aligned import aligned_list, parts_of_queries

priors = st.sampled_from([0.0001, 0.0148, 0.3, 0.5, 0.9])
llrs = st.lists(st.one_of(st.integers(-3, 3).map(float), st.floats(-20, 20)), min_size=1, max_size=12)
scores = st.sampled_from([-2.0, -0.5, 0.0, 0.25, 0.5, 7.0])
queries = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=2),
    st.tuples(st.integers(0, 3), st.lists(st.tuples(scores, st.booleans()), max_size=6)),
    max_size=6,
)
TRIALS_OF_A_QUERY = st.integers(10, 40)  # no fewer than a query's references and detections, and one more


def ranked(lists: dict[str, Any]) -> dict[str, oracle.Ranked]:
    """The queries with references."""
    found = {
        query: oracle.Ranked(missed + sum(hit for _, hit in detections), detections)
        for query, (missed, detections) in sorted(lists.items())
    }
    return {query: each for query, each in found.items() if each.ntrue}


@given(llrs, llrs, st.integers(0, 5), st.integers(0, 50), priors)
def test_actual_cross_entropy_is_the_definition(true, false, missing, rest, prior) -> None:
    smallest = min(true + false)
    trials = Trials.of(true, false, n_true=len(true) + missing, n_false=len(false) + rest)
    expected = oracle.cross_entropy(true + [smallest] * missing, false + [smallest] * rest, prior)
    assert cnxe(trials, prior) == pytest.approx(expected, rel=1e-12)


@given(llrs, llrs, st.integers(0, 5), st.integers(0, 50), priors, st.floats(-2, 2), st.floats(-5, 5))
def test_minima_are_below_every_map(true, false, missing, rest, prior, gamma, delta) -> None:
    trials = Trials.of(true, false, n_true=len(true) + missing, n_false=len(false) + rest)
    found = measure(trials, prior)
    assert found.cnxe_min <= found.cnxe + 1e-12
    assert found.cnxe_min <= 1 + 1e-12  # gamma 0
    assert 0 <= found.cnxe_pav <= (found.cnxe_min if found.gamma >= 0 else 1) + 1e-11
    whole = trials.complete()
    moved = Trials(gamma * whole.llr + delta, whole.true, whole.false, whole.n_true, whole.n_false)
    assert found.cnxe_min <= cnxe(moved, prior) + 1e-11
    if math.isfinite(found.gamma):
        for a, b in ((gamma, delta), (1e-3, 0), (-1e-3, 0), (0, 1e-3), (0, -1e-3)):
            llr = (found.gamma + a) * whole.llr + found.delta + b
            near = Trials(llr, whole.true, whole.false, whole.n_true, whole.n_false)
            assert found.cnxe_min <= cnxe(near, prior) + 1e-11


@settings(max_examples=30)
@given(llrs, llrs, priors)
def test_affine_minimum_is_what_a_general_minimiser_finds(true: list[float], false: list[float], prior: float) -> None:
    from scipy.optimize import minimize

    found = cnxe_min(Trials.of(true, false), prior)
    assume(math.isfinite(found.gamma) and abs(found.gamma) < 10 and abs(found.delta) < 50)

    def value(at: Any) -> float:
        return oracle.cross_entropy([at[0] * x + at[1] for x in true], [at[0] * x + at[1] for x in false], prior)

    theirs = minimize(value, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000})
    assert found.cnxe == pytest.approx(theirs.fun, abs=1e-7)


@given(llrs, llrs, st.integers(0, 5), priors, st.randoms(use_true_random=False))
def test_trials_of_parts_add_up_to_the_same_bytes(true, false, missing, prior, random) -> None:
    whole = Trials.of(true, false, n_true=len(true) + missing)
    random.shuffle(true)
    cut, other = random.randrange(len(true) + 1), random.randrange(len(false) + 1)
    left = Trials.of(true[:cut], false[other:], n_true=cut + missing)
    assert left + Trials.of(true[cut:], false[:other]) == whole
    assert measure(left + Trials.of(true[cut:], false[:other]), prior) == pytest.approx(
        measure(whole, prior), rel=0, abs=0, nan_ok=True
    )


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=14))
def test_pooling_is_isotonic_regression(rows: list[tuple[int, int]]) -> None:
    true = [t for t, _ in rows]
    total = [max(t + f, 1) for t, f in rows]
    blocks = pool_adjacent_violators(np.array(true, dtype=np.int64), np.array(total, dtype=np.int64))
    sizes = np.diff(np.append(blocks.first, len(rows)))
    rates = np.repeat(blocks.true / blocks.total, sizes)
    assert rates.tolist() == [float(rate) for rate in oracle.rising_rates(true, total)]
    assert (np.diff(blocks.true / blocks.total) > 0).all()


@given(queries, TRIALS_OF_A_QUERY, st.integers(1, 7))
def test_rank_measures_are_means_over_the_orders_of_ties(lists: dict[str, Any], trials: int, n: int) -> None:
    expected = ranked(lists)
    found = per_query(decided_at(aligned_list(lists), 0.0), n=n, trials=trials).to_pylist()
    assert [row["query_id"] for row in found] == list(expected)
    for row, query in zip(found, expected.values(), strict=True):
        assert row["average_precision"] == pytest.approx(float(oracle.average_precision(query)), abs=1e-12)
        assert row["p_at_n"] == pytest.approx(float(oracle.precision_at(query, n)), abs=1e-12)
        assert row["p_at_ntrue"] == pytest.approx(float(oracle.precision_at(query, query.ntrue)), abs=1e-12)
        assert row["auc"] == pytest.approx(float(oracle.area([query], trials)), abs=1e-12)
        accepted = [hit for score, hit in query.detections if score >= 0]
        assert (row["accepted"], row["recall"]) == (len(accepted), accepted.count(True) / query.ntrue)


@given(queries, TRIALS_OF_A_QUERY, st.sampled_from([0.5, 66.66]))
def test_bands_are_the_spread_over_queries_and_the_equal_error_rate_is_where_lines_cross(lists, trials, beta) -> None:
    expected = list(ranked(lists).values())
    assume(expected)
    aligned = aligned_list(lists)
    counts = Counts.of(aligned)
    together = twv_curve(pooled(counts), trials=int(counts.terms.sum()) * trials, beta=1.0)
    for curve in (twv_curve(counts, trials=trials, beta=1.0), together):
        points = [tuple(map(oracle.Fraction, pair)) for pair in zip(curve.pmiss, curve.pfa, strict=True)]
        assert equal_error_of([curve]) == pytest.approx(float(oracle.crossing(points)), abs=1e-12)
    if len(expected) > 1:
        found = bands(counts, Squares.of(aligned), trials=trials, beta=beta)
        for k, threshold in enumerate([*found.curve.threshold[:-1].tolist(), None]):
            errors = oracle.squared_errors(expected, threshold, trials=trials)
            assert found.pmiss_error[k] == pytest.approx(math.sqrt(errors.pmiss), abs=1e-7)
            assert found.pfa_error[k] == pytest.approx(math.sqrt(errors.pfa), abs=1e-7)


@given(queries, TRIALS_OF_A_QUERY, st.randoms(use_true_random=False))
def test_tables_of_parts_add_up_to_the_same_bytes(lists: dict[str, Any], trials: int, random: Any) -> None:
    whole = aligned_list(lists)
    by_query = [per_query(decided_at(part, 0.0), trials=trials) for part in parts_of_queries(whole, 3, random)]
    assert pa.concat_tables(by_query).sort_by("query_id").equals(per_query(decided_at(whole, 0.0), trials=trials))


@given(
    st.lists(st.tuples(st.sampled_from("pq"), st.sampled_from("de"), scores), max_size=8),
    st.lists(st.tuples(st.sampled_from("pq"), st.sampled_from("de")), max_size=5),
    st.randoms(use_true_random=False),
)
def test_document_trials_are_the_definition(detections, references, random) -> None:
    def rows(keys: list[Any], **more: Any) -> pa.Table:
        starts = [float(random.randrange(9)) for _ in keys]
        values = {
            name: pa.array([key[k] for key in keys], pa.string()) for k, name in enumerate(("query_id", "doc_id"))
        }
        values |= {"channel": pa.array([1] * len(keys), pa.int32()), "start": pa.array(starts, pa.float64())}
        return pa.table({**values, "end": pa.array([start + 1.0 for start in starts], pa.float64()), **more})

    listed = rows(detections, score=pa.array([row[2] for row in detections], pa.float64()))
    found = document_trials(listed, rows(references))
    expected = oracle.document_trials(detections, references)
    ours = {(row["query_id"], row["doc_id"]): (row["score"], row["ref_start"] is not None) for row in found.to_pylist()}
    assert ours == expected
    assert len(found) == len(expected)
    assert list(ours) == sorted(ours)
