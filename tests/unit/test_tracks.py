"""Several tracks on one partition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest
import soundfile

from swsdist.config.search import Search
from swsdist.core.codes import storage as store_codes
from swsdist.features.blocks import BLOCK_FRAMES
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder
from swsdist.methods.dtw import shard
from swsdist.methods.dtw.shard import offset_and_scale
from swsdist.methods.method import tracks_read
from swsdist.store.maintaining import check, compact, refit
from swsdist.store.manifest import File, Manifest, NewTrack, Shard, commit, load
from swsdist.store.memory import Memory
from swsdist.store.reading import Store, Tracks
from swsdist.store.writing import write_tracks
from tests.support.coded import raises

RATE = 1000


class Layers:
    """Two tracks in one pass: the sample, and its double and its negative."""

    name, version, sample_rate, frame_length, hop, context, dimension = "layers", 1, RATE, 1, 1, 0, 3
    tracks = (("low", 1), ("high", 2))

    def extract(self, samples: np.ndarray) -> np.ndarray:
        return np.stack([samples, 2 * samples, -samples], axis=1)

    def describe(self) -> dict[str, Any]:
        return {}


class Longer(Layers):
    """A track of frames of two samples, one fewer a document."""

    name, frame_length, dimension = "sums", 2, 1
    tracks = (("sums", 1),)

    def extract(self, samples: np.ndarray) -> np.ndarray:
        return (samples[1:] + samples[:-1])[:, None]


TENTHS = {"a": 1.0, "b": 50.0, "c": 2.0}


@pytest.fixture
def sounds(tmp_path: Path) -> dict[str, np.ndarray]:
    found = {}
    for k, (name, tenths) in enumerate(TENTHS.items()):
        found[name] = np.random.default_rng(k).normal(scale=0.1, size=round(tenths * RATE / 10)).astype(np.float32)
        soundfile.write(tmp_path / f"{name}.wav", found[name], RATE, subtype="FLOAT")
    return found


def row(root: Path, name: str) -> dict[str, Any]:
    return {"doc_id": name, "channel": 1, "path": str(root / f"{name}.wav"), "speaker": name, "identity": "1:2"}


@pytest.fixture
def store(tmp_path: Path, sounds: dict[str, np.ndarray]) -> Store:
    """Documents a and b in one shard, c in another; three tracks of two recipes."""
    folder = Folder(str(tmp_path / "store"))
    shards, tables, rejected = [], {"low": [], "high": [], "sums": []}, []
    for k, names in enumerate(["ab", "c"]):
        rows = [row(tmp_path, name) for name in names]
        low, high = write_tracks(folder, f"{k:032x}", rows, Layers())
        (sums,) = write_tracks(folder, f"{k + 10:032x}", rows, Longer(), partition=low.outputs[0].name)
        made = {"low": low, "high": high, "sums": sums}
        files = {name: File(*one.outputs[0]) for name, one in made.items()}
        shards.append(Shard(low.outputs[0].name, files, len(names), sum(low.documents["frames"].to_pylist())))
        for name, one in made.items():
            tables[name].append(one.documents)
        rejected.append(low.rejected)
    tracks = [made_of("low", tables["low"], 1), made_of("high", tables["high"], 2), made_of("sums", tables["sums"], 1)]
    commit(folder, tracks, 0.01, shards, rejected[0])
    return Store(folder)


def made_of(name: str, tables: list[Any], dimension: int) -> NewTrack:
    return NewTrack(name, {"name": name}, dimension, pa.concat_tables(tables))


def test_each_track_is_read_by_its_name(store: Store, sounds: dict[str, np.ndarray]) -> None:
    for name, samples in sounds.items():
        assert np.array_equal(store.features(name), samples[:, None])
        assert np.array_equal(store.features(name, track="high"), np.stack([2 * samples, -samples], axis=1))
        assert np.array_equal(store.features(name, track="sums"), (samples[1:] + samples[:-1])[:, None])
    assert store.documents(track="sums")["frames"].to_pylist() == [99, 4999, 199]
    assert np.allclose(store.documents(track="high").to_pylist()[0]["mean"][0], 2 * sounds["a"].mean())
    assert store.statistics("high")["speaker", "c"].mean.shape == (2,)
    with raises(store_codes.NO_SUCH_STORE_TRACK, track="none") as caught:
        store.features("a", track="none")
    assert "low, high, sums" in str(caught.value)
    assert list(check(store)) == []
    assert load(store.folder) == store.manifest
    assert isinstance(store.manifest, Manifest)


def test_tracks_side_by_side_are_cut_to_the_shortest(store: Store, sounds: dict[str, np.ndarray]) -> None:
    first = store.manifest.shards[0].name
    found: dict[str, list[np.ndarray]] = {}
    for block in store.joined(first, ["sums", "low", "high"]):
        assert len(block.features) <= BLOCK_FRAMES
        assert block.first_frame == sum(map(len, found.get(block.doc_id, [])))
        found.setdefault(block.doc_id, []).append(block.features)
    assert list(found) == ["a", "b"]
    for name, parts in found.items():
        x = sounds[name]
        expected = np.stack([x[1:] + x[:-1], x[:-1], 2 * x[:-1], -x[:-1]], axis=1)
        assert np.array_equal(np.concatenate(parts), expected)
    assert {block.doc_id for block in store.joined(first, ["low", "sums"], {("b", 1)})} == {"b"}


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = numba.get_num_threads()
    numba.set_num_threads(min(request.param, numba.config.NUMBA_NUM_THREADS))
    yield
    numba.set_num_threads(before)


@pytest.mark.parametrize("by", ["document", "speaker", "collection"])
@pytest.mark.parametrize("memory", [0, 1 << 30])
@pytest.mark.usefixtures("threads")
def test_documents_are_prepared_as_each_alone(
    store: Store, monkeypatch: pytest.MonkeyPatch, by: str, memory: int
) -> None:
    monkeypatch.setattr(shard, "_TOGETHER_BYTES", 70_000)
    search, tracks = Search.model_validate({"documents_by": by}), Tracks(store)
    shards = [one.name for one in store.manifest.shards]
    rows, frozen = tracks.documents().to_pylist(), tracks.statistics()
    documents = shard.Documents(store.with_memory(Memory(memory) if memory else None), shards, search)
    for _ in range(2):
        indices = []
        for index, blocks in documents.stream():
            indices.append(index)
            row = rows[index]
            own = Statistics.from_variance(row["frames"], row["mean"], row["variance"])
            named = frozen["collection", ""] if by == "collection" else frozen["speaker", row["speaker"]]
            features = np.concatenate([block.features for block in tracks.blocks(row["shard"], {(row["doc_id"], 1)})])
            scaling = offset_and_scale(search, own if by == "document" else named)
            expected = documents.distance.prepare(features, *scaling, "document").frames
            assert np.concatenate(list(blocks)).tobytes() == expected.tobytes()
        assert indices == [0, 1, 2]


def test_they_are_compacted_and_refitted_together(store: Store, sounds: dict[str, np.ndarray]) -> None:
    pinned = store.manifest.models
    compact(store.folder, 1.0)
    after = Store(store.folder)
    assert len(after.manifest.shards) == 1
    assert after.manifest.models == pinned
    for name, samples in sounds.items():
        assert np.array_equal(after.features(name, track="high"), np.stack([2 * samples, -samples], axis=1))
    assert list(check(after)) == []
    refit(after.folder)
    assert Store(store.folder).manifest.models == pinned
    # A search reads the tracks of its streams in the store's order: it keeps its identity, however these are sorted.
    for names, read in ((("sums", "high", "low"), list(Tracks(after).places)), (("high", "low"), ["low", "high"])):
        search = Search.model_validate({"streams": [{"track": name} for name in names]})
        assert list(tracks_read(after, search).places) == read
    lost = after.manifest.shards[0].files["high"].name
    store.folder.remove(lost)
    assert [lost in problem for problem in check(Store(store.folder))] == [True]
