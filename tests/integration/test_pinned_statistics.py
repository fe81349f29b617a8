"""What normalises is pinned: it does not depend on what failed before, and not on a corpus that is gone."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from swsdist.config import config_from_dict
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress
from swsdist.store import writing
from swsdist.store.maintaining import check, compact, refit
from swsdist.store.reading import Store

OPTIONS = {"sample_rate": 1000, "n_fft": 32, "win_length": 25, "hop_length": 10, "n_mels": 8, "n_mfcc": 4, "deltas": 1}


class Scene:
    """A corpus that changes, and its store."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self._patch = root, monkeypatch

    def index(self, *names: str, failing: bool = False, run: str = "run", shards: int = 2) -> Store:
        """Index these recordings; `failing`: the task of the last shard fails."""
        for name in names:
            if not (self.root / f"{name}.wav").exists():
                self.record(name, sum(name.encode()))
        with (self.root / "docs.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["doc_id", "path", "speaker"], *([n, f"{n}.wav", n[0]] for n in names)])
        values: dict[str, Any] = {
            "run": str(self.root / run),
            "corpus": {"documents": str(self.root / "docs.csv")},
            "features": {"name": "mfcc", "options": OPTIONS},
            "index": {"shards": shards},
            "executor": {"kind": "serial", "attempts": 1},
        }
        with self._patch.context() as patch:
            if failing:
                write = writing._write_document

                def fails(shards: Any, tracks: Any, document: Any, *rest: Any) -> Any:
                    if document["doc_id"] == names[-1]:
                        raise RuntimeError("the disk is full")
                    return write(shards, tracks, document, *rest)

                patch.setattr(writing, "_write_document", fails)
            outcome = run_stages(config_from_dict(values, "."), StepSelection(until="index"), Progress())
        assert bool(outcome.failures) == failing
        return Store(Folder(str(self.root / run / "store")))

    def record(self, name: str, seed: int) -> None:
        samples = np.random.default_rng(seed).normal(scale=0.1, size=1000 + 10 * seed)
        soundfile.write(self.root / f"{name}.wav", samples.astype(np.float32), 1000, subtype="FLOAT")


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path, monkeypatch)


def seen(store: Store) -> dict[tuple[str, str], tuple[int, bytes]]:
    """Frames and mean of every scope."""
    return {scope: (one.frames, one.mean.tobytes()) for scope, one in store.statistics().items()}


def test_a_failed_task_while_a_store_grows_leaves_them(scene: Scene) -> None:
    """M4 (a)."""
    before = seen(scene.index("a1", "a2", "b1", "b2"))
    whole = seen(scene.index("a1", "a2", "b1", "b2"))
    assert whole == before
    provisional = scene.index("a1", "a2", "b1", "b2", "c1", "c2", failing=True)
    assert provisional.manifest.provisional
    assert provisional.statistics()["collection", ""].frames == before["collection", ""][0]
    after = scene.index("a1", "a2", "b1", "b2", "c1", "c2")
    assert not after.manifest.provisional
    assert before.items() <= seen(after).items()
    # A speaker who came with the failed task is taken of all that is there in the end.
    assert seen(after).keys() - before.keys() == {("speaker", "c")}
    scene.index("a1", "a2", "b1", "b2", run="other")
    assert seen(scene.index("a1", "a2", "b1", "b2", "c1", "c2", run="other")) == seen(after)


def test_compact_does_not_freeze_what_waits(scene: Scene) -> None:
    """M4 (b)."""
    clean = seen(scene.index("a1", "a2", "b1", "b2", run="clean"))
    provisional = scene.index("a1", "a2", "b1", "b2", failing=True)
    assert seen(provisional) != clean
    compact(provisional.folder, 1.0)
    compacted = Store(provisional.folder)
    assert compacted.manifest.provisional
    assert seen(compacted) == seen(provisional)
    assert seen(scene.index("a1", "a2", "b1", "b2")) == clean


@pytest.mark.parametrize("lost", ["rejected", "documents"])
def test_a_lost_table_leaves_them(scene: Scene, lost: str) -> None:
    """M4 (c)."""
    scene.index("a1", "a2")
    store = scene.index("a1", "a2", "b1", "b2")
    before = seen(store)
    manifest = store.manifest
    store.folder.remove({"rejected": manifest.rejected, "documents": manifest.tracks[0].documents}[lost])
    again = scene.index("a1", "a2", "b1", "b2")
    assert seen(again) == before
    assert list(check(again)) == []


def test_another_corpus_is_not_normalised_by_the_one_before(scene: Scene) -> None:
    """M5."""
    scene.index("a1", "a2", "b1")
    after = scene.index("b2", "c1", "c2")
    assert seen(after) == seen(scene.index("b2", "c1", "c2", run="new"))
    assert after.manifest.counts["statistics_gone"] == 0


def test_a_failed_task_does_not_look_like_another_corpus(scene: Scene) -> None:
    """The recordings that are left are those whose shard failed."""
    before = scene.index("b1", shards=1)
    for name in before.manifest.shards:
        before.folder.remove(name.name)
    lost = scene.index("a1", "b1", failing=True)
    assert lost.statistics()["collection", ""].frames == before.statistics()["collection", ""].frames
    assert seen(before).items() <= seen(scene.index("a1", "b1")).items()


def test_mended_recordings_are_counted_until_they_are_fitted_anew(scene: Scene) -> None:
    """M5, in part: the same documents, one of them recorded anew."""
    before = seen(scene.index("a1", "a2", "b1"))
    scene.record("a2", 77)
    mended = scene.index("a1", "a2", "b1")
    assert seen(mended) == before
    assert mended.manifest.counts["statistics_gone"] == 1
    assert refit(mended.folder) == (1, 3, ())
    fitted = Store(mended.folder)
    assert fitted.manifest.counts["statistics_gone"] == 0
    assert seen(fitted) == seen(scene.index("a1", "a2", "b1", run="new"))
    assert list(check(fitted)) == []
    # That is pinned as well.
    grown = scene.index("a1", "a2", "b1", "c1")
    assert seen(fitted).items() <= seen(grown).items()
