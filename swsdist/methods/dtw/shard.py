"""Exact search of a group of queries in a shard of a store: documents are prepared, searched, and give CANDIDATES."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, groupby, pairwise
from operator import itemgetter

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio.speech import unpack_marks
from swsdist.config.search import DistanceTerm, Search
from swsdist.core.arrays import Bools, Floats, Ints, Singles
from swsdist.core.codes import families
from swsdist.core.errors import StoreError, UserError, recast
from swsdist.core.fingerprint import SLOTS, slot_of
from swsdist.core.threads import in_threads
from swsdist.core.types import CANDIDATES
from swsdist.features.statistics import Statistics
from swsdist.kernels.arithmetic import MAX_DISTANCE, weighted
from swsdist.kernels.distances.interface import Distance, Part, Prepared, Side, create, weighted_sum
from swsdist.methods.dtw.search import Matches, halves_joined, search
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.method import tracks_read
from swsdist.methods.query.example import Example, Parts, averaged
from swsdist.methods.query.speech_trimming import kept
from swsdist.store.memory import Memory
from swsdist.store.reading import Block, Store


def distance_of(search: Search, dimension: int) -> Distance:
    """The distance of a config, for features of a dimension.

    Raises:
        ConfigError: `streams` has columns that the features lack.
        UserError: the dimension is too large for a distance.
    """
    if not search.streams:
        (term,) = search.terms()
        return _made(term, dimension, "search.distance")
    parts = []
    for k, term in enumerate(search.terms()):
        stop = dimension if term.stop is None else term.stop
        part = _made(term, stop - term.first, f"search.streams[{k}].distance")
        parts.append(Part(part, term.first, stop, term.weight))
    return weighted_sum(parts, dimension, "search.streams")


def unit_of(search: Search) -> int:
    """The integer that represents a local distance of 1, or the range of a query frame's distances."""
    if search.row_range:
        return MAX_DISTANCE
    return weighted([(term.distance, term.weight) for term in search.terms()]).unit


def _made(term: DistanceTerm, dimension: int, where: str) -> Distance:
    try:
        return create(term.distance, dimension, term.options)
    except UserError as error:
        raise recast(error, type(error), where=where) from None


def offset_and_scale(search: Search, statistics: Statistics) -> tuple[Floats, Floats]:
    """Offset and scale of frames for `Distance.prepare`, by the stream of each column.

    Columns that are in no stream are left as they are. Streams that share columns normalise them alike (the config
    refuses others).

    Args:
        search: the config.
        statistics: of all columns, mean and scatter float64 (..., dimension).
    """
    offset, scale = statistics.offset_and_scale("none")
    for term in search.terms():
        of_all = statistics.offset_and_scale(term.normalise)
        for stream_values, stream_statistics in zip((offset, scale), of_all, strict=True):
            stream_values[..., term.first : term.stop] = stream_statistics[..., term.first : term.stop]
    return offset, scale


#: A document and its channel.
_Key = tuple[str, int]

#: Columns of DOCUMENTS that every search reads.
_NEEDED = ("doc_id", "channel", "frames", "speaker")

#: Features that are prepared together: much fewer, and threads wait for the interpreter's lock; many more do not fit a cache.
_TOGETHER_BYTES = 1 << 20


