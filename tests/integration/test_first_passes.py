"""Searches with a first pass, in windows, and with a cap."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import swsdist
from swsdist.methods import sample
from swsdist.registry.registries import FIRST_PASSES
from swsdist.testing.synthesis.recogniser import make_recogniser


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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mfcc-fingerprint", "phoneme-posteriorgram"])
def test_a_system_runs_and_no_cut_changes_a_byte(scene: Any, small_corpus: Path, tmp_path: Path, name: str) -> None:
    tables = {"documents": "docs", "queries": "queries", "references": "refs"}
    corpus = {table: str(small_corpus / f"{file}.csv") for table, file in tables.items()}
    sets = [f"corpus={json.dumps(corpus)}", "executor.kind=serial"]
    if name == "phoneme-posteriorgram":
        make_recogniser(str(tmp_path / "weights"), wide=True)
        sets.append(f"features.options.weights={tmp_path / 'weights'}")
    found = []
    for k, more in enumerate([[], ["index.shards=5", "reduce.buckets=3"]]):
        run = str(tmp_path / f"run{k}")
        made = swsdist.run(SYSTEMS / f"{name}.yaml", sets=[f"run={run}", *sets, *more])
        assert made.measures()["mtwv"] is not None
        found.append(swsdist.digest(run))
    assert found[0] == found[1]
    # Of each query and document, what was found ends half a second apart, and more than dtw's two a document are kept.
    parts = sorted((tmp_path / "run0").glob("tables/candidates/*.parquet"))
    ends: dict[tuple[str, str], list[int]] = {}
    for part in parts:
        for row in pq.read_table(part).to_pylist():
            ends.setdefault((row["query_id"], row["doc_id"]), []).append(row["last"])
    assert max(map(len, ends.values())) > 2
    for several in ends.values():
        several.sort()
        assert all(after - before >= 50 for before, after in pairwise(several))
