"""Search with a first pass in the shards of a store: propose windows, and search them exactly.

`visit` finds every candidate that ends in a window, exactly as the full search does. A path of bounded slope spans at
most 2 N document frames, and whether a frame is a candidate depends on w costs on either side. A window is therefore
computed from w + 2 (N - 1) frames before it to w after it; frames further off cannot change the result. Overlapping
windows of an example are joined, and long ones split; neither changes the result.

Documents arrive in blocks and are held one stretch at a time, several together, so that a call covers many windows of
an example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import PurePath
from typing import Any, NamedTuple

import numba
import numpy as np
import pyarrow as pa

from swsdist.config.search import QuantisedOptions, Search
from swsdist.core.arrays import Bools, Ints, Singles
from swsdist.features.fitting.interface import Model, load_model
from swsdist.kernels import windows
from swsdist.kernels.arithmetic import StateType, packing
from swsdist.kernels.distances.interface import Distance
from swsdist.kernels.products import QueryDistances, Room
from swsdist.methods.dtw.search import Matches, best_matches, search, together
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.dtw.shard import Documents
from swsdist.methods.first_pass.codebook import SAMPLE, Codebook, Landmarks, fit
from swsdist.methods.first_pass.interface import (
    Budget,
    FirstPass,
    LaneGroups,
    Material,
    Proposals,
    Windows,
    Work,
    buffered,
    create,
    has_windows,
    no_windows,
    stretches,
)
from swsdist.methods.first_pass.interface import Documents as DocumentStream
from swsdist.methods.first_pass.quantised import Index, Quantised, build, index_of
from swsdist.methods.query.example import Example
from swsdist.methods.sample import (
    codebook_file,
    codebook_name,
    codes_name,
    contents,
    in_sample,
    landmark_documents,
    sample_limit,
)
from swsdist.registry.registries import FIRST_PASSES
from swsdist.store import parquet
from swsdist.store.reading import Store, Tracks

#: Most end frames that a part of a window reports.
_PART = 1024

#: Columns whose distances to an example are held at once: with 50 query frames 800 kB, which fits the cache.
_COLUMNS = 1 << 13


class Visited(NamedTuple):
    """Candidates found in windows, and the work done."""

    matches: Matches
    work: Work


def visit(
    examples: list[Example],
    documents: DocumentStream,
    lengths: Ints,
    chosen: Windows,
    most: Ints,
    distance: Distance,
    window: int,
) -> Visited:
    """Find the candidates that end in windows.

    Args:
        examples: prepared as queries.
        documents: at least those with windows.
        lengths: int64 (documents,), frames of each.
        chosen: the windows; parts beyond the document are ignored.
        most: int64 (documents,), candidates kept per example and document: those of least cost, earlier ends first.
        distance: the distance the frames are prepared for.
        window: frames on either side within which a candidate must have the least cost.

    Returns:
        Candidates of `dtw.search.search` whose end frame is in a window of their example, pruned the same way. Work
        counts the cells whose distances were computed.
    """
    sizes = np.array([len(example.frames) for example in examples], np.int64)
    parts = _parts(chosen, lengths, sizes, window)
    room = Rooms()
    scan = [Scanner(example, distance, window, room) for example in examples]
    overlap = int(_PART + 2 * (window + sizes.max(initial=0)))
    candidates: list[Ints] = []
    cells = 0
    ends = np.bincount(parts.document, minlength=len(lengths)).cumsum()
    by_document = np.argsort(parts.document, kind="stable")
    done = np.zeros(len(parts.document), bool)
    stream = (part for index, blocks in documents for part in stretches(index, blocks, overlap))
    for stretch in buffered(stream, distance):
        rows, shifts = [], []
        for item, base in zip(stretch.stretches, stretch.bases, strict=True):
            due = by_document[ends[item.document - 1] if item.document else 0 : ends[item.document]]
            due = due[~done[due] & (item.last | (parts.right[due] <= item.offset + len(item.frames)))]
            done[due] = True
            rows.append(due)
            shifts.append(np.full(len(due), base - item.offset))
        row, shift = np.concatenate(rows), np.concatenate(shifts)
        order = np.lexsort((row, parts.example[row]))
        row, shift = row[order], shift[order]
        bounds = np.searchsorted(parts.example[row], np.arange(len(examples) + 1))
        for k in np.flatnonzero(np.diff(bounds)).tolist():
            example_parts = parts.take(row[bounds[k] : bounds[k + 1]])
            for now in _calls(example_parts.right - example_parts.left):
                of = example_parts.take(now)
                columns = of.right - of.left
                laid = stretch.lay(of.left + shift[bounds[k] :][now], columns)
                table = np.column_stack(
                    [laid.start, columns, of.begin - of.left, of.first - of.left, of.stop - of.left]
                )
                rows_found = scan[k](laid, table)
                place = rows_found[:, 0]
                index = np.full(len(place), k)
                where = (index, of.document[place], of.left[place] + rows_found[:, 1])
                candidates.append(np.column_stack([*where, rows_found[:, 2:]]))
                cells += int(sizes[k] * columns.sum())
    return Visited(best_matches(candidates, most, 1.0), Work(cells=cells))


def warm(distance: Distance, window: int) -> None:
    """Load the kernels, by a visit of one frame by one frame."""
    frame = np.zeros((1, distance.columns), np.float32)
    index, begin, end = np.zeros(1, np.int32), np.zeros(1, np.int64), np.ones(1, np.int64)
    all_windows = Windows(index, index, begin, end, begin)
    visit([Example("", 1, frame)], [(0, [frame])], end, all_windows, end, distance, window)


class _Parts(NamedTuple):
    """Disjoint parts of windows, in frames of the document.

    Attributes:
        left, begin: the first frame needed, and the first whose cost is needed.
        first, stop: range of the end frames reported.
        right: the frame after the last one needed.
    """

    example: Ints
    document: Ints
    left: Ints
    begin: Ints
    first: Ints
    stop: Ints
    right: Ints

    def take(self, rows: Ints | slice) -> _Parts:
        """Select parts."""
        return _Parts(*(column[rows] for column in self))


def _parts(chosen: Windows, lengths: Ints, sizes: Ints, window: int) -> _Parts:
    """Join windows that overlap or touch, and cut them into parts of `_PART` end frames."""
    example, document = chosen.example.astype(np.int64), chosen.document.astype(np.int64)
    first, stop = np.maximum(chosen.first, 0), np.minimum(chosen.stop, lengths[document])
    some = first < stop
    example, document, first, stop = example[some], document[some], first[some], stop[some]
    if len(first) == 0:
        return _Parts(*(np.empty(0, np.int64) for _ in _Parts._fields))
    order = np.lexsort((first, document, example))
    example, document, first, stop = example[order], document[order], first[order], stop[order]
    # All frames on one axis: those of each example and document follow the previous pair's.
    group = example * len(lengths) + document
    line = group * (int(lengths.max()) + 1)
    reach = np.maximum.accumulate(line + stop)
    new = np.append(True, (line + first)[1:] > reach[:-1])
    heads = np.flatnonzero(new)
    stop = (np.maximum.reduceat(line + stop, heads) - line[heads]).astype(np.int64)
    example, document, first = example[heads], document[heads], first[heads]
    count = -(-(stop - first) // _PART)
    of = np.repeat(np.arange(len(first)), count)
    number = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)
    example, document = example[of], document[of]
    first = first[of] + number * _PART
    stop = np.minimum(first + _PART, stop[of])
    begin = np.maximum(first - window, 0)
    left = np.maximum(begin - 2 * (sizes[example] - 1), 0)
    return _Parts(example, document, left, begin, first, stop, np.minimum(stop + window, lengths[document]))


def _calls(columns: Ints) -> Iterator[slice]:
    """Group windows with these numbers of columns into calls of about `_COLUMNS`."""
    total = np.cumsum(columns) // _COLUMNS
    bounds = [0, *(np.flatnonzero(total[1:] != total[:-1]) + 1).tolist(), len(columns)]
    for start, stop in pairwise(bounds):
        yield slice(start, stop)


class Rooms:
    """Buffers shared by scanners that take turns."""

    def __init__(self) -> None:
        self.distances = Room(np.int16)
        self.rows: dict[StateType, Room[np.int32] | Room[np.int64]] = {
            np.int32: Room(np.int32),
            np.int64: Room(np.int64),
        }


class Scanner:
    """Scans stretches of documents for one example: distances, recurrence and candidates."""

    def __init__(self, example: Example, distance: Distance, window: int, rooms: Rooms) -> None:
        self._rooms = rooms
        self._query_distances = QueryDistances(example.frames, distance, rooms.distances)
        self._packing = packing(len(example.frames))
        self._scan = windows.scanner(self._packing.dtype)  # type: ignore[arg-type] # mypy: a class cannot be hashed
        self._window = window

    def __call__(self, laid: LaneGroups, table: Ints) -> Ints:
        """Find candidates: int64 (many, 4), row of the table, column, document frames, cost.

        Args:
            laid: frames.
            table: int64 (windows, 5), see `kernels.windows.WINDOW`.
        """
        distances = self._query_distances(laid.source)
        packed = self._packing
        candidates = np.empty((int(((table[:, 4] - table[:, 3]) // (self._window + 1) + 1).sum()), 4), np.int64)
        count = self._scan(
            distances,
            self._query_distances.height,
            self._query_distances.frames,
            table,
            packed.frame_bits,
            packed.infinity,
            self._window,
            self._rooms.rows[packed.dtype](windows.room(int(table[:, 1].max()))),
            candidates,
        )
        return candidates[:count]


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
        shards: all shards if the budget is over the collection.
        examples: function of a factor: the examples with that many frames averaged.
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


def _sampled(documents: pa.Table, search_config: Search, store: Store, shards: Sequence[str]) -> Bools:
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
        first_pass, material, budget: see `swsdist.methods.first_pass.interface`.
        averaged: scores of a query's examples will be averaged, so each visits the windows proposed for any of them.
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


def kept_index(store: Store, names: Sequence[str] | None, search_config: Search, lengths: Ints) -> Index | None:
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


def _features_in(store: Store, names: Sequence[str]) -> Iterator[tuple[int, Singles]]:
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

    def spread(blocks: list[Singles]) -> Singles:
        frames = np.concatenate(blocks)
        return frames[np.unique(np.arange(frames_each) * len(frames) // frames_each)]

    sides = []
    for side in ("query", "document"):
        frames = {keys[k]: spread(list(blocks)) for k, blocks in documents.stream(factor, chosen, side)}
        sides.append(np.concatenate([frames[key] for key in order])[:count])
    return Landmarks(*sides), documents.distance