class Documents:
    """The live documents of some shards, prepared for the search, with the tracks that it reads concatenated.

    Attributes:
        table: the columns of DOCUMENTS that the search reads, in index order.
        distance: of the prepared frames.
        most: int64 (documents,), candidates kept per example and document.
    """

    def __init__(self, store: Store, shards: Sequence[str], search_config: Search) -> None:
        tracks = tracks_read(store, search_config)
        self._memory, self._prepared_by = store.memory, search_config.model_dump_json() if store.memory else ""
        search_config = search_config.placed(tracks.places)
        by_document = search_config.documents_by == "document"
        columns = [*_NEEDED, *(["mean", "variance"] if by_document else [])]
        columns += ["speech"] if search_config.skip_silence else []
        tables = [tracks.documents(shard, columns) for shard in shards]
        table = pa.concat_tables(tables)
        self.table = table.drop_columns(["mean", "variance"]) if by_document else table
        self._ranges = dict(
            zip(shards, pairwise(accumulate((each.num_rows for each in tables), initial=0)), strict=True)
        )
        self.distance = distance_of(search_config, tracks.dimension)
        self._tracks, self._shards = tracks, tuple(shards)
        if by_document:
            statistics = [_statistics_of(table, tracks.dimension)]
            self._row = np.arange(table.num_rows)
        else:
            by_speaker = search_config.documents_by == "speaker"
            names = self.table["speaker"].to_pylist() if by_speaker else [None] * table.num_rows
            frozen = tracks.statistics(sorted({name for name in names if name}))
            of_all = ("pooled" if search_config.documents_by == "pooled" else "collection"), ""
            scopes = [scope if (scope := ("speaker", name or "")) in frozen else of_all for name in names]
            numbers = {scope: k for k, scope in enumerate(dict.fromkeys([of_all, *scopes]))}
            statistics = [frozen[scope] for scope in numbers]
            self._row = np.array([numbers[scope] for scope in scopes], np.int64)
        offsets, scales = zip(*(offset_and_scale(search_config, each) for each in statistics), strict=True)
        #: float64 (statistics, dimension); `_row` is the statistics of each document.
        self._offset, self._scale = np.vstack(offsets), np.vstack(scales)
        keys = zip(self.table["doc_id"].to_pylist(), self.table["channel"].to_pylist(), strict=True)
        self._keys = list(keys)
        self._index = {key: k for k, key in enumerate(self._keys)}
        self._saturated: dict[int, int] = {}
        shift = store.manifest.shift
        frames = self.table["frames"].to_pylist()
        self.most = np.array([search_config.candidates.count(count * shift) for count in frames], np.int64)
        self._spoken = _spoken_frames(self.table, store) if search_config.skip_silence else None
        self._dropping = search_config.dropping(tracks.places)
        #: Frames of the recording that were read, of each document that was, if frames are left out; the last reading counts.
        self._kept: dict[int, Ints] = {}

    @classmethod
    def of(cls, store: Store, shards: Sequence[str], search_config: Search) -> Documents:
        """The documents of some shards, from the store's memory if it has one."""
        return store.remembered(
            ("documents", tuple(shards), search_config.model_dump_json()),
            lambda: cls(store, shards, search_config),
            lambda made: made.table.nbytes + made._offset.nbytes + made._scale.nbytes,
        )

    def stream(
        self, factor: int = 1, chosen: Bools | None = None, side: Side = "document"
    ) -> Iterator[tuple[int, Iterator[Singles]]]:
        """(index, blocks of prepared frames) of each document; consume each before the next.

        Args:
            factor: number of frames to average first.
            chosen: bool (documents,), documents to read; all by default.
            side: query or document.

        Raises:
            DataError: the distance compares posteriors, and a document's features are none.
        """
        for shard in self._shards:
            live = {self._keys[k] for k in range(*self._ranges[shard]) if chosen is None or chosen[k]}
            if not live:
                continue
            buffered = (
                None if self._memory is None else self._memory.get(("frames", shard, factor, side, self._prepared_by))
            )
            if buffered is not None:
                for key, frames, saturated, places in buffered:
                    if key in live:
                        self._saturated[self._index[key]] = saturated
                        if places is not None:
                            self._kept[self._index[key]] = places
                        yield self._index[key], iter(frames)
                continue
            documents = self._read(shard, live, factor, side)
            if self._memory is not None and chosen is None:
                documents = self._holding(documents, ("frames", shard, factor, side, self._prepared_by), self._memory)
            for key, blocks in documents:
                yield self._index[key], blocks

    def _read(self, shard: str, live: set[_Key], factor: int, side: Side) -> Iterator[tuple[_Key, Iterator[Singles]]]:
        """Keys and blocks of prepared frames of some documents of a shard."""
        yield from self._in_batches(self._features(shard, live, factor, numba.get_num_threads()), side)

    def _in_batches(
        self, features: Iterator[tuple[_Key, Singles]], side: Side
    ) -> Iterator[tuple[_Key, Iterator[Singles]]]:
        """Keys and blocks of prepared frames of documents, several in a call."""
        batches = in_threads(partial(self._prepare, side=side), _batches(features), numba.get_num_threads())
        pairs = ((key, block) for batch, prepared in batches for (key, _), block in zip(batch, prepared, strict=True))
        for key, group in groupby(pairs, key=itemgetter(0)):
            yield key, self._counted(self._index[key], group)

    def prepared(self, features: Iterable[tuple[int, Singles]]) -> Iterator[tuple[int, Iterator[Singles]]]:
        """Like `stream`, for given features: (index, float32 (frames, dimension)) of each document."""
        keyed = ((self._keys[k], frames) for k, frames in features)
        for key, blocks in self._in_batches(keyed, "document"):
            yield self._index[key], blocks

    def features(self, shard: str, chosen: Bools) -> dict[int, Singles]:
        """Features of some documents of a shard, the tracks that are read side by side, by index.

        Args:
            shard: its name.
            chosen: bool (documents,).
        """
        live = {self._keys[k] for k in range(*self._ranges[shard]) if chosen[k]}
        parts: dict[int, list[Singles]] = {}
        for block in self._tracks.blocks(shard, live) if live else ():
            parts.setdefault(self._index[block.doc_id, block.channel], []).append(block.features)
        return {k: np.concatenate(blocks) for k, blocks in parts.items()}

    def _features(self, shard: str, live: set[_Key], factor: int, threads: int) -> Iterator[tuple[_Key, Singles]]:
        """Keys and features of some documents of a shard, block by block; an empty block of one without frames to search."""
        blocks = self._tracks.blocks(shard, live, threads)
        for key, group in groupby(blocks, key=itemgetter(0, 1)):
            if self._leaves_out:
                group = self._searched_of(self._index[key], group)
            features = None
            for features in averaged((block.features for block in group), factor):
                yield key, features
            if features is None:
                yield key, np.empty((0, self._tracks.dimension), np.float32)

    @property
    def _leaves_out(self) -> bool:
        return self._spoken is not None or self._dropping is not None

    def _searched_of(self, index: int, blocks: Iterable[Block]) -> Iterator[Block]:
        """Blocks of a document with the frames that are searched, which are remembered."""
        places = [np.empty(0, np.int64)]
        for block in blocks:
            last = block.first_frame + len(block.features)
            frames = np.arange(block.first_frame, last)
            if self._spoken is not None:
                spoken = self._spoken[index]
                frames = spoken[slice(*np.searchsorted(spoken, (block.first_frame, last)))]
            features = block.features[frames - block.first_frame]
            if self._dropping is not None:
                chosen = kept(features, self._dropping)
                frames, features = frames[chosen], features[chosen]
            places.append(frames)
            if len(frames):
                yield block._replace(features=features)
        self._kept[index] = np.concatenate(places)

    def _prepare(self, batch: list[tuple[_Key, Singles]], side: Side) -> list[Prepared]:
        rows = self._row[[self._index[key] for key, _ in batch]]
        return self.distance.prepare_blocks(
            [features for _, features in batch],
            self._offset[rows],
            self._scale[rows],
            side,
            lambda k: "document {}, channel {}".format(*batch[k][0]),
        )

    def _counted(self, index: int, blocks: Iterable[tuple[_Key, Prepared]]) -> Iterator[Singles]:
        """Frames of a document's blocks; those out of range are counted."""
        self._saturated[index] = 0
        for _, prepared in blocks:
            self._saturated[index] += prepared.saturated
            if len(prepared.frames):
                yield prepared.frames

    def _holding(
        self, documents: Iterator[tuple[_Key, Iterator[Singles]]], name: Hashable, memory: Memory
    ) -> Iterator[tuple[_Key, Iterator[Singles]]]:
        """Pass the documents of a shard through, and store them in memory after the last, if they fit."""
        buffered: list[tuple[_Key, list[Singles], int, Ints | None]] = []
        size = 0
        for key, blocks in documents:
            if size > memory.room:
                yield key, blocks
                continue
            frames: list[Singles] = []
            yield key, _kept(blocks, frames)
            frames += blocks  # blocks the consumer did not read
            size += sum(block.nbytes for block in frames)
            places = self._kept.get(self._index[key])
            size += 0 if places is None else places.nbytes
            buffered.append((key, frames, self._saturated[self._index[key]], places))
        memory.put(name, buffered, size)

    @property
    def searched(self) -> int:
        """Frames that a search of all documents has compared."""
        if not self._leaves_out:
            return int(sum(self.table["frames"].to_pylist()))
        return sum(map(len, self._kept.values()))

    def frames_of_the_recording(self, index: int) -> Ints:
        """Indices, in the recording, of a document's frames that were read: int64 (frames,)."""
        return self._kept[index] if self._leaves_out else np.arange(self.table["frames"][index].as_py())

    def in_frames_of_the_recording(self, matches: Matches) -> Matches:
        """Matches with first and last frames of the recording, if frames were left out."""
        if not self._leaves_out:
            return matches
        empty = np.empty(0, np.int64)
        places = [self._kept.get(k, empty) for k in range(self.table.num_rows)]
        starts = np.cumsum([0, *map(len, places)])
        all_frames = np.concatenate([empty, *places])
        end = all_frames[starts[matches.document] + matches.end_frame]
        first = all_frames[starts[matches.document] + matches.end_frame - matches.frames + 1]
        return matches._replace(end_frame=end, frames=end - first + 1)

    @property
    def saturated(self) -> int:
        """Frames outside the range of the distance, of the documents that were read; the last reading counts."""
        return sum(self._saturated.values())


