"""Search with a first pass in the shards of a store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.config.search import Search
from swsdist.features.model import Model, load_model
from swsdist.methods.dtw.matches import Matches
from swsdist.methods.dtw.shard import Documents
from swsdist.methods.first_pass.create import create
from swsdist.methods.first_pass.interface import Budget, FirstPass, Landmarks, Material, Work, has_windows
from swsdist.methods.first_pass.landmarks import (
    codebook_file,
    codebook_name,
    contents,
    landmark_documents,
    postings_name,
)
from swsdist.methods.first_pass.options import Quantised as QuantisedOptions
from swsdist.methods.first_pass.quantised import POSTINGS, Quantised, build
from swsdist.methods.first_pass.rescoring import visit
from swsdist.methods.query.example import Example
from swsdist.store import parquet
from swsdist.store.reading import Store
from swsdist.store.tracks import Tracks


class Searched(NamedTuple):
    """Result of a search with a first pass.

    Attributes:
        documents: DOCUMENTS, in the order that `Matches.document` counts.
        examples: whose frames the costs are sums over.
        found: candidates.
        work: of the first pass and of the visit, and what an index cost.
    """

    documents: pa.Table
    examples: list[Example]
    found: Matches
    work: Work
    indexing: Work


def search_windows(
    store: Store, shards: Sequence[str], examples: Callable[[int], list[Example]], search_config: Search
) -> Searched:
    """Candidates of the examples in the live documents of some shards, where a first pass proposes to look.

    Args:
        store: the store.
        shards: all of them where the budget is over the collection.
        examples: of a factor, with so many frames averaged.
        search_config: names the first pass.
    """
    documents, material = material_of(store, shards, examples, search_config)
    options = search_config.first_pass
    budget = Budget(options.windows.least, options.windows.per_second, options.over)
    first_pass = create(options.name, **options.complete())
    if isinstance(first_pass, Quantised):
        first_pass = replace(first_pass, index=kept_index(store, shards, search_config))
    found, kept, work, indexing = run(first_pass, material, budget)
    return Searched(documents.table, kept, found._replace(saturated=documents.saturated), work, indexing)


def material_of(
    store: Store, shards: Sequence[str], examples: Callable[[int], list[Example]], search_config: Search
) -> tuple[Documents, Material]:
    """Input of a first pass for some shards; only the table of documents is read."""
    documents = Documents.of(store, shards, search_config)
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


def run(first_pass: FirstPass, material: Material, budget: Budget) -> tuple[Matches, list[Example], Work, Work]:
    """Run the first pass and the exact search; return matches, examples, work, and work of indexing."""
    proposed = first_pass.propose(material, budget)
    if proposed.found is not None:
        return proposed.found, material.examples(proposed.factor), proposed.work, proposed.indexing
    examples = material.examples(1)
    windows = proposed.windows
    visited = visit(
        examples,
        material.documents(1, has_windows(windows, len(material.lengths))),
        material.lengths,
        windows,
        material.most,
        material.distance,
        material.window,
    )
    return visited.found, examples, proposed.work + visited.work, proposed.indexing


def landmarks(store: Store, search_config: Search, factor: int, count: int) -> Landmarks:
    """Averaged frames of some documents of a store (see `landmark_documents`), evenly spread over each; or the pinned ones."""
    key = (store.folder.root, store.manifest.fingerprint, search_config.model_dump_json(), factor, count)
    if key not in _known:
        _known.clear()
        pinned = codebook_file(store, search_config)
        _known[key] = _read(store, pinned) if pinned else _landmarks(store, search_config, factor, count)
    return _known[key]


#: Of the last store and settings: a worker is asked for the same by each of its tasks.
_known: dict[tuple[str, str, str, int, int], Landmarks] = {}


def fit_codebook(store: Store, search_config: Search) -> Model:
    """The landmarks of the current store, for pinning."""
    options = QuantisedOptions.model_validate(search_config.first_pass.complete())
    landmarks = _landmarks(store, search_config, options.factor, options.codewords)
    settings = {"recipe": codebook_name(store, search_config)}
    return Model("codebook", 1, {"query": landmarks.query, "document": landmarks.document}, settings)


def index_shard(store: Store, shard: str, search_config: Search, codebook: str) -> pa.Table:
    """Posting lists of the live documents of a shard, by the codewords of a file of the store: POSTINGS."""
    _, material = material_of(store, [shard], lambda factor: [], search_config)
    options = QuantisedOptions.model_validate(search_config.first_pass.complete())
    return build(material, options.factor, _read(store, codebook))


def kept_index(store: Store, shards: Sequence[str], search_config: Search) -> pa.Table | None:
    """The stored posting lists of some shards; None if one is missing."""
    codebook = codebook_file(store, search_config)
    if codebook is None:
        return None
    tables, documents = [], 0
    for shard, content in contents(store, search_config, shards).items():
        name = postings_name(codebook, content)
        if not store.folder.exists(name):
            return None
        table = parquet.read(store.folder, name)
        moved = pa.array(table["document"].to_numpy() + np.int32(documents), pa.int32())
        tables.append(table.set_column(1, POSTINGS.field("document"), moved))
        documents += Tracks(store).documents(shard, ["doc_id"]).num_rows
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables(tables).sort_by([(name, "ascending") for name in POSTINGS.names]).combine_chunks()


def _read(store: Store, codebook: str) -> Landmarks:
    arrays = load_model(store.folder, codebook).arrays
    return Landmarks(arrays["query"].astype(np.float32), arrays["document"].astype(np.float32))


def _landmarks(store: Store, search_config: Search, factor: int, count: int) -> Landmarks:
    rows_of_documents = Tracks(store).documents(columns=["doc_id", "channel", "shard"]).to_pylist()
    shard = {(row["doc_id"], row["channel"]): row["shard"] for row in rows_of_documents}
    order = landmark_documents(list(shard))
    documents = Documents(store, sorted({shard[key] for key in order}), search_config)
    there = list(zip(documents.table["doc_id"].to_pylist(), documents.table["channel"].to_pylist(), strict=True))
    chosen = np.isin(np.arange(len(there)), [there.index(key) for key in order])
    item = -(-count // len(order))

    def spread(blocks: list[NDArray[np.float32]]) -> NDArray[np.float32]:
        frames = np.concatenate(blocks)
        return frames[np.unique(np.arange(item) * len(frames) // item)]

    sides = []
    for side in ("query", "document"):
        frames = {there[k]: spread(list(blocks)) for k, blocks in documents.stream(factor, chosen, side)}
        sides.append(np.concatenate([frames[key] for key in order])[:count])
    return Landmarks(*sides)
