"""An index that was interrupted: what is done can be searched, and going on ends where an undisturbed run does."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from commands import in_this_process

import swsdist
from swsdist.config import config_from_dict
from swsdist.core.errors import StoreError, UserError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.cleaning import clean
from swsdist.pipeline.operation.progress import Progress
from swsdist.store.maintaining import check, compact, refit
from swsdist.store.reading import Store, of_store

OPTIONS = {"sample_rate": 1000, "n_fft": 32, "win_length": 25, "hop_length": 10, "n_mels": 8, "n_mfcc": 4, "deltas": 1}
NAMES = ("a1", "a2", "b1", "b2", "c1", "c2")


class Interrupts(Progress):
    """Somebody presses Ctrl-C after so many tasks."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def task(self, *rest: Any) -> None:
        super().task(*rest)
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


class Scene:
    """A corpus that grows, and its stores."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def index(self, *names: str, run: str = "run", shards: int = 4, progress: Progress | None = None) -> Store:
        for name in names:
            if not (path := self.root / f"{name}.wav").exists():
                seed = sum(name.encode())
                samples = np.random.default_rng(seed).normal(scale=0.1, size=1000 + 100 * (seed % 7))
                soundfile.write(path, samples.astype(np.float32), 1000, subtype="FLOAT")
        with (self.root / "docs.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["doc_id", "path", "speaker"], *([n, f"{n}.wav", n[0]] for n in names)])
        values: dict[str, Any] = {
            "run": str(self.root / run),
            "corpus": {"documents": str(self.root / "docs.csv")},
            "features": {"name": "mfcc", "options": OPTIONS},
            "index": {"shards": shards},
            "executor": {"kind": "serial"},
        }
        run_stages(config_from_dict(values, "."), StepSelection(until="index"), progress or Progress())
        return self.store(run)

    def interrupted(self, *names: str, after: int, **keywords: Any) -> Store:
        with pytest.raises(KeyboardInterrupt):
            self.index(*names, progress=Interrupts(after), **keywords)
        return self.store(keywords.get("run", "run"))

    def store(self, run: str = "run") -> Store:
        return Store(Folder(str(self.root / run / "store")))

    def search(self, run: str = "run") -> Any:
        query = f"{self.root / 'a1.wav'}:0.2-0.9"
        return in_this_process("search", str(self.root / run / "store"), "--query", query, "--no-trim", "--json")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.mark.parametrize("before", [(), ("a1", "b1")])
def test_after_each_task_what_is_done_is_searched_and_going_on_ends_alike(
    scene: Scene, before: tuple[str, ...]
) -> None:
    for run in ("once", *map(str, range(1, 4))):
        if before:
            scene.index(*before, run=run)
    once = scene.index(*NAMES, run="once")
    for after in range(1, 4):
        run = str(after)
        held = scene.interrupted(*NAMES, run=run, after=after)
        assert held.manifest.counts["documents"] < len(NAMES)
        assert (held.manifest.unfinished.done, held.manifest.unfinished.tasks) == (after, 4)
        assert list(check(held)) == []
        found = scene.search(run)
        assert found.code == 0, found.err
        part = held.manifest.counts["seconds"] / once.manifest.counts["seconds"]
        assert f"{after} of 4 tasks, {100 * part:.0f} % of the audio, are indexed" in found.err
        assert "swsdist index CONFIG" in found.err
        with pytest.warns(UserWarning, match=f"{after} of 4 tasks"):
            swsdist.search(str(scene.root / run / "store"), f"{scene.root / 'a1.wav'}:0.2-0.9", trim=False)
        done = {path: path.stat().st_mtime_ns for path in (scene.root / run / "store" / "shards").iterdir()}
        whole = scene.index(*NAMES, run=run)
        assert whole.manifest == once.manifest  # shards, statistics and name: of the state itself, not of its rows only
        assert of_store(whole) == of_store(once)
        assert (
            done.items()
            <= {path: path.stat().st_mtime_ns for path in Path(whole.folder.root, "shards").iterdir()}.items()
        )
        assert "are indexed" not in scene.search(run).err


def test_one_that_was_killed_is_told_and_searched_when_it_goes_on(scene: Scene) -> None:
    scene.interrupted(*NAMES, after=2)
    store = scene.root / "run" / "store"
    for path in store.glob("manifest*"):  # nobody has committed
        path.unlink()
    with pytest.raises(StoreError) as met:
        scene.store()
    assert "2 of its tasks are done" in met.value.message
    assert "swsdist index CONFIG" in (met.value.remedy or "")

    class Looks(Progress):
        seen: Any = None

        def task(self, *rest: Any) -> None:
            self.seen = self.seen or Store(Folder(str(store))).manifest

    looks = Looks()
    whole = scene.index(*NAMES, progress=looks)
    assert (looks.seen.unfinished.done, looks.seen.unfinished.tasks) == (2, 4)
    assert whole.manifest.unfinished is None


def test_a_corpus_that_shrinks_back_is_whole(scene: Scene) -> None:
    before = scene.index("a1", "b1").manifest
    scene.interrupted(*NAMES, after=1)
    assert scene.index("a1", "b1").manifest == before


def test_what_it_goes_on_from_stays(scene: Scene) -> None:
    """Neither cleaned nor compacted away: going on would compute it again."""
    scene.index("a1", "b1")
    scene.interrupted(*NAMES, after=1)
    folder = scene.store().folder
    found, _ = clean(Folder(str(scene.root / "run")), 0.0, False)
    assert found == []
    for maintain in (lambda: compact(folder, 1.0), lambda: refit(folder)):
        with pytest.raises(UserError, match="interrupted"):
            maintain()
    done = {path: path.stat().st_mtime_ns for path in (scene.root / "run" / "store" / "shards").iterdir()}
    whole = scene.index(*NAMES)
    assert whole.manifest.counts["documents"] == len(NAMES)
    assert (
        done.items() <= {path: path.stat().st_mtime_ns for path in Path(whole.folder.root, "shards").iterdir()}.items()
    )
