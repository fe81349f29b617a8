"""Read a feature store a bounded piece at a time, and compute digests of its content.

pyarrow suffices to do the same: read manifest.json, the documents table it names, and the rows of shards at each
(doc_id, channel)'s place in that table (docs/concepts/feature-store.md).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import groupby, pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio.speech import pack_marks, unpack_marks
from swsdist.core.arrays import Singles
from swsdist.core.codes import families
from swsdist.core.codes import storage as codes
from swsdist.core.errors import StoreError
from swsdist.core.types import DOCUMENTS
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder
from swsdist.store import parquet
from swsdist.store.manifest import File, Manifest, relocated_paths, require, state_name
from swsdist.store.memory import Memory, nearest
from swsdist.store.statistics import statistics_in


def keys_of(names: pa.ChunkedArray, channels: pa.ChunkedArray) -> pa.Array:
    """A string per document: its name, and its channel or part."""
    text = pa.large_string()
    joined = pc.binary_join_element_wise(
        names.cast(text), channels.cast(pa.string()).cast(text), pa.scalar("\0", text), null_handling="replace"
    )
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


#: Fewer than one document in so many of a shard are worth looking up.
_FEW = 4


T = TypeVar("T")


class Block(NamedTuple):
    """Consecutive frames of a document; features are float32 (frames, dimension), read-only."""

    doc_id: str
    channel: int
    first_frame: int
    features: Singles


class Recording(NamedTuple):
    """Current path and duration (s) of a recording; if documents are places in it, up to the end of the last."""

    path: str
    duration: float


class Store:
    """One state of a feature store.

    Args:
        folder: its location.
        manifest: the state; the current one by default.
        watch: receives the number of frames used, while frames of the first track are read.
        queries: statistics of a run's queries, over the columns of all tracks, for `search.documents_by: pooled`.

    Raises:
        StoreError: there is no store.
    """

    def __init__(
        self,
        folder: Folder,
        manifest: Manifest | None = None,
        watch: Callable[[int], None] | None = None,
        queries: Statistics | None = None,
    ) -> None:
        self.folder = folder
        self.manifest = manifest or require(folder)
        self.queries = queries
        self._watch = watch
        self.memory: Memory | None = None
        self._only: pa.Array | None = None

    def __repr__(self) -> str:
        counts, tracks = self.manifest.counts, ", ".join(track.name for track in self.manifest.tracks)
        return (
            f"<Store {self.folder.root}, {counts['documents']} documents, {counts['seconds'] / 3600:.4g} h, {tracks}>"
        )

    def with_memory(self, memory: Memory | None) -> Store:
        """The same state with another memory, or without one."""
        made = copy(self)
        made.memory = memory
        return made

    def among(self, keys: pa.Table) -> Store:
        """The same state, restricted to some documents, without a memory.

        Args:
            keys: columns doc_id and channel.
        """
        made = self.with_memory(None)
        made._only = keys_of(keys["doc_id"], keys["channel"])
        return made

    def remembered(self, key: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """A value from the memory; else it is made, and held if there is a memory with room for its bytes."""
        if self.memory is None:
            return make()
        value: T | None = self.memory.get(key)
        if value is None:
            value = make()
            self.memory.put(key, value, size(value))
        return value

    @classmethod
    def at(cls, root: str, state: str, *, storage: Mapping[str, object]) -> Store:
        """A state of a store, by folder and fingerprint, even after later commits.

        Raises:
            StoreError: the store or this state of it does not exist.
        """
        folder = Folder(root, storage)
        return cls(folder, require(folder, state_name(state)))

    def documents(
        self,
        shard: str | None = None,
        columns: list[str] | None = None,
        track: str | None = None,
        codes: Sequence[str] = (),
    ) -> pa.Table:
        """The live documents of a track (by default the first), of one shard or all; DOCUMENTS.

        Columns named in `codes` are read as codes of their strings, to save memory: a million documents repeat long
        names.
        """
        name = self.manifest.track(track).documents
        keys = () if self._only is None else ("doc_id", "channel")
        if shard is None:
            table = parquet.read(self.folder, name, columns and [*dict.fromkeys([*columns, *keys])], codes)
        else:
            required = None if columns is None else sorted({*columns, *keys, "shard"})
            # Shards fill separate row groups: only those of this shard are read.
            table = parquet.read_where(self.folder, name, "shard", shard, required, codes)
            table = table.filter(pc.equal(table["shard"], shard))
        if self._only is None:
            return table
        table = table.filter(pc.is_in(keys_of(table["doc_id"], table["channel"]), self._only))
        return table if columns is None or shard is not None else table.select(columns)

    def recordings(self, names: Sequence[str] | None = None) -> dict[tuple[str, int], Recording]:
        """Each recording's channel, by the name used in detections: the document's, or that of the recording that
        contains it.

        Args:
            names: of recordings; by default all.
        """
        documents = self.documents(columns=["doc_id", "channel", "path", "duration", "recording", "start"])
        all_paths = documents["path"]
        recording_names = pc.coalesce(documents["recording"], documents["doc_id"])
        documents = documents.set_column(documents.schema.get_field_index("doc_id"), "doc_id", recording_names)
        if names is not None:
            documents = documents.filter(pc.is_in(documents["doc_id"], pa.array(names, pa.string())))
        paths = relocated_paths(self.folder, self.manifest.recordings, documents["path"], all_paths)
        documents = documents.set_column(documents.schema.get_field_index("path"), "path", paths)
        result: dict[tuple[str, int], Recording] = {}
        for row in documents.to_pylist():
            key, end = (row["doc_id"], row["channel"]), (row["start"] or 0.0) + row["duration"]
            result[key] = Recording(row["path"], max(end, result[key].duration if key in result else 0.0))
        return result

    def statistics(
        self, track: str | None = None, speakers: Sequence[str] | None = None
    ) -> dict[tuple[str, str], Statistics]:
        """Pinned statistics of a track by (scope, name): ("collection", "") and ("speaker", name), of some speakers or
        all.
        """
        name = self.manifest.models[f"statistics.{self.manifest.track(track).name}"]
        table = parquet.read(self.folder, name, ["scope", "name", "frames", "mean", "variance"])
        if speakers is not None:
            meant = pc.is_in(table["name"], pa.array(speakers, pa.string()))
            table = table.filter(pc.or_(pc.equal(table["scope"], "collection"), meant))
        return statistics_in(table)

    def rejected(self) -> pa.Table:
        """Rejected documents; REJECTED_DOCUMENTS."""
        return parquet.read(self.folder, self.manifest.rejected)

    def live(self, shard: str, track: str | None = None) -> set[tuple[str, int]]:
        """Keys (doc_id, channel) of the live documents of a shard."""
        keys = self.documents(shard, ["doc_id", "channel"], track)
        return set(zip(keys["doc_id"].to_pylist(), keys["channel"].to_pylist(), strict=True))

    def blocks(
        self, shard: str, live: set[tuple[str, int]] | None = None, track: str | None = None, threads: int = 1
    ) -> Iterator[Block]:
        """Frames of the documents in a shard, in their order.

        At most a row group is in memory, or with several threads one more than there are threads.

        Args:
            shard: its name.
            live: keys (doc_id, channel) to yield; other rows are dead. By default all live documents.
            track: by default the first.
            threads: that read ahead.

        Raises:
            StoreError: the track, or its file for this shard, does not exist; or the store holds no frames.
        """
        if self.manifest.kind != "frames":
            raise codes.NO_FRAMES_IN_STORE(where=self.folder.path(), kind=self.manifest.kind)
        chosen = self.manifest.track(track)
        live = self.live(shard, chosen.name) if live is None else live
        dimension, dtype = chosen.dimension, parquet.numbers(chosen.dtype)
        watch = self._watch if chosen.name == self.manifest.tracks[0].name else None
        for table in self._row_groups(shard, chosen.name, threads, live):
            doc_ids, channels, firsts = (table[name].to_pylist() for name in ("doc_id", "channel", "first_frame"))
            features, ends = _frames_of(table["features"], dimension, dtype)
            for key, first_frame, (begin, end) in zip(
                zip(doc_ids, channels, strict=True), firsts, pairwise(ends), strict=True
            ):
                if key in live:
                    yield Block(*key, first_frame, features[begin:end])
                    if watch is not None:
                        watch(end - begin)

    def _row_groups(self, shard: str, track: str, threads: int, live: set[tuple[str, int]]) -> Iterator[pa.Table]:
        """Row groups with documents of a shard's file, from the node's cache if it has one."""
        file = self._file(shard, track)
        place = nearest(self.folder, file.name, file.size, file.sha256)
        columns = ["doc_id", "channel", "first_frame", "features"]

        def groups_at(place: tuple[Folder, str]) -> Iterator[pa.Table]:
            chosen = None
            if len(live) * _FEW < self.manifest.shard(shard).documents:
                by_name = self._groups_by_name(place)
                chosen = sorted({group for doc_id, _ in live for group in by_name.get(doc_id, ())})
            yield from parquet.row_groups(*place, columns, threads, chosen)

        groups = groups_at(place)
        try:
            first = next(groups, None)
        except StoreError:
            if place == (self.folder, file.name):
                raise
            # Another process evicted it from the cache.
            groups = groups_at((self.folder, file.name))
            first = next(groups, None)
        if first is not None:
            yield first
            yield from groups

    def _groups_by_name(self, place: tuple[Folder, str]) -> dict[str, list[int]]:
        """The row groups of a shard's file by doc_id, from memory if the store has one."""
        return self.remembered(
            ("row groups", place[1]),
            lambda: parquet.groups_by_value(*place, "doc_id"),
            lambda groups: 200 * len(groups),
        )

    def _file(self, shard: str, track: str) -> File:
        file = self.manifest.shard(shard).files.get(track)
        if file is None:
            raise families.DAMAGED_FILE(
                "track {track} has no frames of this shard", "index again", where=self.folder.path(shard), track=track
            )
        return file

    def joined(
        self, shard: str, tracks: Sequence[str], live: set[tuple[str, int]] | None = None, threads: int = 1
    ) -> Iterator[Block]:
        """Frames of several tracks side by side, like `blocks`.

        A document has the length of its shortest track; documents that a track rejected are left out.

        Args:
            shard: its name.
            tracks: their names, columns from left to right.
            live: keys (doc_id, channel) to yield; by default all documents live in each track.
            threads: that read ahead.

        Raises:
            StoreError: a track or its file does not exist, or tracks do not hold the same documents.
        """
        recording_names = set.intersection(*(self.live(shard, track) for track in tracks))
        required = recording_names if live is None else recording_names & live
        if not required:
            return  # the track's task for this shard has failed
        pieces = [pieces_of(self.blocks(shard, required, track, threads)) for track in tracks]
        for parts in zip(*pieces, strict=True):
            left: list[Block | None] = [next(part) for part in parts]
            while all(block is not None for block in left):
                blocks = [block for block in left if block is not None]
                first = blocks[0]
                if len({(block.doc_id, block.channel, block.first_frame) for block in blocks}) > 1:
                    raise families.DAMAGED_FILE(
                        "the tracks {tracks} do not hold the same documents in the same rows",
                        "index again",
                        where=self.folder.path(shard),
                        tracks=", ".join(tracks),
                    )
                count = min(len(block.features) for block in blocks)
                frames = np.concatenate([block.features[:count] for block in blocks], axis=1)
                yield first._replace(features=frames)
                left = [next(part, None) for part in parts]

    def features(self, doc_id: str, channel: int = 1, track: str | None = None) -> Singles:
        """All frames of one document, float32 (frames, dimension).

        Raises:
            StoreError: it is not in the store.
        """
        table = self.documents(columns=["doc_id", "channel", "shard"], track=track)
        result = table.filter(pc.and_(pc.equal(table["doc_id"], doc_id), pc.equal(table["channel"], channel)))
        if result.num_rows == 0:
            raise families.UNKNOWN_NAME.of(StoreError)(
                "no document {document!r}, channel {channel}, in the store",
                "`swsdist store info --documents` lists them",
                where=self.folder.path(),
                document=doc_id,
                channel=channel,
            )
        blocks = self.blocks(result["shard"][0].as_py(), {(doc_id, channel)}, track)
        return np.concatenate([block.features for block in blocks])


