"""Search with a first pass in the shards of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, NamedTuple

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.config.search import QuantisedOptions, Search
from swsdist.features.fitting.interface import Model, load_model
from swsdist.kernels.distances.interface import Distance
from swsdist.methods.dtw.matches import Matches, together
from swsdist.methods.dtw.search import search
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.dtw.shard import Documents
from swsdist.methods.first_pass.codebook import SAMPLE, Codebook, Landmarks, fit
from swsdist.methods.first_pass.create import create
from swsdist.methods.first_pass.interface import (
    Budget,
    FirstPass,
    Material,
    Proposals,
    Windows,
    Work,
    has_windows,
    no_windows,
)
from swsdist.methods.first_pass.interface import Documents as DocumentStream
from swsdist.methods.first_pass.landmarks import (
    codebook_file,
    codebook_name,
    codes_name,
    contents,
    landmark_documents,
)
from swsdist.methods.first_pass.quantised import Index, Quantised, build, index_of
from swsdist.methods.first_pass.rescoring import visit
from swsdist.methods.query.example import Example
from swsdist.methods.sample import in_sample, sample_limit
from swsdist.registry.registries import FIRST_PASSES
from swsdist.store import parquet
from swsdist.store.reading import Store, Tracks

#: Frames of a document that are prepared together.
_BLOCK = 4096


class Searched(NamedTuple):
    """Result of a search with a first pass.

    Attributes:
        documents: DOCUMENTS, in the order that `Matches.document` counts.
        matches: candidates.
        work: of the first pass and of the visit, and what an index cost.
    """

    documents: pa.Table
    matches: Matches
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
    names = _kept_names(store, shards, search_config)
    documents, material = material_of(store, shards, examples, search_config, names)
    options = search_config.first_pass
    budget = Budget(options.windows.least, options.windows.per_second, options.over)
    first_pass = create(options.name, **options.complete())
    if isinstance(first_pass, Quantised):
        first_pass = replace(first_pass, index=kept_index(store, names, search_config, material.lengths))
    matches, work, indexing = run(first_pass, material, budget, averaged=search_config.examples == "mean")
    return Searched(documents.table, matches._replace(saturated=documents.saturated), work, indexing)


def material_of(
    store: Store,
    shards: Sequence[str],
    examples: Callable[[int], list[Example]],
    search_config: Search,
    names: Sequence[str] | None = None,
) -> tuple[Documents, Material]:
    """Input of a first pass for some shards; only the table of documents is read.

    Args:
        store, shards, examples, search_config: as for `search_windows`.
        names: files of codes, from which sampled documents are read; by default from the shards.
    """
    documents = Documents.of(store, shards, search_config)
    sampled = _sampled(documents.table, search_config, store, shards)

    def read() -> DocumentStream:
        return documents.stream(1, sampled) if names is None else documents.prepared(_features_in(store, names))

    def sample() -> DocumentStream:
        key = "sample", tuple(shards), search_config.model_dump_json()
        size = int(documents.table["frames"].to_numpy()[sampled].sum()) * documents.distance.columns * 4
        if store.memory is None or (store.memory.get(key) is None and size > store.memory.room):
            return read()
        return store.remembered(key, lambda: [(k, list(blocks)) for k, blocks in read()], lambda _: size)

    material = Material(
        examples,
        documents.stream,
        documents.table["frames"].to_numpy(),
        documents.most,
        store.manifest.shift,
        documents.distance,
        search_config.candidate_window,
        sampled,
        sample,
        lambda factor, size: codebook(store, search_config, factor, size),
    )
    return documents, material


def _sampled(documents: pa.Table, search_config: Search, store: Store, shards: Sequence[str]) -> NDArray[np.bool_]:
    limit = sample_limit(search_config, store.manifest.counts)
    if limit is None:
        return np.zeros(documents.num_rows, bool)
    return store.remembered(
        ("sampled", tuple(shards), limit), lambda: in_sample(documents, limit), lambda mask: mask.nbytes
    )


def run(
    first_pass: FirstPass, material: Material, budget: Budget, averaged: bool = False
) -> tuple[Matches, Work, Work]:
    """Run the first pass and the exact search; return matches, work, and work of indexing.

    The exact search visits the windows that are proposed, and the sampled documents from end to end.

    Args:
        first_pass, material, budget: see there.
        averaged: scores of a query's examples will be averaged, so each visits what any of them proposes.
    """
    all_sampled = bool(material.sampled.all())
    proposed = Proposals(no_windows(), Work()) if all_sampled else first_pass.propose(material, budget)
    examples, windows = material.examples(1), proposed.windows
    windows = windows.take(~material.sampled[windows.document])
    windows = _of_all_examples(windows, [example.query_id for example in examples]) if averaged else windows
    visited = visit(
        examples,
        material.documents(1, has_windows(windows, len(material.lengths))),
        material.lengths,
        windows,
        material.most,
        material.distance,
        material.window,
    )
    work = proposed.work + visited.work
    if not material.sampled.any():
        return visited.matches, work, proposed.indexing
    settings = Settings(material.distance, material.window, 16, 2000, threads=numba.get_num_threads())
    exact = search(examples, material.sample(), material.most, settings)
    cells = sum(len(example.frames) for example in examples) * int(material.lengths[material.sampled].sum())
    return together(visited.matches, exact), work + Work(cells=cells), proposed.indexing


def _of_all_examples(windows: Windows, query_ids: Sequence[str]) -> Windows:
    """Windows of any example, for all examples of its query."""
    _, query = np.unique(np.array(query_ids), return_inverse=True)
    order, size = np.argsort(query, kind="stable"), np.bincount(query)
    first = np.cumsum(size) - size
    copies = size[query[windows.example]]
    row = np.repeat(np.arange(len(copies)), copies)
    number = np.arange(len(row)) - np.repeat(np.cumsum(copies) - copies, copies)
    taken = windows.take(row)
    return taken._replace(example=order[first[query[taken.example]] + number].astype(np.int32))


def codebook(store: Store, search_config: Search, factor: int, size: int) -> Codebook:
    """The pinned codebook of a store, or one made of its current documents."""
    key = (store.folder.root, store.manifest.fingerprint, search_config.model_dump_json())
    if key not in _known:
        _known.clear()
        pinned = codebook_file(store, search_config)
        book = _read(store, pinned) if pinned else _fitted(store, search_config, factor, size)
        _known[key] = book
        return book
    return _known[key]


#: Of the last store and settings: a worker is asked for the same by each of its tasks.
_known: dict[tuple[str, str, str], Codebook] = {}


def fit_codebook(store: Store, search_config: Search) -> Model:
    """A codebook of the current store, for pinning."""
    options = QuantisedOptions.model_validate(search_config.first_pass.complete())
    book = _fitted(store, search_config, options.factor, options.bytes)
    return Model("codebook", 2, book._asdict(), {"recipe": codebook_name(store, search_config)})


def _fitted(store: Store, search_config: Search, factor: int, size: int) -> Codebook:
    landmarks, distance = _landmarks(store, search_config, factor, SAMPLE)
    return fit(landmarks, distance, size)


def index_shard(store: Store, shard: str, search_config: Search, codebook: str) -> pa.Table:
    """Codes of the live documents of a shard, by a codebook that is a file of the store: CODES."""
    documents, material = material_of(store, [shard], lambda factor: [], search_config)
    options = QuantisedOptions.model_validate(search_config.first_pass.complete())
    features = documents.features(shard, material.sampled)
    return build(material, options.factor, _read(store, codebook), features)


def kept_index(
    store: Store, names: Sequence[str] | None, search_config: Search, lengths: NDArray[np.int64]
) -> Index | None:
    """The stored codes of some shards; None if there are none.

    Args:
        store, search_config: as for `search_windows`.
        names: files of codes, a shard each.
        lengths: int64 (documents,), frames.
    """
    if names is None:
        return None
    options = QuantisedOptions.model_validate(search_config.first_pass.complete())

    def joined() -> Index:
        tables = [parquet.read(store.folder, name, ["frames", "codes"]) for name in names]
        size = len(codebook(store, search_config, options.factor, options.bytes).columns) // 2
        return index_of(tables, -(-lengths // options.factor), size, store.folder.path("codes"))

    return store.remembered(("index", *names), joined, lambda index: index.nbytes)


def _kept_names(store: Store, shards: Sequence[str], search_config: Search) -> list[str] | None:
    """The files of codes of some shards; None if there is no codebook, or one is missing."""
    if not FIRST_PASSES[search_config.first_pass.name].landmarks:
        return None
    pinned = codebook_file(store, search_config)
    if pinned is None:
        return None

    def named() -> list[str]:
        names = [codes_name(pinned, content) for content in contents(store, search_config, shards).values()]
        return names if all(store.folder.exists(name) for name in names) else []

    key = "codes", tuple(shards), search_config.model_dump_json()
    return store.remembered(key, named, lambda names: 200 * len(names)) or None


def _features_in(store: Store, names: Sequence[str]) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Index and features of the sampled documents in files of codes."""
    dimension, first = Tracks(store).dimension, 0
    for name in names:
        column = parquet.read(store.folder, name, ["features"])["features"]
        for k in np.flatnonzero(column.is_valid().to_numpy()).tolist():
            frames = np.frombuffer(column[k].as_buffer(), "<f4").reshape(-1, dimension)
            for begin in range(0, len(frames), _BLOCK):
                yield first + k, frames[begin : begin + _BLOCK]
        first += len(column)


