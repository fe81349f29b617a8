"""Means and variances of frames: they add, agree with numpy, and do not depend on how a store was cut."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.core.fingerprint import stable_hash
from swsdist.core.types import DOCUMENTS
from swsdist.features.statistics import Statistics
from swsdist.store.parquet import SpooledDocuments
from swsdist.store.statistics import fitted

PARTS = st.lists(st.integers(1, 50), min_size=1, max_size=6)


def noise(seed: int, frames: int, dimension: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(frames, dimension)) * [0.01, 1, 100] + [-500, 0, 1000]).astype(np.float32)


def merged(parts: list[np.ndarray]) -> Statistics:
    total = Statistics.zero(parts[0].shape[1])
    for part in parts:
        total = total + Statistics.of(part)
    return total


@given(lengths=PARTS, seed=st.integers(0, 2**20))
def test_merged_blocks_are_numpys_whole(lengths: list[int], seed: int) -> None:
    whole = noise(seed, sum(lengths))
    found = merged(np.split(whole, np.cumsum(lengths)[:-1]))
    exact = whole.astype(np.float64)
    assert found.frames == len(whole)
    assert np.allclose(found.mean, exact.mean(axis=0), rtol=1e-9, atol=0)
    # Relative to the variance, plus what a float64 mean of this size leaves over.
    assert np.allclose(found.variance, exact.var(axis=0), rtol=1e-9, atol=1e-18)
    back = Statistics.from_variance(found.frames, found.mean.tolist(), found.variance.tolist())
    assert back.mean.tobytes() == found.mean.tobytes()
    assert np.allclose(back.scatter, found.scatter, rtol=1e-15)


@settings(max_examples=50)
@given(lengths=st.lists(st.integers(1, 50), min_size=3, max_size=3), seed=st.integers(0, 2**20))
def test_addition_is_nearly_associative_and_commutative(lengths, seed) -> None:
    one, two, three = (Statistics.of(noise(seed + k, n)) for k, n in enumerate(lengths))
    for left, right in (((one + two) + three, one + (two + three)), (one + two, two + one)):
        assert left.frames == right.frames
        assert np.allclose(left.mean, right.mean, rtol=1e-12)
        assert np.allclose(left.scatter, right.scatter, rtol=1e-9)


def test_zero_is_neutral() -> None:
    zero, one = Statistics.zero(3), Statistics.of(noise(1, 9))
    for total in (zero + one, one + zero):
        assert total.frames == 9
        assert total.mean.tobytes() == one.mean.tobytes()
        assert total.scatter.tobytes() == one.scatter.tobytes()
    assert (zero + zero).frames == 0
    assert (zero + zero).variance.tolist() == [0, 0, 0]


def test_large_means_do_not_drown_the_variance() -> None:
    values = (1e6 + np.arange(1000, dtype=np.float64) % 2)[:, None].astype(np.float32)
    assert merged([values[:500], values[500:]]).variance[0] == pytest.approx(0.25, rel=1e-9)


def test_what_prepare_is_given() -> None:
    one = Statistics.of(np.array([[1, 5], [3, 5]], np.float32))
    assert [part.tolist() for part in one.offset_and_scale("none")] == [[0, 0], [1, 1]]
    assert [part.tolist() for part in one.offset_and_scale("mean")] == [[2, 5], [1, 1]]
    # The second dimension does not vary: it is divided by 1.
    assert [part.tolist() for part in one.offset_and_scale("mean-variance")] == [[2, 5], [1, 1]]
    two = Statistics.of(np.array([[1, 5], [5, 5]], np.float32))
    assert [part.tolist() for part in two.offset_and_scale("mean-variance")] == [[3, 5], [2, 1]]


@settings(max_examples=50)
@given(lengths=st.lists(st.integers(0, 30), min_size=1, max_size=8), seed=st.integers(0, 2**20), data=st.data())
def test_a_store_adds_to_the_last_bit_as_statistics_do(lengths, seed, data) -> None:
    """Of the collection and of each speaker, in the order of the documents' keys; some have no frames, or no speaker."""
    speakers = data.draw(st.lists(st.sampled_from([None, "", "a", "b"]), min_size=len(lengths), max_size=len(lengths)))
    parts = [Statistics.of(noise(seed + k, n)) if n else Statistics.zero(3) for k, n in enumerate(lengths)]
    usual = {**dict.fromkeys(DOCUMENTS.names), "channel": 1, "path": "", "duration": 1.0, "shard": "s", "rows": 1}
    rows = [
        {**usual, "doc_id": f"d{k}", "identity": "", "sha256": str(k), "speaker": speaker}
        | {"frames": one.frames, "mean": one.mean.tolist(), "variance": one.variance.tolist()}
        for k, (one, speaker) in enumerate(zip(parts, speakers, strict=True))
    ]
    table = pa.Table.from_pylist(data.draw(st.permutations(rows)), DOCUMENTS)
    cut = data.draw(st.integers(0, len(rows)))
    found, _, anew = fitted(SpooledDocuments([table.slice(0, cut), table.slice(cut)]), 3, None, False)
    scopes = [("collection", "")] + [("speaker", name) for name in sorted(set(filter(None, speakers)))]
    assert anew
    assert [(row["scope"], row["name"]) for row in found.to_pylist()] == scopes
    for row, (_, name) in zip(found.to_pylist(), scopes, strict=True):
        mine = [k for k, speaker in enumerate(speakers) if not name or speaker == name]
        total = Statistics.zero(3)
        for k in mine:
            total = total + Statistics.from_variance(parts[k].frames, parts[k].mean, parts[k].variance)
        assert row["frames"] == total.frames
        assert np.array(row["mean"]).tobytes() == total.mean.tobytes()
        assert np.array(row["variance"]).tobytes() == total.variance.tobytes()
        assert row["taken_from"] == sorted(stable_hash(f"d{k} 1 {k}") for k in mine)
