"""A recording whose bytes a store knows is not computed again, wherever it lies and whatever it is called now."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from swsdist.config import config_from_dict
from swsdist.features.mfcc import Mfcc
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import Outcome, StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress
from swsdist.stages.buckets import Indexed
from swsdist.stages.index import Index
from swsdist.store.maintaining import check
from swsdist.store.reading import Store, of_store

OPTIONS = {"sample_rate": 1000, "n_fft": 32, "win_length": 25, "hop_length": 10, "n_mels": 8, "n_mfcc": 4, "deltas": 1}
NAMES = ("a", "b", "c", "d")


class Scene:
    """A folder `archive` with recordings in `sounds`, and a run in `run`.

    Attributes:
        extracted: how many blocks of samples were made frames.
    """

    def __init__(self, root: Path) -> None:
        self.archive = root / "archive"
        self.extracted = 0
        for name in NAMES:
            self.record(name)

    @property
    def sounds(self) -> Path:
        return self.archive / "sounds"

    def record(self, name: str, seconds: float = 1.2, channels: int = 1) -> None:
        (self.sounds / name).parent.mkdir(parents=True, exist_ok=True)
        generator = np.random.default_rng(sum(name.encode()))
        samples = generator.normal(scale=0.1, size=(round(1000 * seconds), channels))
        soundfile.write(self.sounds / f"{name}.wav", samples.astype(np.float32), 1000, subtype="FLOAT")

    def index(self, run: str = "run", shards: int = 2, features: Any = None) -> Outcome:
        values: dict[str, Any] = {
            "run": str(self.archive / run),
            "corpus": {"documents": str(self.sounds)},
            "features": features or {"name": "mfcc", "options": OPTIONS},
            "index": {"shards": shards},
            "executor": {"kind": "serial"},
        }
        self.extracted = 0
        outcome = run_stages(config_from_dict(values, "."), StepSelection(until="index"), Progress())
        assert outcome.failures == []
        return outcome

    def store(self, run: str = "run") -> Store:
        return Store(Folder(str(self.archive / run / "store")))

    def demand_as_fresh(self, **keywords: Any) -> None:
        """The store is whole, and has the rows of one that is made of the same recordings now."""
        assert list(check(self.store())) == []
        self.index("fresh", shards=3, **keywords)
        assert of_store(self.store()) == of_store(self.store("fresh"))
        paths = self.store().documents(columns=["path"])["path"].to_pylist()
        assert sorted(paths) == sorted(self.store("fresh").documents(columns=["path"])["path"].to_pylist())


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    made = Scene(tmp_path)
    extract = Mfcc.extract

    def counted(self: Mfcc, samples: Any) -> Any:
        made.extracted += 1
        return extract(self, samples)

    monkeypatch.setattr(Mfcc, "extract", counted)
    monkeypatch.setattr(Index, "warm", lambda *_: None)  # it extracts a second of silence
    return made


def held(outcome: Outcome) -> Iterator[int]:
    return (told.held for told in outcome.chain_run.results("documents", Indexed))


def test_all_moved_together(scene: Scene) -> None:
    scene.index()
    assert scene.extracted
    scene.archive = scene.archive.rename(scene.archive.with_name("elsewhere"))
    before = {path: path.stat().st_mtime_ns for path in (scene.archive / "run" / "store" / "shards").iterdir()}
    outcome = scene.index()
    assert (scene.extracted, outcome.tasks_done) == (0, 0)
    assert outcome.chain_run.chain.inputs.store.comparison.counts == (0, 0, 0, 4, 0)
    assert {path: path.stat().st_mtime_ns for path in (scene.archive / "run" / "store" / "shards").iterdir()} == before
    assert scene.index().chain_run.chain.inputs.store.comparison.counts == (0, 0, 0, 0, 0)
    assert scene.extracted == 0
    scene.demand_as_fresh()


@pytest.mark.parametrize("channels", [1, 2])
def test_renamed_and_copied_are_copied_in_the_store(scene: Scene, channels: int) -> None:
    scene.record("d", channels=channels)
    scene.record("long", 90.0, channels=channels)  # of more than one block of frames
    scene.index()
    (scene.sounds / "d.wav").rename(scene.sounds / "e.wav")
    (scene.sounds / "long.wav").rename(scene.sounds / "0.wav")
    shutil.copyfile(scene.sounds / "a.wav", scene.sounds / "copy.wav")
    outcome = scene.index()
    assert scene.extracted == 0
    assert sum(held(outcome)) == 2 * channels + 1
    assert outcome.chain_run.chain.inputs.store.comparison.counts == (
        2 * channels + 1,
        0,
        2 * channels,
        0,
        2 * channels + 1,
    )
    scene.demand_as_fresh()


def test_names_that_change_places(scene: Scene) -> None:
    """As long as each other, and with one time of change: only their bytes tell."""
    for name in NAMES:
        os.utime(scene.sounds / f"{name}.wav", ns=(1, 1))
    scene.index()
    for old, new in (("a", "x"), ("b", "a"), ("x", "b")):
        (scene.sounds / f"{old}.wav").rename(scene.sounds / f"{new}.wav")
    os.utime(scene.sounds / "a.wav", ns=(2, 2))
    os.utime(scene.sounds / "b.wav", ns=(2, 2))
    assert sum(held(scene.index())) == 2
    assert scene.extracted == 0
    scene.demand_as_fresh()


def test_another_recording_under_the_path_of_one_is_computed(scene: Scene) -> None:
    scene.index()
    scene.archive = scene.archive.rename(scene.archive.with_name("elsewhere"))
    samples = np.random.default_rng(77).normal(scale=0.1, size=1200)
    status = (scene.sounds / "b.wav").stat()
    soundfile.write(scene.sounds / "b.wav", samples.astype(np.float32), 1000, subtype="FLOAT")
    os.utime(scene.sounds / "b.wav", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (scene.sounds / "b.wav").stat().st_size == status.st_size
    assert scene.index().chain_run.chain.inputs.store.comparison.counts == (0, 1, 0, 3, 0)
    assert scene.extracted
    scene.demand_as_fresh()


def test_on_s3_etags_tell(scene: Scene, s3: Any) -> None:
    values: dict[str, Any] = {
        "run": str(scene.archive / "run"),
        "features": {"name": "mfcc", "options": OPTIONS},
        "executor": {"kind": "serial"},
        "storage": s3.storage,
    }
    for where in ("known/before", "known/after"):
        place = f"s3://{s3.bucket}/{where}"
        for path in scene.sounds.iterdir():
            Folder(place, s3.storage).write_bytes(path.name, path.read_bytes())
        scene.extracted = 0
        config = config_from_dict({**values, "corpus": {"documents": place}}, ".")
        outcome = run_stages(config, StepSelection(until="index"), Progress())
    assert (scene.extracted, outcome.tasks_done) == (0, 0)
    assert outcome.chain_run.chain.inputs.store.comparison.counts == (0, 0, 0, 4, 0)
    assert {one.path for one in scene.store().recordings().values()} == {f"{place}/{name}.wav" for name in NAMES}
