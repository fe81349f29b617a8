"""MFCC up to the frequency that a collection has in common: chosen before it is indexed, and pinned in its store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import soxr

from swsdist.features.fitting.interface import load_model
from swsdist.io.filesystem import Folder
from swsdist.searcher.searcher import Searcher
from swsdist.store.reading import Store

pytestmark = pytest.mark.until("search")


def features(fmax: object) -> str:
    """MFCC, and transformed ones behind the same choice."""
    low = {"name": "mfcc", "track": "normal", "options": {"fmax": fmax}, "transforms": [{"name": "mean-variance"}]}
    return "features=" + json.dumps([{"name": "mfcc", "options": {"fmax": fmax}}, low])


def narrowed(scene: Any, *numbers: int) -> None:
    """Send documents through 8 kHz."""
    for number in numbers:
        (path,) = scene.corpus.rglob(f"d{number:03d}.*")
        sound, rate = soundfile.read(path, dtype="float32")
        soundfile.write(path, soxr.resample(soxr.resample(sound, rate, 8000), 8000, rate)[: len(sound)], rate)


def store_of(scene: Any, run: str) -> Store:
    return Store(Folder(str(scene.folder / run / "store")))


def same_frames(store: Store, other: Store, *tracks: str) -> bool:
    names = store.documents()["doc_id"].to_pylist()
    assert names == other.documents()["doc_id"].to_pylist()
    pairs = [(name, track) for name in names for track in tracks]
    return all(np.array_equal(store.features(n, track=t), other.features(n, track=t)) for n, t in pairs)


def hits(scene: Any, run: str) -> Any:
    with Searcher(str(scene.folder / run)) as searcher:
        return list(searcher.stream(str(scene.corpus / "queries.csv"), 20))[-1].table()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("narrow", "fmax", "other"), [((1, 2), 3700.0, None), ((), None, 3700.0)], ids=["8khz", "wide"]
)
def test_frames_and_hits_are_those_of_the_chosen_band(
    own_corpus: Any, narrow: tuple[int, ...], fmax: float | None, other: float | None
) -> None:
    scene = own_corpus
    narrowed(scene, *narrow)
    scene.run(features("common"), run="common")
    scene.run(features(fmax), run="given")
    scene.run(features(other), run="other")
    store = store_of(scene, "common")
    models = store.manifest.models
    assert models["mfcc.mfcc"] == models["mfcc.normal"]
    assert load_model(store.folder, models["mfcc.mfcc"]).settings == {"fmax": fmax}
    assert same_frames(store, store_of(scene, "given"), "mfcc", "normal")
    assert not same_frames(store, store_of(scene, "other"), "mfcc")
    found = hits(scene, "common")
    assert found.num_rows > 10
    assert found.equals(hits(scene, "given"))
    assert not found.equals(hits(scene, "other"))
    assert scene.run(features("common"), run="common").outcome.tasks_done == 0
    # Neither tasks nor shards matter.
    scene.run(features("common"), "index.shards=3", run="cut")
    assert (Path(store.folder.root) / models["mfcc.mfcc"]).read_bytes() == (
        scene.folder / "cut" / "store" / models["mfcc.mfcc"]
    ).read_bytes()


def test_later_documents_do_not_change_the_choice(own_corpus: Any) -> None:
    scene = own_corpus
    narrowed(scene, 4, 5, 6)
    scene.select(1, 2, 3)
    scene.run(features("common"))
    models = store_of(scene, "run").manifest.models
    scene.select(1, 2, 3, 4, 5, 6)
    scene.run(features("common"))
    assert store_of(scene, "run").manifest.models == models
    scene.run(features(None), run="given")
    assert same_frames(store_of(scene, "run"), store_of(scene, "given"), "mfcc")
    # A run with a store of its own chooses otherwise.
    scene.run(features("common"), run="fresh")
    scene.run(features(3700), run="narrow")
    assert same_frames(store_of(scene, "fresh"), store_of(scene, "narrow"), "mfcc")
