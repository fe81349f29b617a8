"""Stores of small recordings: known by their bytes, interrupted, cut off; statistics and voices are pinned."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from commands import in_this_process

import swsdist
from swsdist.config import config_from_dict
from swsdist.core.codes import families
from swsdist.core.codes import stages as codes
from swsdist.features.mfcc import Mfcc
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import Outcome, StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.cleaning import clean
from swsdist.pipeline.operation.progress import Progress
from swsdist.stages.buckets import Indexed
from swsdist.stages.index import Index
from swsdist.store import writing
from swsdist.store.maintaining import check, compact, refit
from swsdist.store.reading import Store, of_store
from tests.support.coded import raises, says
from tests.support.tables import write_rows

OPTIONS = {"sample_rate": 1000, "n_fft": 32, "win_length": 25, "hop_length": 10, "n_mels": 8, "n_mfcc": 4, "deltas": 1}
NAMES = ("a", "b", "c", "d")
GROWN = ("a1", "a2", "b1", "b2", "c1", "c2")


class Stored:
    """A folder `archive` with recordings in `sounds`, and runs beside them; `extracted` counts blocks of samples."""

    def __init__(self, root: Path) -> None:
        self.archive, self.extracted = root / "archive", 0
        self.sounds.mkdir(parents=True)

    @property
    def sounds(self) -> Path:
        return self.archive / "sounds"

    def record(self, name: str, seconds: float = 1.2, channels: int = 1, seed: int | None = None) -> None:
        generator = np.random.default_rng(sum(name.encode()) if seed is None else seed)
        samples = generator.normal(scale=0.1, size=(round(1000 * seconds), channels)).astype(np.float32)
        soundfile.write(self.sounds / f"{name}.wav", samples, 1000, subtype="FLOAT")

    def index(self, *names: str, run: str = "run", shards: int = 2, progress: Any = None, **values: Any) -> Outcome:
        """Index all recordings; or a table of these, whose first letter is the speaker, made if they are not there."""
        for name in names:
            if not (self.sounds / f"{name}.wav").exists():
                self.record(name, 1 + 0.1 * (sum(name.encode()) % 7))
        table = self.archive / "docs.csv"
        write_rows(table, ({"doc_id": name, "path": f"sounds/{name}.wav", "speaker": name[0]} for name in names))
        config: dict[str, Any] = {
            "run": str(self.archive / run),
            "corpus": {"documents": str(table if names else self.sounds)},
            "features": {"name": "mfcc", "options": OPTIONS},
            "index": {"shards": shards},
            "executor": {"kind": "serial", "attempts": 1},
        }
        self.extracted = 0
        given = config_from_dict({**config, **values}, ".")
        return run_stages(given, StepSelection(until="index"), progress or Progress())

    def indexed(self, *names: str, **keywords: Any) -> Store:
        assert self.index(*names, **keywords).failures == []
        return self.store(keywords.get("run", "run"))

    def store(self, run: str = "run") -> Store:
        return Store(Folder(str(self.archive / run / "store")))

    def shards(self, run: str = "run") -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in (self.archive / run / "store" / "shards").iterdir()}

    def move(self) -> None:
        self.archive = self.archive.rename(self.archive.with_name("elsewhere"))

    def demand_as_fresh(self) -> None:
        """The store is whole, and has the rows of one that is made of the same recordings now."""
        assert list(check(self.store())) == []
        self.indexed(run="fresh", shards=3)
        assert of_store(self.store()) == of_store(self.store("fresh"))
        paths = [sorted(self.store(run).documents(columns=["path"])["path"].to_pylist()) for run in ("run", "fresh")]
        assert paths[0] == paths[1]


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stored:
    made = Stored(tmp_path)
    extract = Mfcc.extract

    def counted(self: Mfcc, samples: Any) -> Any:
        made.extracted += 1
        return extract(self, samples)

    monkeypatch.setattr(Mfcc, "extract", counted)
    monkeypatch.setattr(Index, "warm", lambda *_: None)  # it extracts a second of silence
    return made


@pytest.fixture
def known(scene: Stored) -> Stored:
    for name in NAMES:
        scene.record(name)
    return scene


def counts(outcome: Outcome) -> Any:
    return outcome.chain_run.chain.inputs.store.comparison.counts


def held(outcome: Outcome) -> Iterator[int]:
    return (told.held for told in outcome.chain_run.results("documents", Indexed))


def test_all_moved_together(known: Stored) -> None:
    known.index()
    assert known.extracted
    known.move()
    before = known.shards()
    outcome = known.index()
    assert (known.extracted, outcome.tasks_done, counts(outcome)) == (0, 0, (0, 0, 0, 4, 0))
    assert known.shards() == before
    assert (counts(known.index()), known.extracted) == ((0, 0, 0, 0, 0), 0)
    os.utime(known.sounds / "b.wav", ns=(1, 1))
    assert (counts(known.index()), known.extracted) == ((0, 0, 0, 1, 0), 0)
    known.demand_as_fresh()


def test_renamed_and_copied_are_copied_in_the_store(known: Stored) -> None:
    known.record("d", channels=2)
    known.record("long", 90.0, channels=2)  # of more than one block of frames
    known.index()
    (known.sounds / "d.wav").rename(known.sounds / "e.wav")
    (known.sounds / "long.wav").rename(known.sounds / "0.wav")
    shutil.copyfile(known.sounds / "a.wav", known.sounds / "copy.wav")
    outcome = known.index()
    assert (known.extracted, sum(held(outcome)), counts(outcome)) == (0, 5, (5, 0, 4, 0, 5))
    known.demand_as_fresh()


def test_names_that_change_places(known: Stored) -> None:
    """As long as each other, and with one time of change: only their bytes tell."""
    for name in NAMES:
        os.utime(known.sounds / f"{name}.wav", ns=(1, 1))
    known.index()
    for old, new in (("a", "x"), ("b", "a"), ("x", "b")):
        (known.sounds / f"{old}.wav").rename(known.sounds / f"{new}.wav")
    for name in ("a", "b"):
        os.utime(known.sounds / f"{name}.wav", ns=(2, 2))
    assert (sum(held(known.index())), known.extracted) == (2, 0)
    known.demand_as_fresh()


def test_another_recording_under_the_path_of_one_is_computed(known: Stored) -> None:
    known.index()
    known.move()
    status = (known.sounds / "b.wav").stat()
    known.record("b", seed=77)
    os.utime(known.sounds / "b.wav", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (known.sounds / "b.wav").stat().st_size == status.st_size
    assert counts(known.index()) == (0, 1, 0, 3, 0)
    assert known.extracted
    known.demand_as_fresh()


def test_on_s3_etags_tell(known: Stored, s3: Any) -> None:
    for where in ("known/before", "known/after"):
        place = f"s3://{s3.bucket}/{where}"
        for path in known.sounds.iterdir():
            Folder(place, s3.storage).write_bytes(path.name, path.read_bytes())
        outcome = known.index(corpus={"documents": place}, storage=s3.storage)
    assert (known.extracted, outcome.tasks_done, counts(outcome)) == (0, 0, (0, 0, 0, 4, 0))
    assert {one.path for one in known.store().recordings().values()} == {f"{place}/{name}.wav" for name in NAMES}


class Watched(Progress):
    def __init__(self, watch: Callable[[], object]) -> None:
        super().__init__()
        self.watch = watch

    def task(self, *rest: Any) -> None:
        super().task(*rest)
        self.watch()


def interrupted(scene: Stored, *names: str, after: int, run: str = "run") -> Store:
    """Somebody presses Ctrl-C after so many tasks."""
    left = iter(range(after - 1))

    def press() -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scene.index(*names, run=run, shards=4, progress=Watched(press))
    return scene.store(run)


@pytest.mark.parametrize("before", [(), ("a1", "b1")])
def test_after_each_task_what_is_done_is_searched_and_going_on_ends_alike(
    scene: Stored, before: tuple[str, ...]
) -> None:
    for run in ("once", "1", "3"):
        if before:
            scene.indexed(*before, run=run, shards=4)
    once = scene.indexed(*GROWN, run="once", shards=4)
    query = f"{scene.sounds / 'a1.wav'}:0.2-0.9"
    for after in (1, 3):
        run = str(after)
        store = interrupted(scene, *GROWN, run=run, after=after)
        assert store.manifest.counts["documents"] < len(GROWN)
        assert (store.manifest.unfinished.done, store.manifest.unfinished.tasks) == (after, 4)
        assert list(check(store)) == []
        with pytest.warns(UserWarning, match=f"{after} of 4 tasks"):
            swsdist.search(store.folder.root, query, trim=False)
        done = scene.shards(run)
        whole = scene.indexed(*GROWN, run=run, shards=4)
        assert whole.manifest == once.manifest  # shards, statistics and name: of the state itself, not of its rows only
        assert of_store(whole) == of_store(once)
        assert done.items() <= scene.shards(run).items()
        told = in_this_process("search", store.folder.root, "--query", query, "--no-trim", "--json")
        assert (told.code, "are indexed" in told.err) == (0, False)


def test_one_that_was_killed_is_told_and_searched_when_it_goes_on(scene: Stored) -> None:
    store = interrupted(scene, *GROWN, after=2).folder
    for path in Path(store.root).glob("manifest*"):  # nobody has committed
        path.unlink()
    with raises(families.NOT_FINISHED, done=2):
        scene.store()

    seen: list[Any] = []
    whole = scene.indexed(*GROWN, shards=4, progress=Watched(lambda: seen.append(Store(store).manifest.unfinished)))
    assert (seen[0].done, seen[0].tasks) == (2, 4)
    assert whole.manifest.unfinished is None


def test_what_it_goes_on_from_stays(scene: Stored) -> None:
    """Neither cleaned nor compacted away: going on would compute it again. A corpus that shrinks back is whole."""
    before = scene.indexed("a1", "b1", shards=4).manifest
    folder = interrupted(scene, *GROWN, after=1).folder
    assert clean(Folder(str(scene.archive / "run")), 0.0, False)[0] == []
    for maintain in (lambda: compact(folder, 1.0), lambda: refit(folder)):
        with raises(families.NOT_FINISHED):
            maintain()
    done = scene.shards()
    assert scene.indexed("a1", "b1", shards=4).manifest == before
    assert scene.indexed(*GROWN, shards=4).manifest.counts["documents"] == len(GROWN)
    assert done.items() <= scene.shards().items()


def statistics(store: Store) -> dict[tuple[str, str], tuple[int, bytes]]:
    """Frames and mean of every scope."""
    return {scope: (one.frames, one.mean.tobytes()) for scope, one in store.statistics().items()}


def failing(scene: Stored, monkeypatch: pytest.MonkeyPatch, *names: str, run: str = "run") -> Store:
    """Index, and let the task of the last shard fail."""
    write = writing._write_document

    def fails(shards: Any, tracks: Any, document: Any, *rest: Any) -> Any:
        if document["doc_id"] == names[-1]:
            raise RuntimeError("the disk is full")
        return write(shards, tracks, document, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(writing, "_write_document", fails)
        assert scene.index(*names, run=run).failures
    return scene.store(run)


def test_a_failed_task_while_a_store_grows_leaves_statistics(scene: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    before = statistics(scene.indexed("a1", "a2", "b1", "b2"))
    provisional = failing(scene, monkeypatch, *GROWN)
    assert provisional.manifest.provisional
    assert provisional.statistics()["collection", ""].frames == before["collection", ""][0]
    after = scene.indexed(*GROWN)
    assert not after.manifest.provisional
    assert before.items() <= statistics(after).items()
    # A speaker who came with the failed task is taken of all that is there in the end.
    assert statistics(after).keys() - before.keys() == {("speaker", "c")}


def test_compact_does_not_freeze_what_waits(scene: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    pure = statistics(scene.indexed("a1", "a2", "b1", "b2", run="pure"))
    provisional = failing(scene, monkeypatch, "a1", "a2", "b1", "b2")
    assert statistics(provisional) != pure
    compact(provisional.folder, 1.0)
    compacted = Store(provisional.folder)
    assert compacted.manifest.provisional
    assert statistics(compacted) == statistics(provisional)
    assert statistics(scene.indexed("a1", "a2", "b1", "b2")) == pure


@pytest.mark.parametrize("lost", ["rejected", "documents"])
def test_a_lost_table_leaves_them_and_is_told(scene: Stored, lost: str) -> None:
    scene.indexed("a1", "a2")
    store = scene.indexed("a1", "a2", "b1", "b2")
    before, manifest = statistics(store), store.manifest
    name = {"rejected": manifest.rejected, "documents": manifest.tracks[0].documents}[lost]
    store.folder.remove(name)
    outcome = scene.index("a1", "a2", "b1", "b2")
    (notice,) = [text for text in outcome.chain_run.notices() if says(text, codes.LOST_TABLE)]
    assert name in notice
    assert statistics(scene.store()) == before
    assert list(check(scene.store())) == []


def test_another_corpus_is_not_normalised_by_the_one_before(scene: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.indexed("a1", "a2", "b1")
    after = scene.indexed("b2", "c1", "c2")
    assert statistics(after) == statistics(scene.indexed("b2", "c1", "c2", run="new"))
    assert after.manifest.counts["statistics_gone"] == 0
    before = scene.indexed("b1", shards=1, run="lost")
    for shard in before.manifest.shards:
        before.folder.remove(shard.name)
    lost = failing(scene, monkeypatch, "a1", "b1", run="lost")
    assert lost.statistics()["collection", ""].frames == before.statistics()["collection", ""].frames
    assert statistics(before).items() <= statistics(scene.indexed("a1", "b1", run="lost")).items()


def test_mended_recordings_are_counted_until_they_are_fitted_anew(scene: Stored) -> None:
    before = scene.indexed("a1", "a2", "b1")
    scene.record("a2", 1.77, seed=77)
    mended = scene.indexed("a1", "a2", "b1")
    assert statistics(mended) == statistics(before)
    assert mended.manifest.models["statistics.mfcc"] == before.manifest.models["statistics.mfcc"]
    assert mended.manifest.counts["statistics_gone"] == 1
    assert refit(mended.folder) == (1, 3, ())
    fitted = Store(mended.folder)
    assert fitted.manifest.counts["statistics_gone"] == 0
    assert statistics(fitted) == statistics(scene.indexed("a1", "a2", "b1", run="new"))
    assert list(check(fitted)) == []
    # That is pinned as well.
    assert statistics(fitted).items() <= statistics(scene.indexed("a1", "a2", "b1", "c1")).items()


#: Of the same extractor.
TRACKS = {
    "a": {"name": "mfcc", "track": "a", "options": {**OPTIONS, "deltas": 0}},
    "b": {"name": "mfcc", "track": "b", "options": {**OPTIONS, "deltas": 0, "n_mfcc": 3}},
}


def spoken(root: Path) -> Stored:
    """Half an hour of speech by nobody named, in two voices."""
    scene = Stored(root)
    for k in range(12):
        noise = np.random.default_rng(k).normal(scale=0.1, size=150_000)
        samples = noise if k % 2 else np.convolve(noise, np.ones(8) / 8, "same")
        soundfile.write(scene.sounds / f"d{k}.wav", samples.astype(np.float32), 1000, subtype="FLOAT")
    return scene


def heard(scene: Stored, tracks: str, count: int = 12) -> Outcome:
    """Index so many with these tracks, by a run of their name, into one store."""
    rows = ({"doc_id": f"d{k}", "path": f"sounds/d{k}.wav"} for k in range(count))
    corpus = {"documents": write_rows(scene.archive / "those.csv", rows)}
    store = {"shards": 2, "store": str(scene.archive / "run" / "store")}
    return scene.index(run=tracks, corpus=corpus, features=[TRACKS[name] for name in tracks], index=store)


def voices(store: Store, track: str | None = None) -> dict[str, Any]:
    table = store.documents(columns=["doc_id", "voices"], track=track)
    return dict(zip(table["doc_id"].to_pylist(), table["voices"].to_pylist(), strict=True))


def pinned(store: Store) -> set[str]:
    return {file for name, file in store.manifest.models.items() if name.startswith("voices.")}


def test_another_order_of_tracks_changes_no_voice(tmp_path: Path) -> None:
    scene, alone = spoken(tmp_path / "1"), spoken(tmp_path / "2")
    for each in (scene, alone):
        heard(each, "ab", 5)
    first = scene.store()
    before, files = voices(first), pinned(first)
    numbers = sorted(Counter(voice for each in before.values() for voice in set(each)).values(), reverse=True)
    info = in_this_process("store", "info", first.folder.root).out
    assert f"{len(numbers)}, in {', '.join(map(str, numbers))} documents without a speaker" in info
    heard(scene, "ba")
    other = scene.store()
    assert files < pinned(other)
    assert None not in voices(other).values()
    assert set(voices(other, "a").values()) == {None}  # only the first track has them
    for each in (scene, alone):
        heard(each, "ab")
    again = scene.store()
    assert voices(again) == voices(alone.store())
    assert before.items() <= voices(again).items()
    assert set(voices(again, "b").values()) == {None}
    assert pinned(again) == pinned(other)
    assert list(check(again)) == []
    refit(again.folder)
    assert not pinned(scene.store()) & pinned(other)


@pytest.mark.parametrize("model", ["voices", "statistics"])
def test_a_lost_model_is_fitted_again(tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = spoken(tmp_path)
    heard(scene, "ab")
    before = scene.store()
    (file, *_) = (file for name, file in before.manifest.models.items() if name.startswith(f"{model}."))
    before.folder.remove(file)
    monkeypatch.setattr(writing, "_write_document", lambda *_: 1 // 0)
    (notice,) = [text for text in heard(scene, "ab").chain_run.notices() if says(text, codes.LOST_MODEL)]
    assert file in notice
    after = scene.store()
    assert after.manifest.models == before.manifest.models
    assert voices(after) == voices(before)
    assert list(check(after)) == []
    assert not [text for text in heard(scene, "ab").chain_run.notices() if says(text, codes.LOST_MODEL)]


@pytest.mark.parametrize("name", ["a.flac", "a.mp3", "a.ogg"])
def test_what_is_before_a_cut_is_indexed(scene: Stored, name: str) -> None:
    seconds, path, plain = 20, scene.sounds / name, {"name": "mfcc"}
    samples = np.random.default_rng(3).normal(scale=0.1, size=(seconds * 16000, 2)).astype(np.float32)
    soundfile.write(path, samples, 16000)
    whole, data = scene.indexed(run="whole", features=plain), path.read_bytes()
    path.write_bytes(data[: round(0.6 * len(data))])
    outcome = scene.index(features=plain)
    table = scene.store().documents(columns=["doc_id", "channel", "duration", "cut_off"]).to_pylist()
    assert [(row["doc_id"], row["channel"]) for row in table] == [("a", 1), ("a", 2)]  # each channel
    for row in table:
        assert 0.5 * seconds < row["duration"] < 0.65 * seconds
        assert row["cut_off"] == pytest.approx(0.0 if name == "a.ogg" else seconds, abs=0.1)
    found, frames = scene.store().features("a", 2), whole.features("a", 2)
    settled = len(found) - 10
    assert np.abs(found[:settled] - frames[:settled]).max() < 1e-3
    (notice,) = outcome.chain_run.notices()
    assert says(notice, codes.TRUNCATED_RECORDING_INDEXED)
    assert outcome.chain_run.rejected().num_rows == 0
    assert scene.index(features=plain).chain_run.outcomes["index"].done == 0
    path.rename(path.with_stem("z"))  # its frames are copied, and the flag
    (notice,) = scene.index(features=plain).chain_run.notices()
    assert "(first: z, " in notice
