"""Searches with a first pass, in windows, and with a cap."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from swsdist.methods import sample
from swsdist.registry.registries import FIRST_PASSES


def first_pass(name: str, **settings: object) -> str:
    return f"search.first_pass={json.dumps({'name': name, **settings})}"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FIRST_PASSES))
def test_a_sample_of_everything_is_the_exact_search(scene: Any, name: str) -> None:
    scene.run("index.shards=3", run="exact")
    scene.run("index.shards=2", first_pass(name), run="sampled")
    exact, sampled = scene.digest("exact"), scene.digest("sampled")
    assert {table: sampled[table] for table in exact} == exact


@pytest.mark.slow
@pytest.mark.until("")
def test_verified_queries_are_in_the_report(scene: Any) -> None:
    windows = {"least": 2, "per_second": 0}
    for run, settings in {"few": {"sample": 0, "windows": windows}, "all": {}}.items():
        scene.run("index.shards=2", first_pass("quantised", verify=3, **settings), run=run)
        counts = json.loads((Path(scene.folder) / run / "report.json").read_text("utf-8"))["counts"]
        assert counts["best"] > 10
        assert (counts["best_found"] == counts["best"]) == (run == "all")


@pytest.mark.slow
@pytest.mark.parametrize("over", ["collection", "document"])
def test_a_collection_that_shrinks_is_searched_like_a_new_one(
    own_corpus: Any, over: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The share of the sample changes with the collection, and so do tasks of shards that do not."""
    monkeypatch.setattr(sample, "_FEWEST", 0)
    scene = own_corpus
    settings = first_pass("coarse", over=over, sample=12, windows={"least": 1, "per_second": 0})
    store = "index.store=" + str(scene.folder / "store")
    scene.run(settings, store, "index.shards=4")
    scene.select(1, 2, 3, 4)
    scene.run(settings, store, "index.shards=4")
    scene.run(settings, store, run="new")
    assert scene.digest() == scene.digest("new")


def searched(scene: Any, *sets: str, run: str = "run") -> tuple[dict[str, Any], int, int]:
    """Summary of the one task of the search, and how many frames its examples and its documents have."""
    state = scene.run("search.distance=euclidean", *sets, run=run).outcome.chain_run
    (queries,), (search,) = state.outcomes["queries"].receipts, state.outcomes["search"].receipts
    return (
        search.result,
        queries.result["frames"],
        sum(shard.frames for shard in state.chain.inputs.store.manifest.shards),
    )


@pytest.mark.slow
def test_frames_beyond_the_cap_are_counted(own_corpus: Any) -> None:
    tiny = "search.cap=0.001"  # no frame of speech is within it
    summary, examples, documents = searched(own_corpus, tiny)
    assert summary["saturated"] == examples + documents
    summary, examples, documents = searched(own_corpus, tiny, "corpus.examples=all", "search.examples=template")
    assert summary["saturated"] == examples + documents, "those of all examples that a template is made of"
    some = searched(own_corpus, "search.cap=6")[0]["saturated"]
    assert 0 < some < examples + documents
    cut = searched(own_corpus, "search.cap=6", "search.piece_seconds=1", run="cut")
    assert cut[0]["saturated"] == some, "pieces of documents overlap, and are counted before they are cut"
    assert searched(own_corpus, "search.cap=1e6")[0]["saturated"] == 0


@pytest.mark.parametrize("first_pass", ["quantised", "coarse"])
def test_with_a_first_pass_each_document_is_counted_once(own_corpus: Any, first_pass: str) -> None:
    summary, examples, documents = searched(own_corpus, "search.cap=0.001", f"search.first_pass.name={first_pass}")
    assert summary["saturated"] == examples + documents, "the first pass reads them, and the visit reads them again"


SYSTEMS = Path(__file__).resolve().parents[2] / "configs" / "systems"
