"""A store of several tracks, of the index of a first pass, and of float16: added to, interrupted, and searched together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas
import pyarrow.parquet as pq
import pytest
import soundfile

import swsdist
from swsdist.core.codes import config as config_codes
from swsdist.core.codes import families
from swsdist.core.needs import Needs
from swsdist.features.mfcc import Mfcc
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder
from swsdist.methods.first_pass import search as searching
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.operation.cleaning import clean
from swsdist.registry.registries import FEATURES
from swsdist.registry.registry import Entry
from swsdist.store import writing
from swsdist.store.maintaining import check, compact, refit
from tests.support.coded import raises

pytestmark = pytest.mark.until("search")

#: Frames of the second are longer, so that it has fewer of them; its shift is the same.
PLAIN = {"name": "mfcc"}
LONG_OPTIONS = {"n_mfcc": 7, "deltas": 0, "n_fft": 1024, "win_length": 800}
LONG: dict[str, Any] = {"name": "mfcc", "track": "long", "options": LONG_OPTIONS}
BOTH = [PLAIN, LONG]
STREAMS = [{"track": "long", "distance": "euclidean", "weight": 2}, {"track": "mfcc", "columns": [13, 26]}]
NEVER = "search.normalise=none"  # so that what was frozen first is of no account


def setting(name: str, value: Any) -> str:
    return f"{name}={json.dumps(value)}"


TWO, WITH_STREAMS = setting("features", BOTH), setting("search.streams", STREAMS)


@pytest.fixture(scope="module")
def once(new_scene: Any, small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The scene of a run of both tracks at once, in three shards; to be read only."""
    scene = new_scene(tmp_path_factory.mktemp("once"), small_corpus, {}, until="search")
    scene.run(TWO, WITH_STREAMS, "index.shards=3")
    return scene


@pytest.mark.slow
def test_a_track_that_is_added_is_all_that_is_computed(scene: Any, once: Any) -> None:
    """Frames are those of each extractor alone, and of both at once."""
    scene.run("index.shards=7")
    plain = scene.digest()
    before = {path.name: path.read_bytes() for path in (scene.folder / "run" / "store" / "shards").glob("*")}
    added = scene.run(TWO, WITH_STREAMS, "index.shards=7").outcome.chain_run.outcomes["index"]
    assert (added.done, added.skipped) == (7, 0)
    after = {path.name: path.read_bytes() for path in (scene.folder / "run" / "store" / "shards").glob("*")}
    assert before.items() <= after.items()
    digest = scene.digest()
    assert digest == once.digest()
    assert {"documents", "features", "documents.long", "features.long"} <= digest.keys()
    assert (plain["features"], plain["documents"]) == (digest["features"], digest["documents"])
    assert plain["candidates"] != digest["candidates"]
    store = scene.store()
    assert len(store.manifest.shards) == 7
    assert [(track.name, track.dimension) for track in store.manifest.tracks] == [("mfcc", 39), ("long", 7)]
    assert store.documents(track="long")["shard"].to_pylist() == store.documents()["shard"].to_pylist()
    assert set(store.documents(track="long")["frames"].to_pylist()) != set(store.documents()["frames"].to_pylist())
    assert list(check(store)) == []
    # Without it, and with it again: nothing is computed.
    assert scene.run(until="index").outcome.chain_run.outcomes["index"].tasks == 0
    assert [track.name for track in scene.store().manifest.tracks] == ["mfcc"]
    back = scene.run(TWO, WITH_STREAMS).outcome.chain_run.outcomes["index"]
    assert (back.done, back.skipped) == (0, 7)
    assert scene.digest() == digest
    scene.run(setting("features", [LONG]), run="alone")
    assert scene.digest("alone")["features"] == digest["features.long"]


