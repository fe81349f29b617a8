"""The index of the first pass quantised is kept in the store: made once a shard, by a codebook that is pinned."""

from __future__ import annotations

import json
from typing import Any

import pytest
from test_several_tracks import store_of

from swsdist.io.filesystem import Folder
from swsdist.methods.first_pass import search as searching
from swsdist.pipeline.operation.cleaning import clean
from swsdist.store.maintaining import check, compact, refit

pytestmark = pytest.mark.until("search")

FIRST_PASS = {"name": "quantised", "factor": 2, "sample": 0, "windows": {"least": 3}}
QUANTISED = f"search.first_pass={json.dumps(FIRST_PASS)}"
BY_DOCUMENT = f"search.first_pass={json.dumps({**FIRST_PASS, 'over': 'document'})}"


def steps(result: Any) -> dict[str, tuple[int, int]]:
    ended = result.outcome.chain_run.outcomes
    return {name: (ended[name].done, ended[name].skipped) for name in ("index", "quantise", "search")}


@pytest.mark.slow
@pytest.mark.parametrize("first_pass", [QUANTISED, BY_DOCUMENT])
def test_it_finds_what_is_found_without(scene: Any, first_pass: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(searching, "kept_index", lambda *_: None)
        scene.run(first_pass, "index.shards=2", run="made")
    with monkeypatch.context() as patch:
        patch.setattr("swsdist.methods.first_pass.quantised.build", None)  # nothing is made by the search
        scene.run(first_pass, "index.shards=1", run="one")
        scene.run(first_pass, "index.shards=7", run="seven")
    assert scene.digest("made") == scene.digest("one") == scene.digest("seven")
    (name,) = (name for name in store_of(scene, "one").manifest.models if name.startswith("codebook."))
    assert store_of(scene, "one").manifest.models[name] == store_of(scene, "seven").manifest.models[name]
    assert list(check(store_of(scene, "seven"))) == []


@pytest.mark.slow
def test_documents_that_come_are_indexed_by_the_same_codebook(own_corpus: Any) -> None:
    scene = own_corpus
    scene.select(1, 2, 3, 4, 5)
    assert steps(scene.run(QUANTISED, "index.shards=2"))["quantise"] == (3, 0)
    models = store_of(scene).manifest.models
    assert steps(scene.run(QUANTISED, "index.shards=2"))["quantise"] == (0, 2)
    scene.select(*range(1, 9))
    assert steps(scene.run(QUANTISED, "index.shards=1"))["quantise"] == (1, 2)
    assert store_of(scene).manifest.models == models
    digest = scene.digest()
    # Compacted: other files, the same codebook and results.
    compact(store_of(scene).folder, 1.0)
    assert steps(scene.run(QUANTISED, until=""))["quantise"] == (1, 0)
    assert scene.digest() == digest
    clean(Folder(str(scene.folder / "run")), 0.0, dry=False)
    assert len(list((scene.folder / "run" / "store" / "codes").glob("*"))) == 1
    # A new one is made when it is asked for.
    refit(store_of(scene).folder)
    assert not any(name.startswith("codebook.") for name in store_of(scene).manifest.models)
    assert steps(scene.run(QUANTISED))["quantise"] == (2, 0)
    scene.run(QUANTISED, run="once")
    assert scene.digest() == scene.digest("once")


def test_a_lost_list_is_made_again(scene: Any) -> None:
    scene.run(QUANTISED, "index.shards=3")
    digest = scene.digest()
    next((scene.folder / "run" / "store" / "codes").glob("*")).unlink()
    assert steps(scene.run(QUANTISED, "index.shards=3"))["quantise"] == (1, 2)
    assert scene.digest() == digest


@pytest.mark.slow
def test_a_failed_codebook_is_made_the_next_time(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.run(QUANTISED, run="once")
    with monkeypatch.context() as patch:
        patch.setattr(searching, "fit_codebook", lambda *_: 1 // 0)
        failed = scene.run(QUANTISED)
    assert [one.task.stage for one in failed.outcome.failures] == ["quantise"]
    assert not any(name.startswith("codebook.") for name in store_of(scene).manifest.models)
    # The search has made its index by itself, and found the same.
    assert scene.digest()["candidates"] == scene.digest("once")["candidates"]
    assert steps(scene.run(QUANTISED))["quantise"] == (2, 0)
    assert scene.digest() == scene.digest("once")
