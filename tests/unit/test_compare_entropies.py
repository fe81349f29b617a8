"""Min Cnxe beside each other: what is observed, what a draw is, and what the test says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from swsdist.core.codes import score as codes
from swsdist.score.compare.bootstrap import draws_of
from swsdist.score.compare.cross_entropy import ByQuery, Entropies, _least, compare_entropies
from swsdist.score.measures.cnxe import Trials, cnxe_min
from swsdist.score.measures.protocol import prior_of_beta
from tests.support.coded import raises

TRIALS, QUERIES, BETA = 400, 12, 20.0


def aligned(seed: int, quality: float, noise: int = 0) -> pa.Table:
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
        given, trials=TRIALS, queries=QUERIES, prior=prior_of_beta(BETA), **{"resamples": 200, **keywords}
    )


def test_a_draw_is_the_list_of_the_queries_that_were_drawn() -> None:
    """Held against the measure itself, on lists in which a query that was drawn twice stands twice."""
    table, prior = aligned(1, 1.5), prior_of_beta(BETA)
    counted = ByQuery.of([table], trials=TRIALS, queries=QUERIES)
    (weights,) = draws_of(QUERIES, 5, 0)
    found, _ = _least(counted, np.ascontiguousarray(weights[: len(counted.queries)].T), TRIALS, QUERIES, prior)
    names = np.array(table["query_id"].to_pylist())
    for draw, value in zip(weights.T, found, strict=True):
        parts = []
        for k, name in enumerate(counted.queries):
            mine = table.filter(pa.array(names == name))
            for n in range(int(draw[k])):
                parts.append(mine.set_column(0, "query_id", pa.array([f"{name} {n}"] * mine.num_rows)))
        drawn = Trials.of_aligned(pa.concat_tables(parts), trials=TRIALS, queries=QUERIES)
        assert value == pytest.approx(cnxe_min(drawn, prior).cnxe, rel=1e-6)


def test_bins_change_little() -> None:
    table, prior = aligned(1, 1.5, noise=300), prior_of_beta(BETA)
    whole = ByQuery.of([table], trials=TRIALS, queries=QUERIES, bins=10**6)
    assert len(whole.score) > 3000
    few = ByQuery.of([table], trials=TRIALS, queries=QUERIES)
    assert len(few.score) <= 513
    once = np.ones((1, 10))
    values = [_least(one, once, TRIALS, QUERIES, prior)[0][0] for one in (whole, few)]
    assert values[0] == pytest.approx(cnxe_min(whole.trials, prior).cnxe, rel=1e-6)
    assert values[1] == pytest.approx(values[0], abs=3e-4)
    assert few.true.sum() == whole.true.sum()


def test_a_better_system_is_told_from_a_worse_and_not_from_itself() -> None:
    good, bad = aligned(1, 2.5), aligned(2, 0.3)
    found = compared({"good": good, "same": good, "bad": bad})
    values = {row.system: row for row in found.systems}
    trials = Trials.of_aligned(good, trials=TRIALS, queries=QUERIES)
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


def test_what_cannot_be_compared_is_told() -> None:
    table = aligned(1, 1.0)
    with raises(codes.DIFFERENT_REFERENCES):
        compared({"one": table, "two": table.filter(table["ref_start"].is_null())})
    with raises(codes.TOO_MANY_QUERIES):
        compare_entropies({"one": [table]}, trials=TRIALS, queries=3, prior=prior_of_beta(BETA))
    with raises(codes.TOO_FEW_RESAMPLES, resamples=0):
        compared({"one": table}, resamples=0)
