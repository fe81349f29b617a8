"""The sample of documents that a search with a first pass searches exactly, and the statistics over it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from swsdist.config.search import Search
from swsdist.core.types import CANDIDATES
from swsdist.methods.sample import EVERYTHING, in_sample, sample_limit
from swsdist.reduce.examples import BEST, Bucket, best_found

RULES = {"tick": 0.01, "overlap": 0.5, "nbest": 50, "system": "", "statistics": ("cost-sums",)}


def candidates(documents: int, queries: int = 3, each: int = 4) -> pa.Table:
    rng = np.random.default_rng(0)
    rows = [
        {
            "slot": 0,
            "query_id": f"q{q}",
            "example": 1,
            "doc_id": f"d{d}",
            "channel": 1 + d % 2,
            "first": 100 * k,
            "last": 100 * k + 40,
            "cost": int(rng.integers(1, 10**6)),
            "scale": 2048 * 40,
        }
        for q in range(queries)
        for d in range(documents)
        for k in range(each)
    ]
    return pa.Table.from_pylist(rows, CANDIDATES)


def limit_of(seconds: float, of: float, documents: int = 2000) -> int:
    counts = {"seconds": of, "documents": documents}
    limit = sample_limit(Search(first_pass={"name": "coarse", "sample": seconds}), counts)
    assert limit is not None
    return limit


def test_a_sample_has_about_its_share_and_grows_by_documents() -> None:
    table = candidates(2000, queries=1, each=1)
    small, large = (in_sample(table, limit_of(seconds, 4000.0)) for seconds in (400.0, 1200.0))
    assert 0.045 < small.mean() < 0.08  # a sixteenth: at most a tenth is wanted
    assert 0.21 < large.mean() < 0.29  # a quarter, of three tenths
    assert limit_of(400.0, 4000.0) == limit_of(400.0, 6400.0) != limit_of(400.0, 6401.0)
    assert large[small].all()
    order = np.random.default_rng(1).permutation(2000)
    assert np.array_equal(in_sample(table.take(pa.array(order)), limit_of(400.0, 4000.0)), small[order])


@pytest.mark.parametrize(("seconds", "of"), [(10.0, 10.0), (10.0, 3.0), (1e9, 0.0)])
def test_a_sample_may_be_everything(seconds: float, of: float) -> None:
    assert in_sample(candidates(300), limit_of(seconds, of)).all()


def test_without_a_first_pass_or_sample_statistics_are_over_everything() -> None:
    counts = {"seconds": 100.0, "documents": 9}
    assert sample_limit(Search(), counts) is None
    assert sample_limit(Search(first_pass={"name": "coarse", "sample": 0}), counts) is None


def test_a_sample_of_long_recordings_has_some() -> None:
    """A hundred of ten hours each, of which ten hours are wanted: an eighth, not none of them or one."""
    assert limit_of(36000.0, 3600000.0, documents=100) == EVERYTHING >> 3


def test_statistics_are_over_the_sample() -> None:
    table, limit = candidates(40), limit_of(1000.0, 4000.0)
    drawn = in_sample(table, limit)
    assert 0 < drawn.sum() < len(drawn)
    reduced = Bucket(**RULES, sample=limit).all_of([table])
    assert reduced.statistics.equals(Bucket(**RULES).all_of([table.filter(pa.array(drawn))]).statistics)
    assert reduced.detections.equals(Bucket(**RULES).all_of([table]).detections)


def test_a_query_without_candidates_there_has_statistics_over_all_that_it_has() -> None:
    table, limit = candidates(40), limit_of(1000.0, 4000.0)
    drawn = pa.array(in_sample(table, limit))
    absent = table.filter(pa.array(~drawn.to_numpy(zero_copy_only=False) & (table["query_id"].to_numpy() == "q1")))
    others = table.filter(pa.array(table["query_id"].to_numpy() != "q1"))
    found = Bucket(**RULES, sample=limit).all_of([absent, others]).statistics
    expected = Bucket(**RULES).all_of([absent, others.filter(pa.array(in_sample(others, limit)))]).statistics
    assert found.equals(expected)


def test_best_hits_that_were_found() -> None:
    table = candidates(40)
    assert best_found([table], [table], tick=0.01, overlap=0.5) == (3 * BEST, 3 * BEST)
    best = Bucket(**{**RULES, "nbest": 1}).all_of([table]).detections
    lost = set(zip(best["query_id"].to_pylist(), best["cost"].to_pylist(), strict=True))
    kept = [pair not in lost for pair in zip(table["query_id"].to_pylist(), table["cost"].to_pylist(), strict=True)]
    assert best_found([table], [table.filter(pa.array(kept))], tick=0.01, overlap=0.5) == (3 * BEST, 3 * BEST - 3)
