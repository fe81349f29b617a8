"""What a reduction keeps: samples of documents, spans in each other's place, documents that sound the same."""

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdist.audio.speech import pack_marks
from swsdist.config.search import Search
from swsdist.core.types import CANDIDATES
from swsdist.kernels.suppression import claim
from swsdist.methods.sample import EVERYTHING, in_sample, sample_limit
from swsdist.reduce.examples import BEST, Bucket, best_found
from swsdist.store.same_sound import Copies, _is_same, copies

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


def test_a_sample_has_about_its_share_and_statistics_are_over_it() -> None:
    table = candidates(2000, queries=1, each=1)
    small, large = (in_sample(table, limit_of(seconds, 4000.0)) for seconds in (400.0, 1200.0))
    assert 0.045 < small.mean() < 0.08  # a sixteenth: at most a tenth is wanted
    assert 0.21 < large.mean() < 0.29  # a quarter, of three tenths
    assert limit_of(400.0, 4000.0) == limit_of(400.0, 6400.0) != limit_of(400.0, 6401.0)
    assert large[small].all()
    order = np.random.default_rng(1).permutation(2000)
    assert np.array_equal(in_sample(table.take(pa.array(order)), limit_of(400.0, 4000.0)), small[order])
    for seconds, of in ((10.0, 10.0), (10.0, 3.0), (1e9, 0.0)):
        assert in_sample(candidates(300), limit_of(seconds, of)).all()
    counts = {"seconds": 100.0, "documents": 9}
    for search in (Search(), Search(first_pass={"name": "coarse", "sample": 0})):
        assert sample_limit(search, counts) is None
    # A hundred of ten hours each, of which ten hours are wanted: an eighth, not none of them or one.
    assert limit_of(36000.0, 3600000.0, documents=100) == EVERYTHING >> 3
    table, limit = candidates(40), limit_of(1000.0, 4000.0)
    drawn = in_sample(table, limit)
    assert 0 < drawn.sum() < len(drawn)
    reduced = Bucket(**RULES, sample=limit).all_of([table])
    assert reduced.statistics.equals(Bucket(**RULES).all_of([table.filter(pa.array(drawn))]).statistics)
    assert reduced.detections.equals(Bucket(**RULES).all_of([table]).detections)
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


def plain(score, first, last, example, overlap: float) -> tuple[list[int], list[int]]:
    """The definition, of one group."""
    order = sorted(range(len(score)), key=lambda k: (-score[k], first[k], last[k], example[k]))
    owner: list[int] = []
    for i, one in enumerate(order):
        owner.append(i)
        for j in range(i):
            common = min(last[one], last[order[j]]) - max(first[one], first[order[j]]) + 1
            shorter = min(last[one] - first[one], last[order[j]] - first[order[j]]) + 1
            if owner[j] == j and common > overlap * shorter:
                owner[i] = j
                break
    return order, owner


@pytest.mark.parametrize("seed", range(40))
def test_it_is_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 2, 31, 32, 33, 150], size=4)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    count = int(bounds[-1])
    length = rng.integers(1, rng.choice([2, 40, 4000]), size=count)
    first = rng.integers(-5, rng.choice([10, 1000, 10**7]), size=count)
    last = first + length - 1
    score = rng.choice([-0.5, 0.0, 0.25], size=count) if seed % 2 else rng.normal(size=count)
    example = rng.integers(1, 4, size=count)
    overlap = float(rng.choice([0.0, 0.5, 1.0]))
    order, owner = np.empty(count, np.int64), np.empty(count, np.int64)
    claim(bounds, score, first, last, example, overlap, order, owner)
    for a, b in pairwise(bounds):
        expected = plain(score[a:b], first[a:b], last[a:b], example[a:b], overlap)
        assert (owner[a:b] - a).tolist() == expected[1]
        for k in range(a, b):  # spans that are equal in all may change places
            other = a + expected[0][k - a]
            assert all(column[order[k]] == column[other] for column in (score, first, last, example))


COLUMNS = 13


