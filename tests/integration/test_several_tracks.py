"""A store of two tracks: indexed, searched together, added to, and interrupted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest
import soundfile

from swsdist.core.codes import config as config_codes
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError, UserError
from swsdist.core.needs import Needs
from swsdist.features.mfcc import Mfcc
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import StepSelection
from swsdist.registry.registries import FEATURES
from swsdist.registry.registry import Entry
from swsdist.store import writing
from swsdist.store.maintaining import check, compact
from swsdist.store.reading import Store
from tests.support.coded import raises

pytestmark = pytest.mark.until("search")

#: Frames of the second are longer, so that it has fewer of them; its shift is the same.
PLAIN = {"name": "mfcc"}
LONG: dict[str, Any] = {
    "name": "mfcc",
    "track": "long",
    "options": {"n_mfcc": 7, "deltas": 0, "n_fft": 1024, "win_length": 800},
}
BOTH = [PLAIN, LONG]
STREAMS = [{"track": "long", "distance": "euclidean", "weight": 2}, {"track": "mfcc", "columns": [13, 26]}]
NEVER = "search.normalise=none"  # so that what was frozen first is of no account


def setting(name: str, value: Any) -> str:
    return f"{name}={json.dumps(value)}"


TWO, WITH_STREAMS = setting("features", BOTH), setting("search.streams", STREAMS)


def store_of(scene: Any, run: str = "run") -> Store:
    return Store(Folder(str(scene.folder / run / "store")))


@pytest.mark.slow
def test_shards_do_not_matter_and_frames_are_those_of_each_extractor(scene: Any) -> None:
    scene.run(TWO, WITH_STREAMS, "index.shards=1", run="one")
    scene.run(TWO, WITH_STREAMS, "index.shards=7", "search.lanes=3", run="seven")
    digest = scene.digest("one")
    assert digest == scene.digest("seven")
    assert {"documents", "features", "documents.long", "features.long"} <= digest.keys()
    scene.run(run="plain")
    plain = scene.digest("plain")
    assert (plain["features"], plain["documents"]) == (digest["features"], digest["documents"])
    assert plain["candidates"] != digest["candidates"]
    store = store_of(scene, "seven")
    assert len(store.manifest.shards) == 7
    assert [(track.name, track.dimension) for track in store.manifest.tracks] == [("mfcc", 39), ("long", 7)]
    assert store.documents(track="long")["shard"].to_pylist() == store.documents()["shard"].to_pylist()
    assert set(store.documents(track="long")["frames"].to_pylist()) != set(store.documents()["frames"].to_pylist())
    assert list(check(store)) == []
    scene.run(setting("features", [LONG]), run="alone")
    assert scene.digest("alone")["features"] == digest["features.long"]


@pytest.mark.slow
def test_a_search_of_one_track_is_that_of_a_store_of_it_alone(scene: Any) -> None:
    """The extractors have frames of one length, so that none is cut by the other."""
    other = {"name": "mfcc", "track": "more", "options": {"n_mfcc": 5}}
    scene.run(setting("features", [PLAIN, other]), setting("search.streams", [{"track": "more"}]), run="both")
    scene.run(setting("features", [other]), setting("search.streams", [{"columns": [0, 15]}]), run="alone")
    assert scene.digest("both")["candidates"] == scene.digest("alone")["candidates"]
    swapped = setting("features", [other, PLAIN])
    scene.run(swapped, setting("search.streams", [{"track": "more"}]), run="swapped")
    assert scene.digest("swapped")["candidates"] == scene.digest("alone")["candidates"]
    # Without streams: all columns of all tracks.
    scene.run(setting("features", [PLAIN, other]), run="whole")
    scene.run(setting("features", [PLAIN, other]), setting("search.streams", [{"columns": [0, 54]}]), run="all")
    assert scene.digest("whole")["candidates"] == scene.digest("all")["candidates"]


@pytest.mark.slow
def test_a_track_that_is_added_is_all_that_is_computed(scene: Any) -> None:
    scene.run(TWO, WITH_STREAMS, "index.shards=3", run="once")
    scene.run("index.shards=3")
    before = {path.name: path.read_bytes() for path in (scene.folder / "run" / "store" / "shards").glob("*")}
    added = scene.run(TWO, WITH_STREAMS, "index.shards=3").outcome.chain_run.outcomes["index"]
    assert (added.done, added.skipped) == (3, 0)
    after = {path.name: path.read_bytes() for path in (scene.folder / "run" / "store" / "shards").glob("*")}
    assert before.items() <= after.items()
    assert scene.digest() == scene.digest("once")
    assert scene.run(TWO, WITH_STREAMS).outcome.chain_run.outcomes["index"].tasks == 0
    # Without it, and with it again: nothing is computed.
    assert scene.run().outcome.chain_run.outcomes["index"].tasks == 0
    assert [track.name for track in store_of(scene).manifest.tracks] == ["mfcc"]
    back = scene.run(TWO, WITH_STREAMS).outcome.chain_run.outcomes["index"]
    assert (back.done, back.skipped) == (0, 3)
    assert scene.digest() == scene.digest("once")


@pytest.mark.slow
def test_documents_come_go_and_change(own_corpus: Any) -> None:
    scene = own_corpus
    scene.select(1, 2, 3, 4, 5)
    scene.run(TWO, WITH_STREAMS, NEVER, "index.shards=2")
    scene.select(*range(1, 9))
    added = scene.run(TWO, WITH_STREAMS, NEVER, "index.shards=1").outcome.chain_run.outcomes["index"]
    assert added.done == 2
    scene.select(1, 2, 4, 6, 7, 8)
    removed = scene.run(TWO, WITH_STREAMS, NEVER).outcome.chain_run.outcomes["index"]
    assert removed.tasks == 0
    sound, rate = soundfile.read(scene.corpus / "audio" / "d002.flac", dtype="int16")
    soundfile.write(scene.corpus / "audio" / "d002.flac", sound[: 2 * rate], rate)
    changed = scene.run(TWO, WITH_STREAMS, NEVER).outcome.chain_run.outcomes["index"]
    assert changed.done == 2
    assert list(check(store_of(scene))) == []
    documents = {track: set(store_of(scene).documents(track=track)["doc_id"].to_pylist()) for track in ("mfcc", "long")}
    assert documents["mfcc"] == documents["long"] == {f"d{k:03d}" for k in (1, 2, 4, 6, 7, 8)}
    scene.run(TWO, WITH_STREAMS, NEVER, run="once")
    assert scene.digest() == scene.digest("once")
    compact(Folder(str(scene.folder / "run" / "store")), 1.0)
    assert list(check(store_of(scene))) == []
    assert scene.run(TWO, WITH_STREAMS, NEVER).outcome.chain_run.outcomes["index"].tasks == 0
    assert scene.digest() == scene.digest("once")


@pytest.mark.slow
def test_a_task_of_one_track_fails_and_is_done_the_next_time(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.run(TWO, WITH_STREAMS, "index.shards=3", run="once")
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
    manifest = store_of(scene).manifest
    assert manifest.provisional
    assert [sorted(shard.files) for shard in manifest.shards].count(["mfcc"]) == 1
    assert "d004" not in set(failed.detections()["doc_id"])
    again = scene.run(TWO, WITH_STREAMS, "index.shards=3").outcome.chain_run.outcomes["index"]
    assert again.done == 1
    assert not store_of(scene).manifest.provisional
    assert scene.digest() == scene.digest("once")


@pytest.mark.slow
@pytest.mark.until("")
def test_killed_while_the_second_is_indexed(scene: Any) -> None:
    long = {**LONG, "name": "saboteur"}
    both = setting("features", [PLAIN, long])
    lengths = sorted(soundfile.info(path).frames for path in (scene.corpus / "audio").glob("*.flac"))
    rate = soundfile.info(next((scene.corpus / "audio").glob("*.flac"))).samplerate
    wanted = [round(n * Mfcc().sample_rate / rate) for n in lengths[-1:]]
    scene.sabotage(how="kill", samples=[n + k for n in wanted for k in (-1, 0, 1)])
    killed = scene.go(both, WITH_STREAMS, "index.shards=4")
    assert killed.returncode != 0
    assert not (scene.folder / "run" / "store" / "manifest.json").exists()
    kept = scene.receipts()
    assert kept
    scene.order.unlink()
    assert scene.go(both, WITH_STREAMS, "index.shards=4").returncode == 0
    assert kept.items() <= scene.receipts().items()
    scene.run(TWO, WITH_STREAMS, run="once")
    assert {**scene.digest(), "measures": ""} == {**scene.digest("once"), "measures": ""}


@pytest.mark.slow
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
    store = store_of(scene)
    assert all("d003" not in store.documents(track=name)["doc_id"].to_pylist() for name in ("mfcc", "long"))
    scene.run(TWO, WITH_STREAMS, "index.shards=3", run="once")
    assert {row["id"] for row in scene.rejected("once")} == {"d003", "d004"}
    assert len(scene.rejected("once")) == 2
    # Without the track that had refused it, it is back.
    scene.run()
    assert [row["id"] for row in scene.rejected()] == ["d004"]
    assert "d003" in store_of(scene).documents()["doc_id"].to_pylist()


def test_what_does_not_fit_is_refused_before_anything_is_done(scene: Any) -> None:
    other = {"name": "mfcc", "track": "fast", "options": {"hop_length": 200}}
    with raises(families.MISMATCH, first="mfcc", second="fast"):
        scene.run(setting("features", [PLAIN, other]))
    with raises(families.DUPLICATE_NAME, where="features", name="mfcc"):
        scene.run(setting("features", [PLAIN, {**PLAIN, "track": "again"}]))
    with raises(config_codes.NO_SUCH_TRACK, track="phones") as caught:
        scene.run(TWO, setting("search.streams", [{"track": "phones"}]))
    assert "mfcc, long" in str(caught.value)
    with pytest.raises(ConfigError, match="has 7 columns, not 8"):
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
    with pytest.raises(UserError, match="holds other features"):
        scene.run(setting("features", changed), shared, run="third")


class Layers(Mfcc):
    """MFCC whose coefficients and derivatives are tracks of their own; it wants to know what it was given."""

    name: ClassVar[str] = "layers"
    tracks: ClassVar[Any] = (("still", 13), ("moving", 26))
    needs: ClassVar[Any] = (Needs(cpus=2, gpus=1.0), Needs(cpus=2, memory_gb=2.0))
    granted: ClassVar[list[Needs]] = []

    def use(self, granted: Needs) -> None:
        """Note it down."""
        Layers.granted.append(granted)


@pytest.fixture
def layers() -> Iterator[None]:
    FEATURES.add("layers", Entry(f"{__name__}:Layers", 1))
    Layers.granted.clear()
    yield
    FEATURES.remove("layers")


@pytest.mark.slow
def test_tracks_of_one_pass(own_corpus: Any, layers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = own_corpus
    monkeypatch.setattr("swsdist.pipeline.execution.executor.gpu_count", lambda: 0)
    features = setting("features", [{"name": "layers"}])
    both = setting("search.streams", [{"track": "still"}, {"track": "moving"}])
    scene.select(1, 2, 3, 4)
    made = scene.run(features, both, NEVER, "index.shards=2", "executor.cpus_per_worker=2")
    assert made.outcome.chain_run.outcomes["index"].done == 2
    assert set(Layers.granted) == {Needs(cpus=2)}
    scene.select(*range(1, 9))
    assert scene.run(features, both, NEVER, "index.shards=1").outcome.chain_run.outcomes["index"].done == 1
    store = store_of(scene)
    assert [(track.name, track.dimension, len(track.columns)) for track in store.manifest.tracks] == [
        ("still", 13, 13),
        ("moving", 26, 26),
    ]
    assert list(check(store)) == []
    halves = setting("search.streams", [{"columns": [0, 13]}, {"columns": [13, 39]}])
    scene.run(halves, NEVER, run="plain")
    assert scene.digest()["candidates"] == scene.digest("plain")["candidates"]
    whole, _ = store_of(scene, "plain"), compact(store.folder, 1.0)
    store = store_of(scene)
    assert list(check(store)) == []
    for doc_id in ("d001", "d007"):
        frames = whole.features(doc_id)
        assert np.array_equal(store.features(doc_id, track="still"), frames[:, :13])
        assert np.array_equal(store.features(doc_id, track="moving"), frames[:, 13:])
    # A file of one of them is lost: both are made again, in one pass.
    (scene.folder / "run" / "store" / store.manifest.shards[0].files["moving"].name).unlink()
    again = scene.run(features, both, NEVER, setting("features", [{"name": "layers"}, LONG]))
    assert again.outcome.chain_run.outcomes["index"].tasks == 2
    assert list(check(store_of(scene))) == []
