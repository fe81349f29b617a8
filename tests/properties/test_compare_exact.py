"""Comparisons and breakdowns against their definitions."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.core.types import TRIALS
from swsdist.score.compare import bootstrap
from swsdist.score.compare.bootstrap import DocumentCounts, bootstrap_documents, bootstrap_terms
from swsdist.score.compare.breakdown import Aligned, breakdown, by_document, difference, grouped
from swsdist.score.compare.paired import Settings, compare, holm, paired, sign_flips, wilcoxon
from swsdist.score.measures.curve import Counts
from swsdist.score.measures.twv import atwv, per_term
from tests.oracles import compare as oracle
from tests.oracles.compare import Occurrences

BETA = 7.0
SECONDS = {"d1": 40, "d2": 25, "d3": 60}
DOCUMENTS = pa.table({"doc_id": [*SECONDS], "seconds": [float(s) for s in SECONDS.values()], "kind": ["x", "y", "x"]})

#: A row of an aligned list: query, document, and what it is.
ROW = st.tuples(
    st.sampled_from(["a", "b", "c", "d"]),
    st.sampled_from([*SECONDS]),
    st.sampled_from(["hit", "hit decided NO", "false alarm", "false alarm decided NO", "miss"]),
)
REFERENCED = st.lists(ROW, max_size=40).filter(lambda rows: any(not kind.startswith("false") for _, _, kind in rows))


def aligned(rows: list[tuple[str, str, str]]) -> pa.Table:
    def one(query: str, document: str, kind: str) -> dict:
        found = {"start": 0.0, "end": 1.0, "score": 0.5, "decision": "NO" not in kind} if kind != "miss" else {}
        true = {} if kind.startswith("false") else {"ref_start": 0.0, "ref_end": 1.0}
        return {"query_id": query, "doc_id": document, "channel": 1, **found, **true}

    return pa.Table.from_pylist([one(*row) for row in rows], TRIALS)


def whole(table: pa.Table) -> float:
    return atwv(Counts.of(table), trials=sum(SECONDS.values()), beta=BETA).twv


def scored(table: pa.Table) -> pa.Table:
    terms = per_term(table, trials=sum(SECONDS.values()), beta=BETA)
    return terms.filter(pc.greater(terms["ntrue"], 0)).sort_by("query_id")


BINS = st.sampled_from([None, "unit", "q1", "q3", "0", "0.5,1,2.5", "-1,40"])


@given(REFERENCED, BINS, st.randoms(use_true_random=False))
def test_parts_add_up_to_the_whole(rows: list[tuple[str, str, str]], bins: str | None, random) -> None:
    table = aligned(rows)
    terms = scored(table)
    column = [random.choice([None, 0.0, 0.25, 1.0, 3.5]) for _ in range(terms.num_rows)]
    groups = grouped(pa.array(column, pa.float64()), bins)
    parts = breakdown(terms, groups).to_pylist()
    assert sum(part["terms"] for part in parts) == terms.num_rows
    assert math.fsum(part["total"] for part in parts) == pytest.approx(whole(table), abs=1e-12)
    weighed = math.fsum(part["terms"] * part["twv"] for part in parts if part["terms"]) / terms.num_rows
    assert weighed == pytest.approx(whole(table), abs=1e-12)
    for name in ("ntrue", "ncorr", "nfa", "nmiss"):
        assert sum(part[name] for part in parts) == pc.sum(terms[name]).as_py()


def group_maximum(table: pa.Table, queries: list[str], trials: int) -> tuple[Fraction, float | None]:
    """The greatest mean value of these queries over all thresholds, the lowest of the equal ones; None rejects all."""
    rows = [row for row in table.to_pylist() if row["query_id"] in queries]
    found = []
    for threshold in [*sorted({row["score"] for row in rows if row["score"] is not None}), math.inf]:
        values = []
        for query in queries:
            mine = [row for row in rows if row["query_id"] == query]
            ntrue = sum(row["ref_start"] is not None for row in mine)
            yes = [row for row in mine if row["score"] is not None and row["score"] >= threshold]
            hits = sum(row["ref_start"] is not None for row in yes)
            values.append(Fraction(hits, ntrue) - Fraction(BETA) * Fraction(len(yes) - hits, trials - ntrue))
        found.append((sum(values, Fraction(0)) / len(values), threshold))
    best = max(value for value, _ in found)
    threshold = next(threshold for value, threshold in found if value == best)
    return best, None if threshold == math.inf else threshold


@given(REFERENCED, st.lists(st.integers(0, 4), min_size=40, max_size=40), st.data())
def test_maxima_of_groups(rows: list[tuple[str, str, str]], scores: list[int], data: st.DataObject) -> None:
    """Each is the best of the group's own curve, however the list is cut."""
    table, trials = aligned(rows), sum(SECONDS.values())
    drawn = [None if kind == "miss" else score / 4 for (_, _, kind), score in zip(rows, scores, strict=False)]
    table = table.set_column(table.schema.get_field_index("score"), "score", pa.array(drawn, pa.float64()))
    terms = scored(table)
    kinds = data.draw(st.lists(st.sampled_from(["x", "y", None]), min_size=terms.num_rows, max_size=terms.num_rows))
    parts = [table.filter(pc.is_in(table["query_id"], value_set=pa.array(cut))) for cut in (["b", "d"], ["a", "c"])]
    groups = grouped(pa.array(kinds, pa.string()))
    found = breakdown(terms, groups, Aligned(parts, trials, BETA)).to_pylist()
    assert found == breakdown(terms, groups, Aligned([table], trials, BETA)).to_pylist()
    for group in found:
        queries = [q for q, kind in zip(terms["query_id"].to_pylist(), kinds, strict=True) if kind == group["group"]]
        best, threshold = group_maximum(table, queries, trials)
        assert group["mtwv"] == pytest.approx(float(best), abs=1e-12)
        assert group["mtwv_threshold"] == threshold


