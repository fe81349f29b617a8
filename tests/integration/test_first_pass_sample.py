"""Runs with a first pass: a sample of documents is searched exactly, and queries are verified."""

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


@pytest.mark.slow
def test_the_codebook_need_not_be_pinned(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of one shard each read landmarks in all shards."""
    settings = first_pass("quantised", over="document", sample=0)
    scene.run(settings, "index.shards=3", run="pinned")
    monkeypatch.setattr("swsdist.stages.index.Quantise.plan", lambda *_: iter(()))
    scene.run(settings, "index.shards=3", run="unpinned")
    assert scene.digest("unpinned")["candidates"] == scene.digest("pinned")["candidates"]


@pytest.mark.slow
def test_means_are_over_all_examples_of_a_place(scene: Any) -> None:
    """What one example proposes is searched by the others too: none counts as if it had found nothing there."""
    settings = (first_pass("quantised", sample=0, windows={"least": 1, "per_second": 0}), "queries.trim=none")
    found = {}
    for run, sets in {"exact": settings[1:], "fast": settings}.items():
        ended = scene.run("corpus.examples=all", "search.examples=mean", *sets, run=run)
        tables = ended.outcome.chain_run.read("candidates")
        rows = [row for table in tables for row in table.to_pylist()]
        keys = ("query_id", "doc_id", "channel", "example")
        found[run] = {(tuple(row[key] for key in keys), row["first"], row["last"], row["cost"]) for row in rows}
    assert 10 < len(found["fast"] & found["exact"]) < len(found["exact"])
    # Of each place that some example proposed, every example has the candidates that the exact search has there.
    ends = {(key[:3], last) for key, _, last, _ in found["fast"]}
    for key, first, last, cost in found["exact"]:
        if (key[:3], last) in ends:
            assert (key, first, last, cost) in found["fast"]
