"""Search by proposals in the shards of a store: what is searched at every coarseness, the first pass, the visit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.config.search import Search
from swsdist.methods.dtw.found import Found
from swsdist.methods.dtw.shard import Documents
from swsdist.methods.first_pass.interface import Budget, Landmarks, Material, Proposer, Work, here
from swsdist.methods.first_pass.landmarks import landmark_documents
from swsdist.methods.first_pass.registry import create
from swsdist.methods.first_pass.rescoring import visit
from swsdist.methods.query.example import Example
from swsdist.store.reading import Store
from swsdist.store.tracks import Tracks


class Searched(NamedTuple):
    """What a search by proposals found.

    Attributes:
        documents: DOCUMENTS, in the order that `Found.document` counts.
        examples: whose frames the costs are sums over.
        found: candidates.
        work: of the first pass and of the visit, and what an index cost.
    """

    documents: pa.Table
    examples: list[Example]
    found: Found
    work: Work
    indexing: Work


def search_proposed(
    store: Store, shards: Sequence[str], examples: Callable[[int], list[Example]], search_config: Search
) -> Searched:
    """Candidates of the examples in the live documents of some shards, where a first pass proposes to look.

    Args:
        store: the store.
        shards: all of them where the budget is over the collection.
        examples: of a factor, with so many frames averaged.
        search_config: names the proposer.
    """
    documents, material = material_of(store, shards, examples, search_config)
    wanted = search_config.proposer
    budget = Budget(wanted.windows.least, wanted.windows.per_second, wanted.over)
    found, kept, work, indexing = run(create(wanted.name, **wanted.complete()), material, budget)
    return Searched(documents.table, kept, found._replace(saturated=documents.saturated), work, indexing)


def material_of(
    store: Store, shards: Sequence[str], examples: Callable[[int], list[Example]], search_config: Search
) -> tuple[Documents, Material]:
    """What a proposer sees of some shards; nothing is read but the table of documents."""
    documents = Documents(store, shards, search_config)
    material = Material(
        examples,
        documents.stream,
        documents.table["frames"].to_numpy(),
        documents.most,
        store.manifest.shift,
        store.manifest.counts["seconds"],
        documents.distance,
        search_config.candidate_window,
        lambda factor, count: landmarks(store, search_config, factor, count),
    )
    return documents, material


def run(proposer: Proposer, material: Material, budget: Budget) -> tuple[Found, list[Example], Work, Work]:
    """The first pass and the visit: what was found, by which examples, work, and work of indexing."""
    proposed = proposer.propose(material, budget)
    if proposed.found is not None:
        return proposed.found, material.examples(proposed.factor), proposed.work, proposed.indexing
    examples = material.examples(1)
    windows = proposed.windows
    visited = visit(
        examples,
        material.documents(1, here(windows, len(material.lengths))),
        material.lengths,
        windows,
        material.most,
        material.distance,
        material.window,
    )
    return visited.found, examples, proposed.work + visited.work, proposed.indexing


def landmarks(store: Store, search_config: Search, factor: int, count: int) -> Landmarks:
    """Averaged frames of some documents of a store (see `landmark_documents`), evenly spread over each."""
    key = (store.folder.root, store.manifest.fingerprint, search_config.model_dump_json(), factor, count)
    if key not in _known:
        _known.clear()
        _known[key] = _landmarks(store, search_config, factor, count)
    return _known[key]


#: Of the last store and settings: a worker is asked for the same by each of its tasks.
_known: dict[tuple[str, str, str, int, int], Landmarks] = {}


def _landmarks(store: Store, search_config: Search, factor: int, count: int) -> Landmarks:
    known = Tracks(store).documents(columns=["doc_id", "channel", "shard"]).to_pylist()
    shard = {(row["doc_id"], row["channel"]): row["shard"] for row in known}
    order = landmark_documents(list(shard))
    documents = Documents(store, sorted({shard[key] for key in order}), search_config)
    there = list(zip(documents.table["doc_id"].to_pylist(), documents.table["channel"].to_pylist(), strict=True))
    chosen = np.isin(np.arange(len(there)), [there.index(key) for key in order])
    each = -(-count // len(order))

    def spread(blocks: list[NDArray[np.float32]]) -> NDArray[np.float32]:
        frames = np.concatenate(blocks)
        return frames[np.unique(np.arange(each) * len(frames) // each)]

    sides = []
    for side in ("query", "document"):
        frames = {there[k]: spread(list(blocks)) for k, blocks in documents.stream(factor, chosen, side)}
        sides.append(np.concatenate([frames[key] for key in order])[:count])
    return Landmarks(*sides)