def _statistics_of(documents: pa.Table, dimension: int) -> Statistics:
    """Mean and variance of each document, float64 (documents, dimension)."""
    mean, variance = (
        documents[name].combine_chunks().flatten().to_numpy().reshape(-1, dimension) for name in ("mean", "variance")
    )
    frames = documents["frames"].to_numpy()[:, None]
    # What `Statistics.from_variance` and `variance` compute of a single document.
    return Statistics(1, mean, variance * frames / np.maximum(frames, 1))


def _batches(
    blocks: Iterable[tuple[_Key, Singles]],
) -> Iterator[list[tuple[_Key, Singles]]]:
    """Blocks that are prepared together."""
    batch, size = [], 0
    for block in blocks:
        batch.append(block)
        size += block[1].nbytes
        if size >= _TOGETHER_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _spoken_frames(documents: pa.Table, store: Store) -> list[Ints]:
    """Frames with speech of each document.

    Raises:
        StoreError: a document has no speech marks.
    """
    spoken = []
    for row in documents.select(["doc_id", "frames", "speech"]).to_pylist():
        if row["speech"] is None:
            raise families.MISSING_INPUT.of(StoreError)(
                "the store has no speech marks of document {doc_id}",
                "search all frames (search.skip_silence: false); features of other programs have no speech marks",
                where=store.folder.path(),
                doc_id=row["doc_id"],
            )
        spoken.append(np.flatnonzero(unpack_marks(row["speech"], row["frames"])))
    return spoken