@pytest.mark.slow
def test_a_task_of_one_track_fails_and_is_done_the_next_time(scene: Any, once: Any, monkeypatch: Any) -> None:
    whole, seen = writing._write_document, []

    def fails(shards: Any, tracks: Any, document: Any, extractor: Any, *others: Any) -> Any:
        if extractor.dimension == 7 and document["doc_id"] == "d004":
            seen.append(document)
            raise RuntimeError("sabotaged")
        return whole(shards, tracks, document, extractor, *others)

    with monkeypatch.context() as patch:
        patch.setattr(writing, "_write_document", fails)
        failed = scene.run(TWO, WITH_STREAMS, "index.shards=3", until="", selection=StepSelection(keep_going=True))
    assert len(failed.outcome.failures) == 1
    assert seen
    manifest = scene.store().manifest
    assert manifest.provisional
    assert [sorted(shard.files) for shard in manifest.shards].count(["mfcc"]) == 1
    assert "d004" not in set(failed.detections()["doc_id"])
    again = scene.run(TWO, WITH_STREAMS, "index.shards=3").outcome.chain_run.outcomes["index"]
    assert again.done == 1
    assert not scene.store().manifest.provisional
    assert scene.digest() == once.digest()


@pytest.mark.slow
@pytest.mark.until("queries")
def test_what_one_rejects_all_do_once(own_corpus: Any) -> None:
    scene = own_corpus
    sound, rate = soundfile.read(scene.corpus / "audio" / "d003.flac", dtype="int16")
    # 40 ms: a frame for the one, too short for the other; and one that is too short for both.
    soundfile.write(scene.corpus / "audio" / "d003.flac", sound[: int(0.04 * rate)], rate)
    soundfile.write(scene.corpus / "audio" / "d004.flac", sound[: int(0.01 * rate)], rate)
    alone = scene.run()
    assert [row["id"] for row in scene.rejected()] == ["d004"]
    assert alone.outcome.chain_run.outcomes["index"].done == 1
    scene.run(TWO, WITH_STREAMS)
    rejected = sorted(scene.rejected(), key=lambda row: row["id"])
    assert [(row["id"], row["reason"]) for row in rejected] == [("d003", "too-short"), ("d004", "too-short")]
    store = scene.store()
    assert all("d003" not in store.documents(track=name)["doc_id"].to_pylist() for name in ("mfcc", "long"))
    # Without the track that had refused it, it is back.
    scene.run()
    assert [row["id"] for row in scene.rejected()] == ["d004"]
    assert "d003" in scene.store().documents()["doc_id"].to_pylist()


def test_what_does_not_fit_is_refused_before_anything_is_done(scene: Any) -> None:
    other = {"name": "mfcc", "track": "fast", "options": {"hop_length": 200}}
    with raises(families.MISMATCH, first="mfcc", second="fast"):
        scene.run(setting("features", [PLAIN, other]))
    with raises(families.DUPLICATE_NAME, where="features", name="mfcc"):
        scene.run(setting("features", [PLAIN, {**PLAIN, "track": "again"}]))
    with raises(config_codes.NO_SUCH_TRACK, track="phones") as caught:
        scene.run(TWO, setting("search.streams", [{"track": "phones"}]))
    assert "mfcc, long" in str(caught.value)
    with raises(config_codes.NO_SUCH_COLUMNS, columns=7, stop=8):
        scene.run(TWO, setting("search.streams", [{"track": "long", "columns": [0, 8]}]))
    with raises(families.CONFLICTING_OPTIONS, kinds="features of mfcc and features of long"):
        scene.run(TWO, "search.distance=kl", "search.normalise=none")
    assert not (scene.folder / "run" / "store" / "manifest.json").exists()


def test_a_store_that_others_use_is_added_to_but_not_replaced(scene: Any) -> None:
    shared = f"index.store={scene.folder / 'shared'}"
    scene.run(shared, run="first")
    added = scene.run(TWO, WITH_STREAMS, shared, run="second", selection=StepSelection(until="index"))
    assert added.outcome.chain_run.outcomes["index"].done == 1
    changed = [{**PLAIN, "options": {"n_mfcc": 5}}, LONG]
    with raises(families.MISMATCH):
        scene.run(setting("features", changed), shared, run="third")


class Parts(Mfcc):
    """MFCC whose coefficients and derivatives are tracks of their own."""

    name: ClassVar[str] = "parts"
    tracks: ClassVar[Any] = (("still", 13), ("moving", 26))


class Layers(Parts):
    """It wants to know what it was given."""

    name: ClassVar[str] = "layers"
    needs: ClassVar[Any] = (Needs(cpus=2, gpus=1.0), Needs(cpus=2, memory_gb=2.0))
    granted: ClassVar[list[Needs]] = []

    def use(self, granted: Needs) -> None:
        """Note it down."""
        Layers.granted.append(granted)


