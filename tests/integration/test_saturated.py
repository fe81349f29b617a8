"""Frames that the Euclidean distance's cap has shortened are counted in the receipts of the search."""

from __future__ import annotations

from typing import Any

import pytest


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