def _kept(blocks: Iterator[Singles], frames: list[Singles]) -> Iterator[Singles]:
    """Pass blocks through, and append them to `frames`."""
    for block in blocks:
        frames.append(block)
        yield block


def search_shard(
    store: Store, shard: str, examples: list[Example], search_config: Search, parts: Parts | None = None
) -> tuple[pa.Table, Matches, int]:
    """Candidates of the examples in the live documents of a shard.

    Args:
        parts: of all queries, if `search.parts` is set: `examples` are `parts.searched`, and matches are of `parts.results`.

    Returns:
        The shard's documents (a row each, indexed by `Matches.document`), the matches, and the number of frames
        searched.

    Raises:
        DataError: the distance compares posteriors, and a document's features are none.
    """
    documents = Documents.of(store, [shard], search_config)
    settings = engine_settings(search_config, documents.distance, store.manifest.shift)
    matches = search(examples, documents.stream(), documents.most, settings)
    matches = documents.in_frames_of_the_recording(matches)
    if parts is not None:
        matches = halves_joined(matches, parts, documents.most)
    return documents.table, matches._replace(saturated=documents.saturated), documents.searched


def engine_settings(search_config: Search, distance: Distance, shift: float) -> Settings:
    """Engine settings of a config; the number of threads is that of numba in this worker."""
    return Settings(
        distance,
        search_config.candidate_window,
        search_config.lanes,
        round(search_config.piece_seconds / shift),
        search_config.recurrence,
        search_config.backend,
        numba.get_num_threads(),
        search_config.recurrence_settings(),
        search_config.row_range,
        None if search_config.device_memory_gb is None else round(search_config.device_memory_gb * 1e9),
    )


