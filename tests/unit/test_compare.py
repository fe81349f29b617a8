"""Comparison of systems, by hand and against scipy; of entropies; its plots and words."""

import math
import tracemalloc
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy import stats

from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.types import TRIALS
from swsdist.report.plots.curves import differences_svg
from swsdist.score.compare.bootstrap import DocumentCounts, bootstrap_documents, bootstrap_terms, draws_of
from swsdist.score.compare.cross_entropy import ByQuery, Entropies, _least, compare_entropies
from swsdist.score.compare.paired import (
    Settings,
    benjamini_hochberg,
    cohen_d,
    compare,
    compare_paired,
    completed,
    conditions,
    decided_at,
    holm,
    paired,
    paired_t,
    rank_biserial,
    wilcoxon,
)
from swsdist.score.measures.cnxe import Trials, cnxe_min
from swsdist.score.measures.protocol import prior_of_beta
from swsdist.score.measures.twv import PER_TERM, per_term
from tests.support.coded import raises


def table(values: dict[str, float | None], ntrue: dict[str, int] | None = None) -> pa.Table:
    """A per-term table with these values of TWV; Ntrue is 1 where not said."""
    rows = [{"query_id": q, "ntrue": (ntrue or {}).get(q, 1), "twv": v, "best_twv": 0.5} for q, v in values.items()]
    return pa.Table.from_pylist(rows, PER_TERM)


def trials(*rows: tuple[str, str, float | None, bool | None, bool]) -> pa.Table:
    """An aligned list: query, document, score, decision, whether it is true."""
    cells = []
    for query, document, score, decision, true in rows:
        row = {"query_id": query, "doc_id": document, "channel": 1, "score": score, "decision": decision}
        row |= {} if score is None else {"start": 1.0, "end": 2.0}
        cells.append(row | ({"ref_start": 1.0, "ref_end": 2.0} if true else {}))
    return pa.Table.from_pylist(cells, TRIALS)


def test_tables_are_brought_together_by_query_or_refused() -> None:
    found = paired({"a": table({"q2": 0.2, "q1": 0.1}), "b": table({"q1": 0.3, "q2": 0.4})})
    assert (found.queries, found.values.tolist()) == (("q1", "q2"), [[0.1, 0.2], [0.3, 0.4]])
    # A query that a table lacks counts as all missed; one without references takes no part.
    found = paired({"a": table({"q1": 0.1, "q2": 0.9}), "b": table({"q1": 0.3})})
    assert (found.values.tolist(), found.absent) == ([[0.1, 0.9], [0.3, 0.0]], {"a": 0, "b": 1})
    tables = {"a": table({"q1": 0.1, "q2": 0.9}, {"q2": 3}), "b": table({"q3": None, "q1": 0.3}, {"q3": 0})}
    first, second = completed(tables["b"], paired(tables)).to_pylist()
    assert first["query_id"] == "q1"
    keys = ("query_id", "ntrue", "nmiss", "nfa", "pmiss", "twv")
    assert [second[key] for key in keys] == ["q2", 3, 3, 0, 1.0, 0.0]
    one = table({"q": 1.0})
    for tables, code, values in (
        ({}, codes.TOO_FEW_SYSTEMS, {"systems": 0}),
        (
            {"a": table({"q": 1.0}, {"q": 2}), "b": one},
            codes.DIFFERENT_REFERENCE_COUNTS,
            {"query": "q", "count": 1, "other_count": 2},
        ),
        ({"a": one, "b": table({"q": None}, {"q": 0})}, codes.DIFFERENT_REFERENCE_COUNTS, {"other_count": 1}),
        ({"a": one, "b": table({"q": None})}, codes.UNDECIDED_QUERY, {"query": "q"}),
        ({"a": one, "b": one.drop_columns("twv")}, codes.ABSENT_COLUMN, {"column": "twv"}),
        ({"a": one, "b": pa.concat_tables([one, one])}, families.DUPLICATE_NAME, {"query": "q"}),
        ({"a": one, "b": table({"q": math.inf})}, families.BAD_CELL, {"number": math.inf}),
        ({"a": table({"q": None}, {"q": 0}), "b": table({})}, codes.NO_REFERENCES, {}),
    ):
        with raises(code, **values):
            paired(tables)
    with raises(families.UNKNOWN_NAME):
        paired({"a": one, "b": one}, "ncorr")
    assert paired({"a": table({"q": None}), "b": table({"q": None})}, "best_twv").values.tolist() == [[0.5], [0.5]]


