"""Likely is what four fifths of are right on queries that it was not fitted on; where that cannot be, it is not said."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdist.core.types import TRIALS
from swsdist.report.answers.promise import CALLED, RIGHT, fit_promise, precision_at


def trials_of(seed: int, queries: int, hits: int, apart: float) -> pa.Table:
    """Three right hits a query, whose scores are so many deviations above those of the others; and a miss."""
    random = np.random.default_rng(seed)
    rows = []
    for query in range(queries):
        for k in range(hits):
            right = k < 3
            rows.append((f"q{query:03d}", float(random.normal(apart if right else 0.0)), 1.0 if right else None))
        rows.append((f"q{query:03d}", None, 1.0))
    whole = {
        "query_id": [row[0] for row in rows],
        "score": [row[1] for row in rows],
        "ref_start": [row[2] for row in rows],
    }
    values = {"doc_id": "d", "channel": 1, "start": 0.0, "end": 1.0, "decision": False, "ref_end": None}
    return pa.table(
        {f.name: pa.array(whole.get(f.name, [values.get(f.name)] * len(rows)), f.type) for f in TRIALS}, TRIALS
    )


@given(seed=st.integers(0, 10**6), apart=st.floats(0, 8))
def test_a_promise_that_is_kept_holds_for_queries_that_nobody_has_seen(seed: int, apart: float) -> None:
    """Of many others drawn alike, with some room for chance."""
    found = fit_promise(trials_of(seed, 60, 20, apart))
    if found.is_kept:
        others = precision_at(trials_of(seed + 1, 300, 20, apart), found.threshold)
        assert others.right >= RIGHT - 0.12
        assert others.called >= CALLED - 0.12


def test_where_hits_are_told_apart_it_is_kept() -> None:
    assert fit_promise(trials_of(1, 60, 20, 6.0)).is_kept


@pytest.mark.parametrize("queries", [0, 1, 3])
def test_of_few_or_of_none_nothing_is_promised(queries: int) -> None:
    assert not fit_promise(trials_of(1, queries, 6, 6.0)).is_kept


def test_where_hits_are_alike_it_is_not() -> None:
    assert not fit_promise(trials_of(1, 200, 20, 0.5)).is_kept


def test_equal_scores_are_called_alike() -> None:
    """A threshold stands below all hits of one score, so what is right of them all is what counts."""
    table = trials_of(1, 60, 20, 6.0)
    ones = pa.array([None if score is None else 1.0 for score in table["score"].to_pylist()])
    found = fit_promise(table.set_column(table.schema.get_field_index("score"), "score", ones))
    assert found.threshold == float("inf")
    assert not found.is_kept