def candidate_tables(
    documents: pa.Table, examples: list[Example], matches: Matches, unit: int, buckets: int
) -> Iterator[tuple[int, pa.Table]]:
    """Tables of CANDIDATES of matches, one for each bucket with candidates, sorted by slot.

    Rows of a table are sorted by slot, query, example, document and last frame, whatever the order in the store. A tick
    is a frame; the scale is the query's frames times `unit`, so the score is minus the mean local distance over the
    query's frames.

    Args:
        documents: DOCUMENTS, indexed by `matches.document`.
        examples: indexed by `matches.query`.
        matches: by the search.
        unit: the integer that represents a local distance of 1.
        buckets: number of buckets (`swsdist.core.fingerprint`).
    """
    slot = np.array([slot_of(example.query_id) for example in examples], np.int32)
    scale = np.array([len(example.frames) for example in examples], np.int64) * unit
    doc_ids = documents["doc_id"].combine_chunks()
    order = np.empty(documents.num_rows, np.int64)
    order[pc.sort_indices(documents, [("doc_id", "ascending"), ("channel", "ascending")]).to_numpy()] = np.arange(
        documents.num_rows
    )
    names = pa.array([example.query_id for example in examples], pa.string())
    numbers = np.array([example.example for example in examples], np.int32)
    keys = [(int(slot[k]), example.query_id, example.example) for k, example in enumerate(examples)]
    rank = np.empty(len(examples), np.int64)
    rank[sorted(range(len(examples)), key=keys.__getitem__)] = np.arange(len(examples))
    bucket = slot.astype(np.int64) * buckets // SLOTS
    of_row = bucket[matches.query]
    channels = documents["channel"].to_numpy()
    for number in np.unique(of_row):
        rows = np.flatnonzero(of_row == number)
        rows = rows[np.lexsort((matches.end_frame[rows], order[matches.document[rows]], rank[matches.query[rows]]))]
        query, document = matches.query[rows], matches.document[rows]
        columns = [
            pa.array(slot[query]),
            names.take(pa.array(query)),
            pa.array(numbers[query]),
            doc_ids.take(pa.array(document)),
            pa.array(channels[document]),
            pa.array(matches.end_frame[rows] - matches.frames[rows] + 1),
            pa.array(matches.end_frame[rows]),
            pa.array(matches.cost[rows]),
            pa.array(scale[query]),
        ]
        yield int(number), pa.Table.from_arrays(columns, schema=CANDIDATES)