@pytest.fixture
def parts() -> Iterator[None]:
    for one in (Parts, Layers):
        FEATURES.add(one.name, Entry(f"{__name__}:{one.__name__}", 1))
    Layers.granted.clear()
    yield
    for one in (Parts, Layers):
        FEATURES.remove(one.name)


@pytest.mark.slow
def test_tracks_of_one_pass(own_corpus: Any, parts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = own_corpus
    monkeypatch.setattr("swsdist.pipeline.execution.executor.gpu_count", lambda: 0)
    features = setting("features", [{"name": "layers"}])
    both = setting("search.streams", [{"track": "still"}, {"track": "moving"}])
    scene.select(1, 2, 3, 4)
    made = scene.run(features, both, NEVER, "index.shards=2", "executor.cpus_per_worker=2")
    assert made.outcome.chain_run.outcomes["index"].done == 2
    assert set(Layers.granted) == {Needs(cpus=2, memory_gb=1.0)}
    scene.select(*range(1, 9))
    assert scene.run(features, both, NEVER, "index.shards=1").outcome.chain_run.outcomes["index"].done == 1
    store = scene.store()
    named = [(track.name, track.dimension, len(track.columns)) for track in store.manifest.tracks]
    assert named == [("still", 13, 13), ("moving", 26, 26)]
    assert list(check(store)) == []
    halves = setting("search.streams", [{"columns": [0, 13]}, {"columns": [13, 39]}])
    scene.run(halves, NEVER, run="plain")
    assert scene.digest()["candidates"] == scene.digest("plain")["candidates"]
    whole, _ = scene.store("plain"), compact(store.folder, 1.0)
    store = scene.store()
    assert list(check(store)) == []
    for doc_id in ("d001", "d007"):
        frames = whole.features(doc_id)
        assert np.array_equal(store.features(doc_id, track="still"), frames[:, :13])
        assert np.array_equal(store.features(doc_id, track="moving"), frames[:, 13:])
    # A file of one of them is lost: both are made again, in one pass.
    (scene.folder / "run" / "store" / store.manifest.shards[0].files["moving"].name).unlink()
    again = scene.run(features, both, NEVER, setting("features", [{"name": "layers"}, LONG]))
    assert again.outcome.chain_run.outcomes["index"].tasks == 2
    assert list(check(scene.store())) == []


FIRST_PASS = {"name": "quantised", "factor": 2, "sample": 0, "windows": {"least": 3}}
QUANTISED = f"search.first_pass={json.dumps(FIRST_PASS)}"
BY_DOCUMENT = f"search.first_pass={json.dumps({**FIRST_PASS, 'over': 'document'})}"


def steps(result: Any) -> dict[str, tuple[int, int]]:
    ended = result.outcome.chain_run.outcomes
    return {name: (ended[name].done, ended[name].skipped) for name in ("index", "quantise", "search")}


@pytest.mark.slow
@pytest.mark.parametrize("first_pass", [QUANTISED, BY_DOCUMENT])
def test_it_finds_what_is_found_without(scene: Any, first_pass: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(searching, "kept_index", lambda *_: None)
        scene.run(first_pass, "index.shards=2", run="made")
    monkeypatch.setattr("swsdist.methods.first_pass.quantised.build", None)  # nothing is made by the search
    scene.run(first_pass, "index.shards=7", run="seven")
    assert scene.digest("made") == scene.digest("seven")
    (name,) = (name for name in scene.store("made").manifest.models if name.startswith("codebook."))
    assert scene.store("made").manifest.models[name] == scene.store("seven").manifest.models[name]
    assert list(check(scene.store("seven"))) == []


@pytest.mark.slow
def test_documents_that_come_are_indexed_by_the_same_codebook(own_corpus: Any) -> None:
    scene = own_corpus
    scene.select(1, 2, 3, 4, 5)
    assert steps(scene.run(QUANTISED, "index.shards=2"))["quantise"] == (3, 0)
    models = scene.store().manifest.models
    assert steps(scene.run(QUANTISED, "index.shards=2"))["quantise"] == (0, 2)
    scene.select(*range(1, 9))
    assert steps(scene.run(QUANTISED, "index.shards=1"))["quantise"] == (1, 2)
    assert scene.store().manifest.models == models
    digest = scene.digest()
    # Compacted: other files, the same codebook and results.
    compact(scene.store().folder, 1.0)
    assert steps(scene.run(QUANTISED, until=""))["quantise"] == (1, 0)
    assert scene.digest() == digest
    clean(Folder(str(scene.folder / "run")), 0.0, dry=False)
    assert len(list((scene.folder / "run" / "store" / "codes").glob("*"))) == 1
    # A new one is made when it is asked for.
    refit(scene.store().folder)
    assert not any(name.startswith("codebook.") for name in scene.store().manifest.models)
    assert steps(scene.run(QUANTISED))["quantise"] == (2, 0)
    scene.run(QUANTISED, run="once")
    assert scene.digest() == scene.digest("once")


def test_a_lost_list_is_made_again(scene: Any) -> None:
    scene.run(QUANTISED, "index.shards=3")
    digest = scene.digest()
    next((scene.folder / "run" / "store" / "codes").glob("*")).unlink()
    assert steps(scene.run(QUANTISED, "index.shards=3"))["quantise"] == (1, 2)
    assert scene.digest() == digest


@pytest.mark.slow
def test_a_failed_codebook_is_made_the_next_time(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(searching, "fit_codebook", lambda *_: 1 // 0)
        failed = scene.run(QUANTISED)
    assert [one.task.stage for one in failed.outcome.failures] == ["quantise"]
    assert not any(name.startswith("codebook.") for name in scene.store().manifest.models)
    found = scene.digest()["candidates"]
    assert steps(scene.run(QUANTISED))["quantise"] == (2, 0)
    assert scene.digest()["candidates"] == found, "the search had made its index by itself"


#: The same frames as float32, as float16, as two tracks of one pass, and transformed.
TRACKS = [
    {"name": "mfcc"},
    {"name": "mfcc", "track": "half", "dtype": "float16"},
    {"name": "parts", "dtype": "float16"},
    {"name": "mfcc", "track": "shares", "dtype": "float16"}
    | {"transforms": [{"name": "gmm", "options": {"components": 4}}]},
]
HALVES = [{"track": "half"}, {"track": "moving"}, {"track": "shares"}]
SETS = (f"features={json.dumps(TRACKS)}", f"search.streams={json.dumps(HALVES)}")


@pytest.mark.until("reduce")
@pytest.mark.slow
def test_all_readers_see_what_was_rounded_once(scene: Any, parts: None) -> None:
    for run, shards in (("one", 1), ("five", 5)):
        scene.run(*SETS, f"index.shards={shards}", run=run)
    assert scene.digest("one") == scene.digest("five")
    for kind in ("store", "queries"):
        store = scene.store("five", kind)
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
    store = scene.store("five")
    files = store.manifest.shards[0].files
    full, half = (pq.read_table(store.folder.path(files[name].name))["features"] for name in ("mfcc", "half"))
    assert b"".join(half.to_pylist()) == np.frombuffer(b"".join(full.to_pylist()), "<f4").astype("<f2").tobytes()
    # The collection's statistics are of the rounded numbers.
    frames = np.concatenate([store.features(name, 1, "half") for name in store.documents()["doc_id"].to_pylist()])
    assert np.allclose(store.statistics("half")["collection", ""].mean, Statistics.of(frames).mean, rtol=1e-9)
    before = {name: store.features("d003", 1, name).tobytes() for name in ("mfcc", "half", "moving", "shares")}
    compact(store.folder, 1.0)
    store = scene.store("five")
    assert len(store.manifest.shards) == 1
    assert list(check(store)) == []
    assert {name: store.features("d003", 1, name).tobytes() for name in before} == before
    # A search by hand makes the extractors of the store again.
    query = pandas.DataFrame([{"query_id": "a", "path": str(sorted((scene.corpus / "queries").iterdir())[0])}])
    found = [
        swsdist.search(str(scene.folder / run / "store"), query, options={"streams": HALVES}) for run in ("one", "five")
    ]
    assert len(found[0]) > 0
    assert found[0].equals(found[1])