def document(rng: np.random.Generator, name: str) -> dict[str, Any]:
    frames = int(rng.integers(200, 400))
    speech = np.repeat(rng.random(frames // 20 + 1) < 0.6, 20)[:frames]
    speech[:60] = np.arange(60) < 30
    mean, variance = rng.normal(size=COLUMNS), np.exp(rng.normal(0, 0.2, COLUMNS))
    return row(name, frames, speech, mean, variance)


def row(name: str, frames: int, speech: Any, mean: Any, variance: Any, duration: float | None = None) -> dict[str, Any]:
    when = {"doc_id": name, "channel": 1, "recording": None, "start": None, "duration": duration or frames / 100}
    return {**when, "frames": frames, "mean": list(mean), "variance": list(variance), "speech": pack_marks(speech)}


def coded(rng: np.random.Generator, of: dict[str, Any], name: str) -> dict[str, Any]:
    """The same sound, as coding changes it at most."""
    frames, variance = of["frames"], np.array(of["variance"])
    speech = np.unpackbits(np.frombuffer(of["speech"], np.uint8), count=frames, bitorder="little").astype(bool)
    speech[: frames // 50] ^= True
    mean = np.array(of["mean"]) + rng.choice([-1, 1], COLUMNS) * 0.02 * np.sqrt(variance.min())
    return row(name, frames, speech, mean, variance * 1.1, of["duration"] + rng.choice([-1, 1]) * 0.04)


@given(st.integers(0, 10_000), st.integers(2, 40))
def test_copies_and_only_they(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [document(rng, f"d{k:02}") for k in range(count)]
    chosen = [each for each in rows if rng.random() < 0.4]
    rows += [coded(rng, each, f"{each['doc_id']}-copy") for each in chosen]
    rows += [{**each, "doc_id": f"a-{each['doc_id']}"} for each in chosen[:3]]
    expected = {}
    for k, each in enumerate(chosen):
        first = f"a-{each['doc_id']}" if k < 3 else each["doc_id"]
        expected |= {(name, 1): (first, 1) for name in (each["doc_id"], f"{each['doc_id']}-copy") if name != first}
    rng.shuffle(rows)  # type: ignore[arg-type]
    schema = pa.Table.from_pylist(rows[:1]).schema.set(3, pa.field("start", pa.float64()))
    assert copies(pa.Table.from_pylist(rows, schema.set(2, pa.field("recording", pa.string())))) == expected


def test_hits_of_one_sound_are_one() -> None:
    same = Copies({("b", 1): ("a", 1), ("b", 2): ("a", 1), ("a", 2): ("a", 1)})
    hits = [("b", 1, 1.02), ("a", 2, 1.0), ("a", 1, 1.0), ("c", 1, 1.0), ("a", 1, 1.3), ("b", 1, 1.31)]
    rows = [
        {"doc_id": name, "channel": channel, "start": start, "end": start + 0.5, "score": -k}
        for k, (name, channel, start) in enumerate(hits)
    ]
    joined = [[(row["doc_id"], row["channel"]) for row in hit] for hit in same.joined(rows)]
    assert joined == [[("a", 1), ("a", 2), ("b", 1)], [("c", 1)], [("a", 1), ("b", 1)]]
    assert same.also(("a", 1)) == ["b"]
    assert same.most == 4


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40), st.integers(1, 25)), max_size=40))
def test_a_hit_takes_the_first_of_its_time(places: list[tuple[str, int, int]]) -> None:
    same = Copies({("b", 1): ("a", 1)})
    rows = [
        {"doc_id": name, "channel": 1, "start": start / 8, "end": (start + length) / 8, "score": -k}
        for k, (name, start, length) in enumerate(places)
    ]
    hits: list[list[dict[str, Any]]] = []
    for row in rows:
        alike = (hit for hit in hits if same.first((hit[0]["doc_id"], 1)) == same.first((row["doc_id"], 1)))
        first = next((hit for hit in alike if _is_same(hit, row)), None)
        hits.append([row]) if first is None else first.append(row)
    assert same.joined(rows) == [sorted(hit, key=lambda row: row["doc_id"]) for hit in hits]
