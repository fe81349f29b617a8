"""Transforms on the way into the stores: of documents and of queries, by one path."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas
import pytest

import swsdist
from swsdist.features.transforms.project import Project, projection
from swsdist.io.filesystem import Folder
from swsdist.store.maintaining import check
from swsdist.store.reading import Store


@pytest.mark.slow
@pytest.mark.until("search")
def test_a_run_with_a_projection(scene: Any) -> None:
    scene.run(run="plain")
    plain = Store(Folder(str(scene.folder / "plain" / "store")))
    frames = np.concatenate([plain.features(name) for name in plain.documents()["doc_id"].to_pylist()])
    _, axes = np.linalg.eigh(np.cov(frames.T.astype(np.float64)))
    made = projection(frames.mean(axis=0), axes[:, ::-1], frames.std(axis=0))
    made.save(Folder(str(scene.folder)), "pca.npz")
    model = str(scene.folder / "pca.npz")
    transforms = [{"name": "project", "options": {"model": model, "columns": 12}}]
    features = [{"name": "mfcc"}, {"name": "mfcc", "track": "pca", "transforms": transforms}]
    sets = (f"features={json.dumps(features)}", 'search.streams=[{"track": "pca", "normalise": "none"}]')
    found = scene.run(*sets, until="reduce")
    assert sum(table.num_rows for table in found.outcome.chain_run.read("detections")) > 0
    store, queries = (Store(Folder(str(scene.folder / "run" / name))) for name in ("store", "queries"))
    assert [(track.name, track.dimension) for track in store.manifest.tracks] == [("mfcc", 39), ("pca", 12)]
    assert store.manifest.track("pca").columns == tuple(f"p{k}" for k in range(12))
    same = Project(model=model, columns=12)
    for one, doc_id in ((store, "d003"), (queries, queries.documents()["doc_id"][0].as_py())):
        assert list(check(one)) == []
        channel = one.documents()["channel"][0].as_py()
        assert one.features(doc_id, channel, "pca").tobytes() == same.apply(one.features(doc_id, channel)).tobytes()
    # The same on other shards; a search by hand makes the extractors of the store again, transforms included.
    scene.run(*sets, "index.shards=5", "executor.kind=serial", run="five")
    assert scene.digest() == scene.digest("five")
    row = {"query_id": "a", "path": str(sorted((scene.corpus / "queries").iterdir())[0])}
    options = {"streams": [{"track": "pca", "normalise": "none"}]}
    found = swsdist.search(str(scene.folder / "run" / "store"), pandas.DataFrame([row]), options=options)
    assert len(found) > 0
    # A model that was moved is the same: nothing is computed, and a search by hand finds it.
    moved = scene.folder / "moved.npz"
    (scene.folder / "pca.npz").rename(moved)
    transforms[0]["options"]["model"] = str(moved)
    sets = (f"features={json.dumps(features)}", sets[1])
    assert scene.run(*sets).outcome.tasks_done == 0
    again = swsdist.search(str(scene.folder / "run" / "store"), pandas.DataFrame([row]), options=options)
    assert again.equals(found)
    # Another model is another track, and the one that has not changed stays.
    projection(frames.mean(axis=0) + 1, axes[:, ::-1], frames.std(axis=0)).save(Folder(str(scene.folder)), "moved.npz")
    before = store.manifest.shards[0].files
    assert scene.run(*sets).outcome.chain_run.outcomes["index"].done == 1
    after = Store(store.folder).manifest.shards[0].files
    assert (before["mfcc"] == after["mfcc"], before["pca"] == after["pca"]) == (True, False)