def _read(store: Store, codebook: str) -> Codebook:
    # Compiled code trusts it, and the name of its file has its fingerprint.
    expected = PurePath(codebook).stem.removeprefix("codebook-")
    arrays: dict[str, Any] = dict(load_model(store.folder, codebook, expected).arrays)
    return Codebook(**arrays)


def _landmarks(store: Store, search_config: Search, factor: int, count: int) -> tuple[Landmarks, Distance]:
    rows_of_documents = Tracks(store).documents(columns=["doc_id", "channel", "shard"]).to_pylist()
    shard = {(row["doc_id"], row["channel"]): row["shard"] for row in rows_of_documents}
    order = landmark_documents(list(shard))
    documents = Documents(store, sorted({shard[key] for key in order}), search_config)
    keys = list(zip(documents.table["doc_id"].to_pylist(), documents.table["channel"].to_pylist(), strict=True))
    chosen = np.isin(np.arange(len(keys)), [keys.index(key) for key in order])
    frames_each = -(-count // len(order))

    def spread(blocks: list[NDArray[np.float32]]) -> NDArray[np.float32]:
        frames = np.concatenate(blocks)
        return frames[np.unique(np.arange(frames_each) * len(frames) // frames_each)]

    sides = []
    for side in ("query", "document"):
        frames = {keys[k]: spread(list(blocks)) for k, blocks in documents.stream(factor, chosen, side)}
        sides.append(np.concatenate([frames[key] for key in order])[:count])
    return Landmarks(*sides), documents.distance
