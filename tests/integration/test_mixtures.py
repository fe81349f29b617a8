"""A Gaussian mixture is fitted in the run: any shards and workers, resume at its round, documents that come later."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swsdist.features.fitting.interface import load_model
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain_run import StepSelection
from swsdist.store.reading import Store

pytestmark = pytest.mark.until("search")

#: Two transforms that are fitted, one after the other; the second on speech only.
FITTED = [
    {"name": "mean-variance", "options": {"hours": 1}},
    {"name": "gmm", "options": {"components": 6, "iterations": 3, "hours": 1}},
]
FEATURES = "features=" + json.dumps([{"name": "mfcc", "track": "gmm", "transforms": FITTED}])
STREAMS = 'search.streams=[{"track": "gmm", "normalise": "none", "distance": "cosine"}]'


def store_of(scene: Any, run: str = "run") -> Store:
    return Store(Folder(str(scene.folder / run / "store")))


@pytest.mark.slow
def test_posteriors_of_a_run(scene: Any) -> None:
    scene.run(FEATURES, STREAMS)
    store = store_of(scene)
    assert {"mean-variance.gmm", "gmm.gmm"} < set(store.manifest.models)
    assert store.manifest.tracks[0].kind == "posteriors"
    frames = store.features(store.documents()["doc_id"].to_pylist()[0], track="gmm")
    assert frames.sum(axis=1) == pytest.approx(np.ones(len(frames)), abs=1e-4)
    model = load_model(store.folder, store.manifest.models["gmm.gmm"])
    likelihoods: Any = model.settings["likelihoods"]
    assert len(likelihoods) == 2 + 2 + 3  # after splits into two, four and six
    assert likelihoods[-1] > likelihoods[0]
    assert scene.run(FEATURES, STREAMS).outcome.tasks_done == 0
    scene.run(FEATURES, STREAMS, "index.shards=4", run="four")
    assert scene.digest("four") == scene.digest()
    # What is made of posteriors does not matter to the mixture.
    sharper = json.loads(FEATURES.partition("=")[2])
    sharper[0]["transforms"][1]["options"] |= {"keep": 3, "floor": 0}
    scene.run("features=" + json.dumps(sharper), STREAMS)
    assert store_of(scene).manifest.models["gmm.gmm"] == store.manifest.models["gmm.gmm"]
    # Fitted anew it is the same.
    assert (
        scene.run(FEATURES, STREAMS, run="four", selection=StepSelection(redo_from="fit-transforms")).outcome.tasks_done
        > 0
    )
    again = store_of(scene, "four")
    assert again.manifest.models["gmm.gmm"] == store.manifest.models["gmm.gmm"].replace(".npz", ".2.npz")
    fitted, anew = (load_model(each.folder, each.manifest.models["gmm.gmm"]) for each in (store, again))
    assert anew.fingerprint == fitted.fingerprint


@pytest.mark.slow
def test_killed_between_rounds(scene: Any) -> None:
    scene.run(FEATURES, STREAMS, run="whole")
    for target in (3, 8):
        process = scene.start(FEATURES, STREAMS)
        while process.poll() is None and len(scene.receipts()) < target:
            time.sleep(0.002)
        process.kill()
        process.communicate()
    receipts = scene.receipts()
    scene.run(FEATURES, STREAMS)
    assert receipts.items() <= scene.receipts().items(), "a round that had its receipts was done again"
    assert scene.digest() == scene.digest("whole")


@pytest.mark.slow
def test_from_elsewhere(scene: Any, tmp_path: Path) -> None:
    """The models of one run, named in another: nothing is fitted, and the frames are the same."""
    scene.run(FEATURES, STREAMS)
    store = store_of(scene)
    features = json.loads(FEATURES.partition("=")[2])
    for one in features[0]["transforms"]:
        one["options"]["model"] = store.folder.path(store.manifest.models[f"{one['name']}.gmm"])
    scene.run("features=" + json.dumps(features), STREAMS, run="named")
    assert not any(name.startswith("fit-transforms") for name in scene.receipts("named"))
    assert scene.digest("named") == scene.digest()


@pytest.mark.slow
def test_a_warp_for_each_speaker(scene: Any) -> None:
    """Speakers of the documents have factors, which hold for queries of theirs; any shards give the same."""
    vtln = {"name": "vtln", "options": {"step": 0.12, "components": 3, "iterations": 1, "hours": 1}}
    plain = {"name": "mfcc"}
    named = f"features={json.dumps([plain, vtln])}"
    streams = "search.streams=[{track: vtln}]"
    scene.run(named, streams)
    store = store_of(scene)
    model = load_model(store.folder, store.manifest.models["vtln.vtln"])
    rows = store.documents().to_pylist()
    speakers: Any = model.settings["speakers"]
    assert set(speakers) == {row["speaker"] for row in rows}
    factors = dict(zip(speakers, model.arrays["factors"].tolist(), strict=True))
    assert set(factors.values()) <= {0.88, 1.0, 1.12}
    for row in rows:
        warped, unwarped = (store.features(row["doc_id"], track=name) for name in ("vtln", "mfcc"))
        assert (np.abs(warped - unwarped).max() < 1e-2) == (factors[row["speaker"]] == 1.0)
