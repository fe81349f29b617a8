"""The fast sweep against the definition in fractions, and sums of parts against the whole, byte for byte."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from swsdist.score.measures.curve import Counts, total
from swsdist.score.measures.twv import atwv, mtwv, per_term, twv_curve
from tests.oracles.score import Term, curve, maximum, point
from tests.oracles.thresholds import fit_threshold
from tests.support.aligned import aligned_list, parts_of_queries

scores = st.sampled_from([-2.0, -0.5, 0.0, 0.25, 0.5, 0.75, 7.0])
found = st.tuples(scores, st.booleans(), st.booleans())  # score, hit, YES
queries = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=2), st.tuples(st.integers(0, 4), st.lists(found, max_size=8)), max_size=8
)
# 4 and 0.5 make exact ties; a beta like 10 / 3 would make values that differ by the last bit, which count as ties too.
betas = st.sampled_from([0.5, 4.0, 66.66, 999.9])
trials = st.integers(13, 60)


def terms(lists: dict[str, Any]) -> dict[str, Term]:
    return {
        query: Term(missed + sum(hit for _, hit, _ in detections), [(score, hit) for score, hit, _ in detections])
        for query, (missed, detections) in lists.items()
    }


@given(queries, trials, betas)
def test_curve_and_maximum_are_the_definitions(lists: dict[str, Any], trials: int, beta: float) -> None:
    exact = terms(lists)
    assume(any(term.ntrue for term in exact.values()))
    counts = Counts.of(aligned_list(lists))
    ours = twv_curve(counts, trials=trials, beta=beta)
    points = curve(exact, trials=trials, beta=beta)
    for name in ("pmiss", "pfa", "twv"):
        np.testing.assert_allclose(getattr(ours, name), [float(getattr(p, name)) for p in points], rtol=0, atol=1e-12)
    assert ours.threshold[:-1].tolist() == [p.threshold for p in points[:-1]]

    best, expected = mtwv(ours), maximum(points)
    assert best.twv == pytest.approx(float(expected.twv), abs=1e-12)
    if expected.threshold is not None:
        assert best.threshold == expected.threshold
    elif len(points) > 1:
        assert best.threshold == points[-2].threshold
    if len(points) > 1:
        fitted = fit_threshold(counts, trials=trials, beta=beta)
        at = point(exact, fitted, trials=trials, beta=beta)
        assert at.twv == expected.twv


@given(queries, trials, betas)
def test_actual_and_per_term_are_the_definitions(lists: dict[str, Any], trials: int, beta: float) -> None:
    exact = terms(lists)
    assume(any(term.ntrue for term in exact.values()))
    # A decision is an accepted score of 1 or a rejected one of 0.
    decided = {
        query: Term(exact[query].ntrue, [(float(yes), hit) for _, hit, yes in detections])
        for query, (_, detections) in lists.items()
    }
    aligned = aligned_list(lists)
    expected = point(decided, 1.0, trials=trials, beta=beta)
    actual = atwv(Counts.of(aligned), trials=trials, beta=beta)
    assert actual[:3] == pytest.approx((float(expected.twv), float(expected.pmiss), float(expected.pfa)), abs=1e-12)

    for row in per_term(aligned, trials=trials, beta=beta).to_pylist():
        query = row["query_id"]
        assert row["ntrue"] == exact[query].ntrue
        assert row["nfa"] == sum(yes and not hit for _, hit, yes in lists[query][1])
        assert row["nmiss"] == row["ntrue"] - row["ncorr"]
        if not row["ntrue"]:
            assert (row["pmiss"], row["twv"], row["best_twv"]) == (None, None, None)
            continue
        own = {query: exact[query]}
        value = point({query: decided[query]}, 1.0, trials=trials, beta=beta).twv
        assert row["twv"] == pytest.approx(float(value), abs=1e-12)
        best = maximum(curve(own, trials=trials, beta=beta))
        assert (row["best_threshold"], row["best_twv"]) == (best.threshold, pytest.approx(float(best.twv), abs=1e-12))


@given(queries, trials, betas, st.randoms(use_true_random=False))
def test_parts_add_up_to_the_same_bytes(lists: dict[str, Any], trials: int, beta: float, random: Any) -> None:
    whole = aligned_list(lists)
    parts = parts_of_queries(whole, 3, random)
    a, b, c = map(Counts.of, parts)
    counts = Counts.of(whole)
    assert a + (b + c) == (a + b) + c == total([c, a, b]) == counts

    by_term = pa.concat_tables([per_term(part, trials=trials, beta=beta) for part in parts])
    by_term = by_term.take(pc.sort_indices(by_term["query_id"])).combine_chunks()
    assert by_term.equals(per_term(whole, trials=trials, beta=beta).combine_chunks())

    assume(len(counts.classes))
    ours, merged = (twv_curve(value, trials=trials, beta=beta) for value in (counts, total([c, a, b])))
    for name in ("threshold", "pmiss", "pfa", "twv"):
        assert getattr(ours, name).tobytes() == getattr(merged, name).tobytes()
    assert atwv(counts, trials=trials, beta=beta) == atwv(total([b, a, c]), trials=trials, beta=beta)
