"""Voices of runs that share a store: they stay whoever comes between, and are fitted again only if their file is lost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from commands import in_this_process

from swsdist.config import config_from_dict
from swsdist.core.codes import stages as codes
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import Outcome, StepSelection
from swsdist.pipeline.driver import run_stages
from swsdist.pipeline.operation.progress import Progress
from swsdist.store import writing
from swsdist.store.maintaining import check, refit
from swsdist.store.reading import Store
from tests.support.coded import says

OPTIONS = {"sample_rate": 1000, "n_fft": 32, "win_length": 25, "hop_length": 10, "n_mels": 8, "n_mfcc": 4, "deltas": 0}
TRACKS = {
    "a": {"name": "mfcc", "track": "a", "options": OPTIONS},
    "b": {"name": "mfcc", "track": "b", "options": {**OPTIONS, "n_mfcc": 3}},
}


class Scene:
    """Half an hour of speech by nobody named, in two voices, and a store of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for k in range(12):
            noise = np.random.default_rng(k).normal(scale=0.1, size=150_000)
            samples = noise if k % 2 else np.convolve(noise, np.ones(8) / 8, "same")
            soundfile.write(root / f"d{k}.wav", samples.astype(np.float32), 1000, subtype="FLOAT")

    def index(self, tracks: str, count: int = 12) -> tuple[Store, Outcome]:
        rows = "".join(f"d{k},d{k}.wav\n" for k in range(count))
        (self.root / "docs.csv").write_text(f"doc_id,path\n{rows}")
        values: dict[str, Any] = {
            "run": str(self.root / tracks),
            "corpus": {"documents": str(self.root / "docs.csv")},
            "features": [TRACKS[name] for name in tracks],
            "index": {"shards": 2, "store": str(self.root / "store")},
            "executor": {"kind": "serial", "attempts": 1},
        }
        outcome = run_stages(config_from_dict(values, "."), StepSelection(until="index"), Progress())
        return Store(Folder(str(self.root / "store"))), outcome


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def voices(store: Store, track: str | None = None) -> dict[str, Any]:
    table = store.documents(columns=["doc_id", "voices"], track=track)
    return dict(zip(table["doc_id"].to_pylist(), table["voices"].to_pylist(), strict=True))


def pinned(store: Store) -> set[str]:
    return {file for name, file in store.manifest.models.items() if name.startswith("voices.")}


def test_another_order_of_tracks_changes_no_voice(scene: Scene) -> None:
    """Also not those of documents that come after it."""
    (scene.root / "alone").mkdir()
    alone = Scene(scene.root / "alone")
    first, _ = scene.index("ab", 5)
    alone.index("ab", 5)
    before, files = voices(first), pinned(first)
    numbers = sorted(Counter(voice for each in before.values() for voice in set(each)).values(), reverse=True)
    info = in_this_process("store", "info", first.folder.root).out
    assert f"voices      {len(numbers)}, in {', '.join(map(str, numbers))} documents without a speaker\n" in info
    assert None not in before.values()
    other, _ = scene.index("ba", 12)
    assert files < pinned(other)
    assert None not in voices(other).values()
    assert set(voices(other, "a").values()) == {None}  # only the first track has them
    again, _ = scene.index("ab", 12)
    wanted, _ = alone.index("ab", 12)
    assert voices(again) == voices(wanted)
    assert before.items() <= voices(again).items()
    assert set(voices(again, "b").values()) == {None}
    assert pinned(again) == pinned(other)
    assert list(check(again)) == []
    refit(again.folder)
    refitted = Store(again.folder)
    assert not pinned(refitted) & pinned(other)


@pytest.mark.parametrize("model", ["voices", "statistics"])
def test_a_lost_model_is_fitted_again(scene: Scene, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And told; no recording is read again."""
    before, _ = scene.index("ab")
    (file, *_) = (file for name, file in before.manifest.models.items() if name.startswith(f"{model}."))
    before.folder.remove(file)
    assert len(list(check(before))) == 1

    def read(*_: Any) -> None:
        raise AssertionError("a recording is read again")

    monkeypatch.setattr(writing, "_write_document", read)
    after, outcome = scene.index("ab")
    (notice,) = [text for text in outcome.chain_run.notices() if says(text, codes.LOST_MODEL)]
    assert file in notice
    assert after.manifest.models == before.manifest.models
    assert voices(after) == voices(before)
    assert list(check(after)) == []
    _, outcome = scene.index("ab")
    assert not [text for text in outcome.chain_run.notices() if says(text, codes.LOST_MODEL)]


def test_a_lost_table_is_told(scene: Scene) -> None:
    before, _ = scene.index("ab", 4)
    before.folder.remove(before.manifest.rejected)
    after, outcome = scene.index("ab", 4)
    (notice,) = [text for text in outcome.chain_run.notices() if says(text, codes.LOST_TABLE)]
    assert before.manifest.rejected in notice
    assert voices(after) == voices(before)
