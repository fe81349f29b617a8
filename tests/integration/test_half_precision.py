"""Tracks that a store keeps as float16, beside one as float32."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pandas
import pyarrow.parquet as pq
import pytest

import swsdist
from swsdist.features.mfcc import Mfcc
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder
from swsdist.registry.registries import FEATURES
from swsdist.registry.registry import Entry
from swsdist.store.maintaining import check, compact
from swsdist.store.reading import Store

pytestmark = pytest.mark.until("reduce")

#: The same frames as float32, as float16, as two tracks of one pass, and transformed.
TRACKS = [
    {"name": "mfcc"},
    {"name": "mfcc", "track": "half", "dtype": "float16"},
    {"name": "parts", "dtype": "float16"},
    {
        "name": "mfcc",
        "track": "shares",
        "dtype": "float16",
        "transforms": [{"name": "gmm", "options": {"components": 4}}],
    },
]
STREAMS = [{"track": "half"}, {"track": "moving"}, {"track": "shares"}]
SETS = (f"features={json.dumps(TRACKS)}", f"search.streams={json.dumps(STREAMS)}")


class Parts(Mfcc):
    """MFCC whose coefficients and derivatives are tracks of their own."""

    name: ClassVar[str] = "parts"
    tracks: ClassVar[Any] = (("still", 13), ("moving", 26))


@pytest.fixture
def parts() -> Iterator[None]:
    FEATURES.add("parts", Entry(f"{__name__}:Parts", 1))
    yield
    FEATURES.remove("parts")


def store_of(scene: Any, run: str, name: str = "store") -> Store:
    return Store(Folder(str(scene.folder / run / name)))


@pytest.mark.slow
def test_all_readers_see_what_was_rounded_once(scene: Any, parts: None) -> None:
    scene.run(*SETS, "index.shards=1", run="one")
    scene.run(*SETS, "index.shards=5", "executor.kind=serial", run="five")
    assert scene.digest("one") == scene.digest("five")
    for kind in ("store", "queries"):
        store = store_of(scene, "five", kind)
        assert list(check(store)) == []
        assert [track.dtype for track in store.manifest.tracks] == ["float32", *["float16"] * 4]
        assert store.manifest.track("moving").columns == tuple(f"c{k}" for k in range(26))
        for row in store.documents(columns=["doc_id", "channel"]).to_pylist():
            key = row["doc_id"], row["channel"]
            frames = store.features(*key).astype(np.float16).astype(np.float32)
            assert np.array_equal(store.features(*key, "half"), frames)
            assert np.array_equal(store.features(*key, "still"), frames[:, :13])
            assert np.array_equal(store.features(*key, "moving"), frames[:, 13:])
            shares = store.features(*key, "shares")
            assert shares.dtype == np.float32
            assert np.array_equal(shares, shares.astype(np.float16))
    store = store_of(scene, "five")
    files = store.manifest.shards[0].files
    full, half = (pq.read_table(store.folder.path(files[name].name))["features"] for name in ("mfcc", "half"))
    assert b"".join(half.to_pylist()) == np.frombuffer(b"".join(full.to_pylist()), "<f4").astype("<f2").tobytes()
    # The collection's statistics are of the rounded numbers.
    frames = np.concatenate([store.features(name, 1, "half") for name in store.documents()["doc_id"].to_pylist()])
    assert np.allclose(store.statistics("half")["collection", ""].mean, Statistics.of(frames).mean, rtol=1e-9)
    before = {name: store.features("d003", 1, name).tobytes() for name in ("mfcc", "half", "moving", "shares")}
    compact(store.folder, 1.0)
    store = store_of(scene, "five")
    assert len(store.manifest.shards) == 1
    assert list(check(store)) == []
    assert {name: store.features("d003", 1, name).tobytes() for name in before} == before
    # A search by hand makes the extractors of the store again.
    query = pandas.DataFrame([{"query_id": "a", "path": str(sorted((scene.corpus / "queries").iterdir())[0])}])
    found = [
        swsdist.search(str(scene.folder / run / "store"), query, options={"streams": STREAMS})
        for run in ("one", "five")
    ]
    assert len(found[0]) > 0
    assert found[0].equals(found[1])


def test_renamed_recordings_are_copied_as_they_are_kept(own_corpus: Any) -> None:
    sets = (f"features={json.dumps(TRACKS[1])}", "index.shards=1")
    own_corpus.run(*sets, until="index")
    before = store_of(own_corpus, "run").features("d003").tobytes()
    audio = own_corpus.corpus / "audio"
    (old,) = (path for path in audio.iterdir() if path.stem == "d003")
    old.rename(audio / f"renamed{old.suffix}")
    own_corpus.run(*sets, f"corpus.documents={audio}", until="index")
    after = store_of(own_corpus, "run")
    assert after.features("renamed").tobytes() == before
    assert list(check(after)) == []


def test_another_dtype_is_another_track(scene: Any) -> None:
    scene.run("index.shards=2", until="index")
    plain = store_of(scene, "run").manifest.track()
    outcome = scene.run('features={"name": "mfcc", "dtype": "float16"}', "index.shards=2", until="index").outcome
    assert outcome.chain_run.outcomes["index"].done == 2
    half = store_of(scene, "run").manifest.track()
    assert half.recipe == {**plain.recipe, "dtype": "float16"}
    assert "dtype" not in plain.recipe
    scene.run('features={"name": "mfcc", "dtype": "float32"}', "index.shards=2", until="index")
    assert store_of(scene, "run").manifest.track().fingerprint == plain.fingerprint