def _frames_of(column: pa.ChunkedArray, dimension: int, dtype: np.dtype[np.floating]) -> tuple[Singles, list[int]]:
    """The frames of a column of blobs, all one after the other, float32 without copying, and the borders of its rows."""
    (blobs,) = column.chunks
    _, offsets, data = blobs.buffers()
    ends = np.frombuffer(offsets, np.int64)[blobs.offset : blobs.offset + len(blobs) + 1]
    features = np.frombuffer(data, dtype, ends[-1] // dtype.itemsize).reshape(-1, dimension)
    if dtype == np.float16:
        from swsdist.kernels.halves import single  # loads numba

        features = single(features)
    return features, (ends // (dtype.itemsize * dimension)).tolist()


def pieces_of(blocks: Iterator[Block]) -> Iterator[Iterator[Block]]:
    """Group consecutive blocks by document; the unread rest of a document is skipped."""
    for _, part in groupby(blocks, key=lambda block: (block.doc_id, block.channel)):
        yield part


#: Key of speech marks, and the join key of tracks.
_MARKED = _JOINED = ("doc_id", "channel", "frames")


class Tracks:
    """The part of a store that a search reads.

    Excludes documents that any of the tracks lacks (not computed yet).

    Args:
        store: the store.
        names: of tracks, from left to right; by default all, in the store's order.

    Attributes:
        dimension: numbers per frame, over all tracks.
        places: by track name: its first column, and the column after its last.
    """

    def __init__(self, store: Store, names: Sequence[str] | None = None) -> None:
        chosen = store.manifest.tracks if names is None else [store.manifest.track(name) for name in names]
        self.store = store
        self._names = [track.name for track in chosen]
        self.places: dict[str, tuple[int, int]] = {}
        self.dimension = 0
        for track in chosen:
            self.places[track.name] = self.dimension, self.dimension + track.dimension
            self.dimension += track.dimension
        self.recipes = [[track.name, track.fingerprint] for track in chosen]

    def documents(
        self, shard: str | None = None, columns: list[str] | None = None, codes: Sequence[str] = ()
    ) -> pa.Table:
        """Live documents of one or all shards, as in the first track: DOCUMENTS.

        `frames` is that of the shortest track; `mean` and `variance` cover all columns; `speech` comes from any track
        that has it. Columns named in `codes` may be codes of their strings.
        """
        table = self._joint(shard, columns, codes)
        audible = self.store.manifest.counts.get("heard_seconds")
        if not audible or "speech" not in table.column_names or table["speech"].null_count == 0:
            return table
        marked_rows = table if columns is None else self._joint(shard, [*_MARKED, "speech"])
        marked = pa.array(_with_marks(marked_rows, self._others(shard)), pa.large_binary())
        index = table.schema.get_field_index("speech")
        return table.set_column(index, table.schema.field(index), marked)

    def _others(self, shard: str | None) -> Iterator[pa.Table]:
        """Frames and speech of the documents of each track with speech marks."""
        for track in self.store.manifest.tracks:
            table = self.store.documents(shard, [*_MARKED, "speech"], track.name)
            yield table.filter(pc.is_valid(table["speech"]))

    def _joint(self, shard: str | None, columns: list[str] | None, codes: Sequence[str] = ()) -> pa.Table:
        first, *more = self._names
        if not more:
            return self.store.documents(shard, columns, first, codes=codes)
        read = [name for name in DOCUMENTS.names if columns is None or name in {*columns, *_JOINED}]
        wide = [name for name in ("mean", "variance") if name in read]
        tables = (self.store.documents(shard, [*_JOINED, *wide], name).to_pylist() for name in more)
        others = [{(row["doc_id"], row["channel"]): row for row in rows} for rows in tables]
        joint: list[dict[str, Any]] = []
        for row in self.store.documents(shard, read, first).to_pylist():
            rows = [row, *(rows[key] for rows in others if (key := (row["doc_id"], row["channel"])) in rows)]
            if len(rows) < len(self._names):
                continue
            frames = min(row["frames"] for row in rows)
            joined = {name: [value for row in rows for value in row[name]] for name in wide}
            joint.append({**row, **joined, "frames": frames})
        table = pa.Table.from_pylist(joint, pa.schema([DOCUMENTS.field(name) for name in read]))
        return table if columns is None else table.select(columns)

    def statistics(self, speakers: Sequence[str] | None = None) -> dict[tuple[str, str], Statistics]:
        """Pinned statistics of all columns by scope, as in `Store.statistics`; ("pooled", "") together with queries."""
        parts = [self.store.statistics(name, speakers) for name in self._names]
        scopes = [scope for scope in parts[0] if all(scope in part for part in parts[1:])]
        results = {scope: Statistics.side_by_side([part[scope] for part in parts]) for scope in scopes}
        if self.store.queries is not None:
            every = Tracks(self.store).places
            columns = np.concatenate([np.arange(*every[name]) for name in self._names])
            results["pooled", ""] = results["collection", ""].pooled(self.store.queries.of_columns(columns))
        return results

    def blocks(self, shard: str, live: set[tuple[str, int]] | None = None, threads: int = 1) -> Iterator[Block]:
        """Frames of the documents in a shard, side by side; `threads` read ahead."""
        if len(self._names) == 1:
            return self.store.blocks(shard, live, self._names[0], threads)
        return self.store.joined(shard, self._names, live, threads)


def _with_marks(documents: pa.Table, others: Iterable[pa.Table]) -> list[bytes | None]:
    """The marks of each document, from the first table that has them. Where tracks differ in length (shifts are equal),
    the last mark is repeated.
    """
    rows = documents.select([*_MARKED, "speech"]).to_pylist()
    result: dict[tuple[str, int], tuple[bytes, int]] = {}
    for other in others:
        for row in other.to_pylist():
            result.setdefault((row["doc_id"], row["channel"]), (row["speech"], row["frames"]))
    marks: list[bytes | None] = []
    for row in rows:
        speech, frames = row["speech"], row["frames"]
        if speech is None and (marks_and_frames := result.get((row["doc_id"], row["channel"]))) is not None:
            audible = unpack_marks(*marks_and_frames)
            speech = pack_marks(np.pad(audible, (0, max(0, frames - len(audible))), "edge")[:frames])
        marks.append(speech)
    return marks


def of_store(store: Store) -> dict[str, str]:
    """SHA-256 of a store's live documents, and of their frames; of a further track under `documents.TRACK`,
    `features.TRACK`.

    Excludes storage details (paths, shards, rows).
    """
    result: dict[str, str] = {}
    for k, track in enumerate(store.manifest.tracks):
        end = f".{track.name}" if k else ""
        result |= {f"{name}{end}": value for name, value in _of_track(store, track.name).items()}
    return result


def _of_track(store: Store, track: str) -> dict[str, str]:
    columns = ["doc_id", "channel", "duration", "frames", "sha256", "speaker", "mean", "variance", "speech"]
    table = store.documents(columns=[*columns, "recording", "start"], track=track)
    if table["start"].null_count == table.num_rows:  # only places in recordings have these columns
        table = table.drop_columns(["recording", "start"])
    table = table.sort_by([("doc_id", "ascending"), ("channel", "ascending")])
    frames: dict[tuple[str, int], Any] = {}
    for shard in store.manifest.shards:
        if track not in shard.files:
            continue  # its task has failed, so the table has none of its documents
        for block in store.blocks(shard.name, track=track):
            # A running hash per document: its frames are consecutive, so blocks add up.
            running = frames.setdefault((block.doc_id, block.channel), hashlib.sha256())
            running.update(block.features.tobytes())
    total = hashlib.sha256()
    for key in sorted(frames):
        total.update(f"{key[0]}\0{key[1]}\0{frames[key].hexdigest()}\n".encode())
    return {"documents": of_rows(table), "features": total.hexdigest()}


def of_rows(table: pa.Table) -> str:
    """SHA-256 of a table's rows in their order, column by column."""
    running = hashlib.sha256()
    for name in table.column_names:
        column = table[name].combine_chunks()
        running.update(f"{name} {column.type} {len(column)}\n".encode())
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            running.update(pc.is_valid(column).to_numpy(zero_copy_only=False).tobytes())
            running.update(pc.fill_null(column, 0).to_numpy().tobytes())
        elif pa.types.is_large_binary(column.type):
            for value in column:
                running.update(hashlib.sha256(value.as_buffer()).digest() if value.is_valid else b"null")
        else:
            running.update(json.dumps(column.to_pylist(), default=str).encode())
    return running.hexdigest()


def combined(parts: dict[str, str]) -> str:
    """One SHA-256 of several parts by name."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
