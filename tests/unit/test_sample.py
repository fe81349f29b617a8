"""The sample of documents that a search with a first pass searches exactly, and the statistics over it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from swsdist.config.search import Search
from swsdist.core.types import CANDIDATES
from swsdist.methods.sample import EVERYTHING, in_sample, sample_limit
from swsdist.reduce.examples import BEST, Bucket, best_found

RULES = {"tick": 0.01, "overlap": 0.5, "nbest": 50, "system": "", "statistics": ("cost-sums",)}


def candidates(documents: int, queries: int = 3, each: int = 4) -> pa.Table:
    rng = np.random.default_rng(0)
    q, d, k = (column.ravel() for column in np.mgrid[:queries, :documents, :each])
    names = {"query_id": [f"q{n}" for n in q], "doc_id": [f"d{n}" for n in d], "slot": 0 * q, "example": 0 * q + 1}
    places = {"channel": 1 + d % 2, "first": 100 * k, "last": 100 * k + 40, "scale": 0 * q + 2048 * 40}
    columns = {**names, **places, "cost": rng.integers(1, 10**6, len(q))}
    return pa.table({name: columns[name] for name in CANDIDATES.names}).cast(CANDIDATES)


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


def test_a_sample_may_be_everything_or_none_and_has_some_of_long_recordings() -> None:
    for seconds, of in ((10.0, 10.0), (10.0, 3.0), (1e9, 0.0)):
        assert in_sample(candidates(300), limit_of(seconds, of)).all()
    counts = {"seconds": 100.0, "documents": 9}
    for search in (Search(), Search(first_pass={"name": "coarse", "sample": 0})):
        assert sample_limit(search, counts) is None
    # A hundred of ten hours each, of which ten hours are wanted: an eighth, not none of them or one.
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
