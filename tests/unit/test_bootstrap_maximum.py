"""Intervals of MTWV: each draw has the maximum that the score of the drawn queries has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from swsdist.errors import UserError
from swsdist.score import Counts
from swsdist.score.compare.bootstrap import draws_of
from swsdist.score.compare.maximum import bootstrap_maximum
from swsdist.score.measures.twv import mtwv, twv_curve
from swsdist.types import TRIALS

TRIALS_OF_EACH, BETA, QUERIES = 900, 20.0, 12


def aligned(seed: int, apart: float, rows: int = 60) -> pa.Table:
    """Queries of one to five true occurrences, one of which is missed; scores in steps, so that many are equal."""
    rng = np.random.default_rng(seed)
    made: list[dict[str, Any]] = []
    rest = {**dict.fromkeys(TRIALS.names), "doc_id": "d", "channel": 1}
    for q in range(QUERIES + 1):  # the last does not occur
        ntrue = 0 if q == QUERIES else 1 + q % 5
        for k in range(ntrue):
            hit = {} if k == 4 else {"start": 0.0, "end": 0.5, "score": round(float(rng.normal(apart)), 1)}
            made.append({**rest, "query_id": f"q{q}", "ref_start": 0.0, "ref_end": 0.5, **hit})
        for _ in range(rows):
            scored = {"start": 0.0, "end": 0.5, "score": round(float(rng.normal()), 1)}
            made.append({**rest, "query_id": f"q{q}", **scored})
    return pa.Table.from_pylist(made, TRIALS)


def known(table: pa.Table, times: np.ndarray) -> float:
    """MTWV of a list in which each query stands as often as it is drawn, by other names."""
    rows = table.to_pylist()
    names = sorted({f"q{q}" for q in range(QUERIES)})
    drawn = [
        {**row, "query_id": f"{row['query_id']}.{k}"}
        for name, count in zip(names, times, strict=True)
        for k in range(int(count))
        for row in rows
        if row["query_id"] == name
    ]
    given = pa.Table.from_pylist(
        [{key: None if value != value else value for key, value in row.items()} for row in drawn]
    )
    counts = Counts.of(given.cast(TRIALS))
    return float(mtwv(twv_curve(counts, trials=TRIALS_OF_EACH, beta=BETA)).twv)


@pytest.mark.parametrize("apart", [0.0, 1.0, 3.0])
def test_each_draw_has_the_maximum_of_its_queries(apart: float) -> None:
    table = aligned(3, apart)
    found = bootstrap_maximum([table], trials=TRIALS_OF_EACH, beta=BETA, resamples=20, seed=5)
    whole = mtwv(twv_curve(Counts.of(table), trials=TRIALS_OF_EACH, beta=BETA)).twv
    assert found.observed[0] == pytest.approx(whole, abs=1e-12)
    (weights,) = draws_of(QUERIES, 20, 5)
    assert found.replicates[0] == pytest.approx([known(table, times) for times in weights.T], abs=1e-12)
    without = [known(table, np.arange(QUERIES) != q) for q in range(QUERIES)]
    assert found.jackknife[0] == pytest.approx(without, abs=1e-12)


def test_bca_takes_out_that_draws_lie_too_high() -> None:
    """A system that knows little: a maximum over thresholds of 12 queries is chance to a part."""
    found = bootstrap_maximum([aligned(7, 1.0)], trials=TRIALS_OF_EACH, beta=BETA, resamples=2000)
    assert found.replicates[0].mean() > found.observed[0]
    plain, corrected = (found.interval(0, method=method) for method in ("percentile", "bca"))
    assert corrected.method == "bca"
    assert corrected.low < plain.low
    assert corrected.high < plain.high
    assert corrected.low <= found.observed[0] <= corrected.high


def test_systems_see_the_same_draws_and_pieces_change_nothing() -> None:
    one, other = aligned(1, 2.0), aligned(2, 2.0)
    both = bootstrap_maximum([one, other], trials=TRIALS_OF_EACH, beta=BETA, resamples=50)
    alone = bootstrap_maximum([other], trials=TRIALS_OF_EACH, beta=BETA, resamples=50)
    assert np.array_equal(both.replicates[1], alone.replicates[0])


def test_what_cannot_be() -> None:
    table = aligned(1, 1.0)
    nothing = table.filter(pa.array([name == f"q{QUERIES}" for name in table["query_id"].to_pylist()]))
    for lists, trials, complaint in (
        ([nothing], 900, "no query with references"),
        ([], 900, "no query with references"),
        ([table, nothing], 900, "different references"),
        ([table], 5, "5 true occurrences in 5 trials"),
    ):
        with pytest.raises(UserError, match=complaint):
            bootstrap_maximum(lists, trials=trials, beta=BETA)
    with pytest.raises(UserError, match="0 resamples"):
        bootstrap_maximum([table], trials=900, beta=BETA, resamples=0)