def test_conditions_and_miss_rates_are_compared_too() -> None:
    aligned = trials(("q", "d", 0.5, False, True), ("q", "d", 0.4, True, False), ("q", "d", None, None, True))
    assert decided_at(aligned, 0.5)["decision"].to_pylist() == [True, False, None]
    assert decided_at(aligned, None)["decision"].to_pylist() == [False, False, None]
    joined = conditions({"kst": {"s1": 0.3, "s2": 0.5, "s3": 0.4}, "sto": {"s3": 0.3, "s1": 0.1, "s2": 0.2}})
    pair = compare_paired(joined, Settings(resamples=200)).pairs[0]
    assert pair.t == paired_t([0.3, 0.5, 0.4], [0.1, 0.2, 0.3])
    assert (pair.wilcoxon.p, pair.wins) == (0.25, 3)
    with raises(families.NOT_COMPARABLE, systems="kst has 1 systems, sto has 2 systems"):
        conditions({"kst": {"s1": 0.3}, "sto": {"s1": 0.1, "s2": 0.2}})
    rows = [{"query_id": "q", "ntrue": 1, "pmiss": value} for value in (0.25, 0.75)]
    tables = {name: pa.Table.from_pylist([row], PER_TERM) for name, row in zip("ab", rows, strict=True)}
    pair = compare(tables, Settings(resamples=1), value="pmiss").pairs[0]
    assert (pair.difference, pair.wins, pair.losses) == (-0.5, 1, 0)


RNG = np.random.default_rng(3)
A = RNG.normal(0.5, 0.2, 40)
B = A - RNG.normal(0.03, 0.1, 40)


def test_paired_tests_are_scipys_with_zeros_and_ties() -> None:
    expected, found = stats.ttest_rel(A, B), paired_t(A, B)
    assert (found.n, found.statistic) == (40, pytest.approx(expected.statistic, rel=1e-9))
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)
    pairs = (([0.1, 0.2], [0.1, 0.2]), ([0.3, 0.4], [0.1, 0.2]), ([0.3], [0.1]), ([], []))
    assert [paired_t(*pair).p for pair in pairs] == [1.0, None, None, None]
    expected, found = stats.wilcoxon(A, B, method="exact"), wilcoxon(A, B)
    assert (found.exact, found.zeros, found.statistic, found.p) == (True, 0, expected.statistic, expected.pvalue)
    with raises(families.MISMATCH):
        paired_t([1.0, 2.0], [1.0])
    with raises(families.INVALID_VALUE):
        wilcoxon([math.nan], [1.0])
    first, second = [0.1 + 0.2, 0.5, 0.9, 0.4, 0.7, 0.2], [0.3, 0.4, 0.8, 0.5, 0.2, 0.9]
    dropped = wilcoxon(first, second)
    assert (dropped.n, dropped.zeros, dropped.exact) == (6, 1, False)  # 0.1 + 0.2 is 0.3; three differences are 0.1
    tied = np.array([0.1, 0.1, -0.1, 0.5, -0.7])
    assert dropped.p == pytest.approx(stats.wilcoxon(tied, method="asymptotic").pvalue, rel=1e-12)
    pratt = wilcoxon(first, second, "pratt")
    assert pratt.p == pytest.approx(stats.wilcoxon([0.0, *tied], zero_method="pratt", method="asymptotic").pvalue)
    assert wilcoxon([1.0, 2.0], [1.0, 2.0]).p == 1.0
    assert not wilcoxon(np.arange(51) ** 2.0, np.zeros(51) - 0.5).exact


def test_corrections_and_effect_sizes_by_hand() -> None:
    given = [0.01, 0.04, None, 0.03]
    assert [value and round(value, 9) for value in holm(given)] == [0.03, 0.06, None, 0.06]
    assert [value and round(value, 9) for value in benjamini_hochberg(given)] == [0.03, 0.04, None, 0.04]
    assert (holm([0.6, 0.9]), holm([]), benjamini_hochberg([None])) == ([1.0, 1.0], [], [None])
    assert cohen_d([1.0, 2.0, 3.0], [0.0, 0.0, 0.0]) == pytest.approx(2.0)
    assert cohen_d([1.0, 1.0], [0.0, 0.0]) is None
    # Ranks of |+3|, |-1|, |+2| are 3, 1, 2.
    assert rank_biserial([3.0, 0.0, 2.0, 5.0], [0.0, 1.0, 0.0, 5.0]) == pytest.approx((5 - 1) / 6)
    assert rank_biserial([1.0], [1.0]) is None
    zeros, pairs = np.zeros(6), [0.0, 0.0, 0.0, 3.0, -1.0, -1.0]
    assert rank_biserial(pairs, zeros) == pytest.approx(0.0)
    assert rank_biserial(pairs, zeros, "pratt") < 0  # as Pratt's own ranks say