@given(REFERENCED, st.lists(st.booleans(), min_size=40, max_size=40), BINS)
def test_parts_of_a_difference_and_counts_of_document_groups_add_up(rows, flips, bins) -> None:
    other = [
        (q, d, "miss" if flip and kind == "hit" else kind) for (q, d, kind), flip in zip(rows, flips, strict=False)
    ]
    one, two = scored(aligned(rows)), scored(aligned(other))
    parts = difference(one, two, grouped(one["ntrue"], bins)).to_pylist()
    expected = whole(aligned(rows)) - whole(aligned(other))
    assert math.fsum(part["total"] for part in parts) == pytest.approx(expected, abs=1e-12)
    for part in parts:
        if part["terms"]:
            assert part["first"] - part["second"] == pytest.approx(part["mean"], abs=1e-12)
    groups = by_document(aligned(rows), DOCUMENTS, "kind", trials_per_second=1.0, beta=BETA).to_pylist()
    for name in ("ntrue", "ncorr", "nfa", "nmiss"):
        assert sum(part[name] for part in groups) == pc.sum(one[name]).as_py()
    for part in groups:
        kinds = zip(SECONDS, DOCUMENTS["kind"].to_pylist(), strict=True)
        drawn = [name for name, kind in kinds if kind == part["group"]]
        value = oracle.drawn_twv(drawn, SECONDS, occurrences(rows), beta=BETA)
        assert part["twv"] == (None if value is None else pytest.approx(float(value), abs=1e-12))


@given(st.lists(st.integers(-60, 60), min_size=1, max_size=9))
def test_exact_tests_count_all_signs(differences: list[int]) -> None:
    (found,) = sign_flips([([value / 1000 for value in differences], [0.0] * len(differences))])
    assert found.exact
    exactly = oracle.sign_flip([Fraction(value, 1000) for value in differences])
    assert found.p == pytest.approx(float(exactly), rel=1e-12)
    if ranked := list({abs(value): value for value in differences if value}.values()):  # neither zeros nor ties
        found = wilcoxon(ranked, [0] * len(ranked))
        assert found.exact
        assert found.p == pytest.approx(float(oracle.signed_rank(ranked)), rel=1e-12)


#: A query's value: mostly a hit, else false alarms that cost more, so that ranks and means often disagree.
VALUES = st.lists(st.sampled_from([1.0, 1.0, 1.0, 0.5, 0.98, -0.7, -9.0]), min_size=18, max_size=18)


@given(st.lists(VALUES, min_size=3, max_size=3))
def test_a_star_is_evidence_for_the_greater_mean(rows: list[list[float]]) -> None:
    """p is twice the part of all signs whose mean lies as far on the difference's own side, whatever else is compared."""
    tables = systems(**{f"s{k}": row for k, row in enumerate(rows)})
    for pair in compare(tables, Settings(resamples=1)).pairs:
        values = np.array(rows[int(pair.first[1])]) - rows[int(pair.second[1])]
        sums = np.zeros(1)
        for value in values:
            sums = np.concatenate([sums + value, sums - value])
        favourable = float((sums * np.sign(pair.difference) >= abs(values.sum()) - 1e-9).mean())
        exactly = min(1.0, 2 * favourable)
        assert pair.sign_flip.p == pytest.approx(exactly, abs=1e-12 if pair.sign_flip.exact else 0.01)
        alone = compare({name: tables[name] for name in (pair.first, pair.second)}, Settings(resamples=1)).pairs[0]
        assert alone.sign_flip == pair.sign_flip


