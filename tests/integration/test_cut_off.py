"""Recordings that are cut off at the end: what is before is indexed, and it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from swsdist.config import config_from_dict
from swsdist.core.codes import stages as codes
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import ChainRun, StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress
from swsdist.store.reading import Store, of_store
from tests.support.coded import says

SECONDS, RATE = 20, 16000


class Scene:
    """A folder of recordings, and its stores."""

    def __init__(self, root: Path) -> None:
        self.root, self.sounds = root, root / "sounds"
        self.sounds.mkdir()
        self.samples = np.random.default_rng(3).normal(scale=0.1, size=(SECONDS * RATE, 2)).astype(np.float32)

    def record(self, name: str, part: float = 1.0) -> None:
        path = self.sounds / name
        soundfile.write(path, self.samples, RATE)
        data = path.read_bytes()
        path.write_bytes(data[: round(part * len(data))])

    def index(self, run: str = "run", **config: Any) -> ChainRun:
        values: dict[str, Any] = {
            "run": str(self.root / run),
            "corpus": {"documents": str(self.sounds)},
            "executor": {"kind": "serial"},
            **config,
        }
        outcome = run_stages(config_from_dict(values, "."), StepSelection(until="index"), Progress())
        assert outcome.failures == []
        return outcome.chain_run

    def rows(self, run: str = "run") -> dict[tuple[str, int], tuple[float, float | None]]:
        table = self.store(run).documents(columns=["doc_id", "channel", "duration", "cut_off"]).to_pylist()
        return {(row["doc_id"], row["channel"]): (row["duration"], row["cut_off"]) for row in table}

    def store(self, run: str = "run") -> Store:
        return Store(Folder(str(self.root / run / "store")))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.mark.parametrize("name", ["a.flac", "a.wav", "a.mp3", "a.ogg"])
def test_what_is_before_the_cut_is_indexed(scene: Scene, name: str) -> None:
    scene.record(name)
    scene.index("whole")
    scene.record(name, 0.6)
    chain_run = scene.index()
    told = {"a.ogg": 0.0}.get(name, SECONDS)
    rows = scene.rows()
    assert rows.keys() == {("a", 1), ("a", 2)}  # each channel
    for duration, cut_off in rows.values():
        assert 0.5 * SECONDS < duration < 0.65 * SECONDS
        assert cut_off == pytest.approx(told, abs=0.1)
    found, whole = scene.store().features("a", 2), scene.store("whole").features("a", 2)
    settled = len(found) - 10
    assert np.abs(found[:settled] - whole[:settled]).max() < 1e-3
    (notice,) = chain_run.notices()
    assert says(notice, codes.TRUNCATED_RECORDING_INDEXED)
    assert chain_run.rejected().num_rows == 0
    assert scene.index().outcomes["index"].done == 0


def test_the_same_in_any_shards(scene: Scene) -> None:
    for k, name in enumerate(("a.flac", "b.wav", "c.mp3", "d.ogg")):
        scene.record(name, 0.5 + 0.1 * k)
    scene.index("one", index={"shards": 1})
    scene.index("many", index={"shards": 8})
    assert of_store(scene.store("one")) == of_store(scene.store("many"))
    assert scene.rows("one") == scene.rows("many")