@pytest.mark.parametrize(("method", "level"), [("percentile", 0.9), ("bca", 0.9), ("bca", 0.95)])
def test_intervals_are_those_that_scipy_takes_from_the_same_draws(method: str, level: float) -> None:
    values = np.stack([A**3, B])
    draws = bootstrap_terms(values, resamples=2000, seed=5)
    named = {"confidence_level": level, "method": "percentile" if method == "percentile" else "BCa"}
    for pair, sample, mine in (
        ((0,), values[0], draws.replicates[0]),
        ((0, 1), values[0] - values[1], draws.replicates[0] - draws.replicates[1]),
    ):
        found = draws.interval(*pair, level=level, method=method)
        earlier = SimpleNamespace(bootstrap_distribution=mine)  # scipy goes on from a distribution that it is given
        expected = stats.bootstrap((sample,), np.mean, n_resamples=0, bootstrap_result=earlier, **named)
        assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval), abs=1e-9)
        assert (found.level, found.method) == (level, method)
    # And the distribution is that of scipy's own draws.
    draws = bootstrap_terms(A[None], resamples=20_000, seed=1)
    own = stats.bootstrap((A,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(2))
    found = draws.interval(0)
    assert (found.low, found.high) == pytest.approx(tuple(own.confidence_interval), abs=0.003)
    assert draws.replicates.std() == pytest.approx(own.standard_error, rel=0.03)


ALIGNED = trials(
    ("q1", "d1", 0.9, True, True),
    ("q1", "d1", 0.8, True, False),
    ("q1", "d2", None, None, True),
    ("q2", "d3", 0.7, True, True),
    ("q2", "d1", 0.6, True, False),
    ("q3", "d2", 0.5, None, False),  # a query without references need not be decided
)
DOCUMENTS = pa.table({"doc_id": ["d3", "d1", "d2", "d1"], "seconds": [100.0, 100.0, 50.0, 50.0]})


def test_counts_of_parts_are_those_of_the_whole() -> None:
    whole = DocumentCounts.of(ALIGNED, DOCUMENTS)
    assert whole.documents == ("d1", "d2", "d3")
    assert whole.microseconds.tolist() == [150_000_000, 50_000_000, 100_000_000]
    assert (whole.begin.tolist(), whole.counts.sum(axis=1).tolist()) == ([0, 2, 4], [3, 2, 2])
    parts = [DocumentCounts.of(ALIGNED.filter(pc.equal(ALIGNED["query_id"], q)), DOCUMENTS) for q in ("q3", "q2", "q1")]
    joined = DocumentCounts.concat(parts)
    assert (joined.queries, joined.begin.tolist()) == (whole.queries, whole.begin.tolist())
    np.testing.assert_array_equal(joined.counts, whole.counts)
    with raises(families.CONFLICTING_ROWS):
        DocumentCounts.concat([whole, parts[1]])


def test_the_jackknife_leaves_each_document_out() -> None:
    """Against the definition: the value of the list and the documents without it; and nothing of documents x documents."""
    rng = np.random.default_rng(4)
    rows = [
        (f"q{rng.integers(9)}", f"d{rng.integers(40):02d}", float(rng.random()), *(rng.random(2) < (0.5, 0.6)).tolist())
        for _ in range(400)
    ]
    seconds = rng.integers(5, 60, 40).astype(float)
    documents = pa.table({"doc_id": [f"d{k:02d}" for k in range(40)], "seconds": seconds})
    aligned = trials(*sorted(rows))
    found = bootstrap_documents([DocumentCounts.of(aligned, documents)], beta=3.0, resamples=2)
    for k in range(40):
        rest = aligned.filter(pc.not_equal(aligned["doc_id"], f"d{k:02d}"))
        left = int(np.rint(seconds.sum() - seconds[k]))
        value = per_term(rest, trials=left, beta=3.0)["twv"].drop_null().to_numpy().mean()
        assert found.jackknife[0, k] == pytest.approx(value, rel=1e-12)
    many = 20_000
    documents = pa.table({"doc_id": [f"d{k}" for k in range(many)], "seconds": np.full(many, 10.0)})
    counts = DocumentCounts.of(trials(("q", "d7", 0.9, True, True), ("q", "d8", 0.4, True, False)), documents)
    tracemalloc.start()
    found = bootstrap_documents([counts], beta=1.0, resamples=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.jackknife.shape == (1, many)
    assert peak < 100 * 8 * many  # documents x documents are 3.2 GB


def test_documents_must_be_known_the_same_and_drawn() -> None:
    with raises(codes.UNSEARCHED_DOCUMENT, doc_id="d3"):
        DocumentCounts.of(ALIGNED, DOCUMENTS.slice(1))
    with raises(codes.UNDECIDED_DETECTIONS):
        DocumentCounts.of(trials(("q", "d1", 0.1, None, False), ("q", "d1", None, None, True)), DOCUMENTS)
    other = pa.table({"doc_id": ["d1", "d2", "d3"], "seconds": [150.0, 50.0, 101.0]})
    with raises(codes.DIFFERENT_DOCUMENTS):
        bootstrap_documents([DocumentCounts.of(ALIGNED, one) for one in (DOCUMENTS, other)], beta=1.0)
    with raises(families.UNDEFINED):
        bootstrap_documents([DocumentCounts.of(ALIGNED.slice(0, 0), DOCUMENTS)], beta=1.0)
    aligned = trials(("q1", "d1", 0.9, True, True))
    documents = pa.table({"doc_id": ["d1", "d2"], "seconds": [10.0, 10.0]})
    found = bootstrap_documents([DocumentCounts.of(aligned, documents)], beta=1.0, resamples=400)
    assert 60 < found.undefined < 140  # a quarter of them draws d2 twice
    assert set(found.replicates[0]) == {1.0}
    found = bootstrap_terms(np.array([[0.25]]), resamples=10).interval(0, method="bca")
    assert (found.low, found.high, found.method) == (0.25, 0.25, "percentile")
    with raises(families.EMPTY_INPUT):
        bootstrap_terms(np.zeros((2, 0)))
    with raises(codes.TOO_FEW_RESAMPLES, resamples=0):
        bootstrap_terms(np.zeros((1, 3)), resamples=0)
    with raises(families.INVALID_VALUE):
        bootstrap_terms(np.zeros((1, 3)), resamples=2).interval(0, level=1.0)


def test_three_systems() -> None:
    names = [f"q{k}" for k in range(40)]
    values = {"one": A, "two": B, "half": A[:20]}
    tables = {name: table(dict(zip(names, given.tolist(), strict=False))) for name, given in values.items()}
    found = compare(tables, Settings(resamples=300))
    assert [row.system for row in found.systems] == ["one", "two", "half"]
    assert (found.systems[0].mean, found.systems[2].absent) == (pytest.approx(A.mean()), 20)
    assert [(row.first, row.second) for row in found.pairs] == [("one", "two"), ("one", "half"), ("two", "half")]
    first, second, _ = found.pairs
    assert first.difference == pytest.approx((A - B).mean())
    assert first.interval.low < first.difference < first.interval.high
    assert (first.wins, first.losses, first.ties) == (int((A > B).sum()), int((A < B).sum()), 0)
    assert (second.wins + second.losses, second.ties, second.wilcoxon.zeros) == (20, 20, 20)
    for row in found.pairs:
        assert row.t.p <= row.t_fdr <= row.t_holm <= 1
        assert row.wilcoxon.p <= row.wilcoxon_fdr <= row.wilcoxon_holm
        assert row.sign_flip.p <= row.sign_flip_fdr <= row.sign_flip_holm


SVG = "{http://www.w3.org/2000/svg}"


def test_differences_stand_on_both_sides_of_zero() -> None:
    def heights(*given: object, **how: object) -> list[float]:
        bars = ElementTree.fromstring(differences_svg(*given, **how)).findall(f"{SVG}rect")
        return [float(bar.get("height", "")) for bar in bars]

    first, none, last = heights([0.5, -0.25, 0.0])
    assert (first, none) == (pytest.approx(2 * last, abs=0.2), 0)
    assert not any(heights([]))
    assert len(heights(np.random.default_rng(1).normal(size=5000))) == 560  # pixels, which more queries share
    alone, beside = (heights([0.1, -0.1], reach=reach)[0] for reach in (None, (-1.0, 1.0)))
    assert alone == pytest.approx(10 * beside, rel=0.1)


NUMBER_OF_TRIALS, QUERIES, BETA = 400, 12, 20.0


def ten_queries(seed: int, quality: float, noise: int = 0) -> pa.Table:
    """Trials of ten queries of twelve: the references are the same whatever the seed."""
    truth, rng = np.random.default_rng(5), np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for q in range(10):
        for _ in range(int(truth.integers(2, 6))):
            found = rng.random() < 0.8
            score = float(rng.normal(quality)) if found else None
            rows.append({"query_id": f"q{q}", "score": score, "ref_start": 1.0})
        rows += [{"query_id": f"q{q}", "score": float(s), "ref_start": None} for s in rng.normal(size=40 + noise)]
    kinds = [("query_id", pa.string()), ("score", pa.float64()), ("ref_start", pa.float64())]
    return pa.Table.from_pylist(rows, pa.schema(kinds))


def compared(lists: dict[str, pa.Table], **keywords: Any) -> Entropies:
    given = {name: [table] for name, table in lists.items()}
    return compare_entropies(
        given, trials=NUMBER_OF_TRIALS, queries=QUERIES, prior=prior_of_beta(BETA), **{"resamples": 200, **keywords}
    )


def test_a_draw_is_the_list_of_the_queries_that_were_drawn() -> None:
    """Held against the measure itself, on lists in which a query that was drawn twice stands twice."""
    table, prior = ten_queries(1, 1.5), prior_of_beta(BETA)
    known = ByQuery.of([table], trials=NUMBER_OF_TRIALS, queries=QUERIES)
    (weights,) = draws_of(QUERIES, 5, 0)
    found, _ = _least(known, np.ascontiguousarray(weights[: len(known.queries)].T), NUMBER_OF_TRIALS, QUERIES, prior)
    names = np.array(table["query_id"].to_pylist())
    for draw, value in zip(weights.T, found, strict=True):
        parts = []
        for k, name in enumerate(known.queries):
            mine = table.filter(pa.array(names == name))
            for n in range(int(draw[k])):
                parts.append(mine.set_column(0, "query_id", pa.array([f"{name} {n}"] * mine.num_rows)))
        drawn = Trials.of_aligned(pa.concat_tables(parts), trials=NUMBER_OF_TRIALS, queries=QUERIES)
        assert value == pytest.approx(cnxe_min(drawn, prior).cnxe, rel=1e-6)


def test_bins_change_little() -> None:
    table, prior = ten_queries(1, 1.5, noise=300), prior_of_beta(BETA)
    whole = ByQuery.of([table], trials=NUMBER_OF_TRIALS, queries=QUERIES, bins=10**6)
    assert len(whole.score) > 3000
    few = ByQuery.of([table], trials=NUMBER_OF_TRIALS, queries=QUERIES)
    assert len(few.score) <= 513
    once = np.ones((1, 10))
    values = [_least(one, once, NUMBER_OF_TRIALS, QUERIES, prior)[0][0] for one in (whole, few)]
    assert values[0] == pytest.approx(cnxe_min(whole.trials, prior).cnxe, rel=1e-6)
    assert values[1] == pytest.approx(values[0], abs=3e-4)
    assert few.true.sum() == whole.true.sum()


def test_a_better_system_is_told_from_a_worse_and_what_cannot_be_compared() -> None:
    good, bad = ten_queries(1, 2.5), ten_queries(2, 0.3)
    found = compared({"good": good, "same": good, "bad": bad})
    values = {row.system: row for row in found.systems}
    trials = Trials.of_aligned(good, trials=NUMBER_OF_TRIALS, queries=QUERIES)
    assert values["good"].value == cnxe_min(trials, prior_of_beta(BETA)).cnxe
    assert values["good"].interval.low < values["good"].value < values["good"].interval.high
    same, worse, _ = found.pairs
    assert (same.difference, same.p, same.p_holm) == (0.0, 1.0, 1.0)
    assert worse.difference < 0
    assert worse.interval.high < 0
    assert worse.p == pytest.approx(2 / 201)
    assert worse.p_holm == pytest.approx(6 / 201)
    assert compared({"good": good, "same": good, "bad": bad}) == found
    assert compared({"good": good, "bad": bad}, seed=1).pairs[0].interval != worse.interval
    table = ten_queries(1, 1.0)
    with raises(codes.DIFFERENT_REFERENCES):
        compared({"one": table, "two": table.filter(table["ref_start"].is_null())})
    with raises(codes.TOO_MANY_QUERIES):
        compare_entropies({"one": [table]}, trials=NUMBER_OF_TRIALS, queries=3, prior=prior_of_beta(BETA))
    with raises(codes.TOO_FEW_RESAMPLES, resamples=0):
        compared({"one": table}, resamples=0)