def systems(**rows: Any) -> dict[str, pa.Table]:
    return {
        name: pa.table({"query_id": [f"q{k:03}" for k in range(len(row))], "ntrue": [1] * len(row), "twv": row})
        for name, row in rows.items()
    }


def test_ranks_may_favour_the_lesser_mean() -> None:
    """A hundred queries a little better, twenty much worse: Wilcoxon's p is small, for the worse system."""
    second = np.r_[np.full(100, -0.01), np.full(20, 0.5)] + np.linspace(0, 1e-4, 120)
    (pair,) = compare(systems(a=np.zeros(120), b=second), Settings(resamples=1)).pairs
    assert pair.difference < 0 < pair.rank_biserial
    assert pair.wilcoxon_holm < 0.001
    assert pair.sign_flip_holm == pair.sign_flip.p < 0.001  # in favour of b, as the interval is


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=7))
def test_holm_gives_the_least_level_that_rejects(thousandths: list[int]) -> None:
    p = [value / 1000 for value in thousandths]
    assert holm(p) == pytest.approx(oracle.holm(p), abs=1e-12)


@given(REFERENCED, st.randoms(use_true_random=False))
def test_the_order_of_rows_and_systems_does_not_matter(rows: list[tuple[str, str, str]], random) -> None:
    one = per_term(aligned(rows), trials=125, beta=BETA)
    two = per_term(aligned([(q, d, "miss" if k == "hit" else k) for q, d, k in rows]), trials=125, beta=BETA)
    order = list(range(one.num_rows))
    random.shuffle(order)
    straight = compare({"one": one, "two": two}, Settings(resamples=20)).pairs[0]
    turned = compare({"two": two.take(order), "one": one.take(order[::-1])}, Settings(resamples=20)).pairs[0]
    assert turned.difference == -straight.difference
    assert (turned.interval.low, turned.interval.high) == pytest.approx(
        (-straight.interval.high, -straight.interval.low), abs=1e-12
    )
    assert (turned.wilcoxon.p, turned.wins, turned.losses) == (straight.wilcoxon.p, straight.losses, straight.wins)
    assert paired({"one": one, "two": two}).values.mean(axis=1)[0] == pytest.approx(whole(aligned(rows)), abs=1e-12)


def occurrences(rows: list[tuple[str, str, str]]) -> dict[tuple[str, str], Occurrences]:
    found: dict[tuple[str, str], Occurrences] = {}
    for query, document, kind in rows:
        old = found.get((query, document), Occurrences(0, 0, 0))
        true, yes = not kind.startswith("false"), kind in ("hit", "false alarm")
        found[query, document] = Occurrences(old[0] + true, old[1] + (yes and true), old[2] + (yes and not true))
    return found


def draws(units: int, resamples: int, seed: int) -> list[list[int]]:
    """What is drawn, from the generator's own numbers."""
    numbers = np.random.Generator(np.random.PCG64(seed)).random((resamples, units))
    return [[math.floor(number * units) for number in row] for row in numbers]


@settings(max_examples=80)
@given(REFERENCED, st.integers(0, 5), st.integers(1, 40))
def test_documents_drawn_are_scored_as_a_collection_of_their_own(rows, seed: int, cells: int) -> None:
    """In pieces of any size."""
    counts = DocumentCounts.of(aligned(rows), DOCUMENTS)
    found = bootstrap_documents([counts], beta=BETA, resamples=12, seed=seed)
    names = sorted(SECONDS)

    def value(drawn: list[str]) -> float | None:
        exact = oracle.drawn_twv(drawn, SECONDS, occurrences(rows), beta=BETA)
        return None if exact is None else float(exact)

    expected = [value([names[k] for k in draw]) for draw in draws(len(names), 12, seed)]
    defined = [value for value in expected if value is not None]
    assert found.undefined == len(expected) - len(defined)
    np.testing.assert_allclose(found.replicates[0], defined, atol=1e-12)
    left = [value([other for other in names if other != name]) for name in names]
    np.testing.assert_allclose(found.jackknife[0], [math.nan if one is None else one for one in left], atol=1e-12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bootstrap, "_CELLS", cells)
        other = bootstrap_documents([counts], beta=BETA, resamples=12, seed=seed)
    np.testing.assert_array_equal(found.replicates, other.replicates)
    np.testing.assert_array_equal(found.jackknife, other.jackknife)


@given(st.lists(st.integers(-4000, 1000), min_size=1, max_size=8), st.integers(0, 9))
def test_terms_drawn_are_averaged(thousandths: list[int], seed: int) -> None:
    found = bootstrap_terms(np.array([thousandths], dtype=np.float64) / 1000, resamples=9, seed=seed)
    sums = [sum(thousandths[k] for k in draw) for draw in draws(len(thousandths), 9, seed)]
    np.testing.assert_allclose(found.replicates[0], [one / len(thousandths) / 1000 for one in sums], atol=1e-12)
