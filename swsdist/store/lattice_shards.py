"""Shards of a store of lattices: the lattices of documents, and postings of their labels beside them.

A shard is two files::

    shards/part-<fp>-<k>.parquet    LATTICES: a row a document; arrays by state and by arc as binary columns, so that those of a
                                    row group lie one after the other and are searched without a loop over documents
    postings/part-<fp>-<k>.parquet  POSTINGS: a row a label, sorted by text: its number in the shard, and the rows of the
                                    documents that hold it, each with its expected count

A search finds the labels of its terms among the postings, and reads the row groups of documents that hold them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.core.arrays import Bools, Floats, Ints, Singles
from swsdist.core.codes import storage as codes
from swsdist.core.fingerprint import fingerprint
from swsdist.core.types import columns
from swsdist.io.filesystem import Folder
from swsdist.lattices.lattice import MILLISECOND, Word
from swsdist.lattices.packed import Packed
from swsdist.store import parquet
from swsdist.store.manifest import File, Shard
from swsdist.store.memory import Memory, nearest
from swsdist.store.reading import Store

#: A best word as it is written: times in ms, confidence 0 to 1.
_WORD = pa.struct(list(columns("text string, start int32, end int32, confidence float32")))

#: Little-endian arrays: int32, or float32 for `visits` and `chances`. `ticks`: length of the document.
LATTICES = columns(
    "doc_id string, channel int32, ticks int64, states int32, times large_binary, visits large_binary, "
    "arcs large_binary, steps large_binary, labels large_binary, chances large_binary, words word[]",
    word=_WORD,
)

_SEARCHED = [name for name in LATTICES.names if name != "words"]

#: `document_rows`: int32, ascending; `expected`: float32, expected count of the label in each.
POSTINGS = columns("label string, number int32, document_rows large_binary, expected large_binary")

#: Arcs of a row group; it ends with the document that reaches them.
ROW_GROUP_ARCS = 1 << 16
#: Arcs of a shard, likewise.
SHARD_ARCS = 1 << 22
#: Labels of a row group of postings.
_LABELS = 1 << 10
#: Recordings whose words are read at a time, and columns of DOCUMENTS that these are found by.
_RECORDINGS, _NAMED = 1 << 8, ["doc_id", "channel", "shard", "recording", "start", "language"]


def lattices_name(fingerprint: str, number: int) -> str:
    """Path of the lattices of a shard in its store: the shard's name."""
    return f"shards/part-{fingerprint}-{number}.parquet"


def postings_name(shard: str) -> str:
    """Path of the postings of a shard."""
    return shard.replace("shards/", "postings/", 1)


class Written(NamedTuple):
    """A shard that was written: its files, lattices before postings, and their rows."""

    lattices: parquet.Output
    postings: parquet.Output
    documents: int
    labels: int


class LatticeShardWriter:
    """Writes lattices into a shard until it is full.

    Args:
        folder: of the store.
        name: from `lattices_name`.
    """

    def __init__(self, folder: Folder, name: str) -> None:
        self.folder, self.name = folder, name
        self.arcs = self.documents = 0
        self._temporary = folder.temporary(".parquet")
        self._path: Path = self._temporary.__enter__()
        self._writer = parquet.writer(self._path, LATTICES)
        self._file = self._writer.__enter__()
        self._rows: list[dict[str, object]] = []
        self._pending = 0
        self._numbers: dict[str, int] = {"": 0}
        #: By document: its labels, and the expected count of each.
        self._postings: list[tuple[NDArray[np.int32], Singles]] = []

    @property
    def full(self) -> bool:
        """Whether the shard is full, and another should be begun."""
        return self.arcs >= SHARD_ARCS

    def append(self, doc_id: str, channel: int, packed: Packed) -> None:
        """Add a document."""
        numbers = np.zeros(len(packed.texts), np.int32)
        present = np.unique(packed.labels)
        present = present[present > 0]
        numbers[present] = [self._numbers.setdefault(packed.texts[k], len(self._numbers)) for k in present.tolist()]
        sums = np.bincount(packed.labels, packed.expected(), len(packed.texts)).astype(np.float32)
        self._postings.append((numbers[present], sums[present]))
        self._rows.append(
            {
                "doc_id": doc_id,
                "channel": channel,
                "ticks": packed.ticks,
                "states": len(packed.times),
                "times": packed.times.astype("<i4").tobytes(),
                "visits": packed.visits.astype("<f4").tobytes(),
                "arcs": packed.arcs.astype("<i4").tobytes(),
                "steps": packed.steps.astype("<i4").tobytes(),
                "labels": numbers[packed.labels].astype("<i4").tobytes(),
                "chances": packed.chances.astype("<f4").tobytes(),
                "words": [_as_row(word) for word in packed.words],
            }
        )
        self.documents += 1
        self.arcs += len(packed.steps)
        self._pending += len(packed.steps)
        if self._pending >= ROW_GROUP_ARCS:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._file.write_table(pa.Table.from_pylist(self._rows, LATTICES))
            self._rows, self._pending = [], 0

    def publish(self) -> Written:
        """Finish the shard and publish both files."""
        self._flush()
        self._writer.__exit__(None, None, None)
        lattices = parquet.describe(self._path, self.name)
        self.folder.publish(self._path, self.name)
        self._temporary.__exit__(None, None, None)
        texts = sorted((text, number) for text, number in self._numbers.items() if number)
        postings = parquet.publish(self.folder, postings_name(self.name), self._tables(texts), POSTINGS)
        return Written(lattices, postings, self.documents, len(texts))

    def _tables(self, texts: Sequence[tuple[str, int]]) -> Iterator[pa.Table]:
        labels, counts = (np.concatenate(column) for column in zip(*self._postings, strict=True))
        order = np.argsort(labels, kind="stable")
        documents = np.repeat(np.arange(self.documents), [len(some) for some, _ in self._postings])[order]
        counts = counts[order]
        cuts = np.searchsorted(labels[order], np.arange(len(self._numbers) + 1))
        for first in range(0, max(len(texts), 1), _LABELS):
            some = texts[first : first + _LABELS]
            places = [slice(cuts[number], cuts[number + 1]) for _, number in some]
            rows = [documents[place].astype("<i4").tobytes() for place in places]
            expected = [counts[place].astype("<f4").tobytes() for place in places]
            columns = [[text for text, _ in some], [number for _, number in some], rows, expected]
            yield pa.table(
                [pa.array(column, field.type) for column, field in zip(columns, POSTINGS, strict=True)], schema=POSTINGS
            )

    def discard(self) -> None:
        """Discard an unfinished shard."""
        self._writer.__exit__(None, None, None)
        self._temporary.__exit__(None, None, None)


def without(folder: Folder, shard: Shard, doc_ids: Set[str], live: pa.Table) -> Shard:
    """A new shard of the same lattices without those of some documents, and without labels that only these have.

    Args:
        folder: of the store.
        shard: of which the files are read.
        doc_ids: of the documents that are left out.
        live: of the documents that stay: doc_id, channel, sha256 and frames.
    """
    track = next(name for name in shard.files if name != "postings")
    keys = [[row["doc_id"], row["channel"], row["sha256"]] for row in live.to_pylist()]
    name = lattices_name(fingerprint("forget", 1, shard.name, keys), 0)
    postings = parquet.read(folder, shard.files["postings"].name)
    with parquet.reader(folder, shard.files[track].name) as file:
        names = file.read(["doc_id"], use_threads=False)["doc_id"].to_pylist()
        stay = np.array([doc_id not in doc_ids for doc_id in names], bool)
        rows, holders = np.cumsum(stay) - 1, []
        for some, counts in zip(postings["document_rows"].to_pylist(), postings["expected"].to_pylist(), strict=True):
            held = np.frombuffer(some, "<i4")
            holders.append((rows[held[stay[held]]].astype("<i4"), np.frombuffer(counts, "<f4")[stay[held]]))
        kept = [k for k, (held, _) in enumerate(holders) if len(held)]
        # Numbers of labels are those from 1 on.
        numbers = postings["number"].to_numpy()
        renumbered = np.zeros(postings.num_rows + 1, "<i4")
        renumbered[np.sort(numbers[kept])] = np.arange(1, len(kept) + 1)

        def groups() -> Iterator[pa.Table]:
            first = 0
            for k in range(file.num_row_groups):
                table = file.read_row_group(k, use_threads=False)
                table = table.filter(pa.array(stay[first : (first := first + table.num_rows)]))
                labels = [renumbered[np.frombuffer(part, "<i4")].tobytes() for part in table["labels"].to_pylist()]
                place = table.schema.get_field_index("labels")
                if table.num_rows:
                    yield table.set_column(place, table.field(place), pa.array(labels, pa.large_binary()))

        lattices = File(*parquet.publish(folder, name, groups(), file.schema_arrow))
    columns = [
        postings["label"].take(kept),
        pa.array(renumbered[numbers[kept]], pa.int32()),
        *(pa.array([holders[k][j].tobytes() for k in kept], pa.large_binary()) for j in range(2)),
    ]
    table = pa.table(columns, schema=POSTINGS)
    tables = (table.slice(first, _LABELS) for first in range(0, max(len(kept), 1), _LABELS))
    beside = File(*parquet.publish(folder, postings_name(name), tables, POSTINGS))
    frames = pc.sum(live["frames"]).as_py()
    return Shard(name, {track: lattices, "postings": beside}, live.num_rows, frames)


class Lattices(NamedTuple):
    """Lattices of a row group, one after the other, as `swsdist.kernels.lattice_search.search` takes them.

    Attributes:
        doc_ids, channels, ticks: by document.
        documents: int64 (documents + 1,), first state of each.
        first: int64 (states + 1,), first arc of each state.
        times: int32 (states,).
        visits: float64 (states,).
        steps, labels: int32 (arcs,).
        chances: float64 (arcs,).
    """

    doc_ids: list[str]
    channels: list[int]
    ticks: list[int]
    documents: Ints
    first: Ints
    times: NDArray[np.int32]
    visits: Floats
    steps: NDArray[np.int32]
    labels: NDArray[np.int32]
    chances: Floats

    def within(self, document: int, first: int, end: int) -> Lattices:
        """The part of a lattice from a tick to another."""
        begin, stop = self.documents[document : document + 2].tolist()
        inside = (self.times[begin:stop] >= first) & (self.times[begin:stop] <= end)
        number = np.cumsum(inside) - 1
        source = np.repeat(np.arange(stop - begin), np.diff(self.first[begin : stop + 1]))
        arcs = slice(self.first[begin], self.first[stop])
        target = source + self.steps[arcs]
        kept = inside[source] & inside[target]
        source, target = number[source[kept]], number[target[kept]]
        states = int(inside.sum())
        return Lattices(
            [self.doc_ids[document]],
            [self.channels[document]],
            [self.ticks[document]],
            np.array([0, states], np.int64),
            np.concatenate(([0], np.cumsum(np.bincount(source, minlength=states)))).astype(np.int64),
            self.times[begin:stop][inside],
            self.visits[begin:stop][inside],
            (target - source).astype(np.int32),
            self.labels[arcs][kept],
            self.chances[arcs][kept],
        )


class Postings(NamedTuple):
    """Labels of a shard.

    Attributes:
        numbers: number of each label in the shard.
        rows: int32, rows of the documents that hold each label.
        labels: how many labels the shard has.
    """

    numbers: dict[str, int]
    rows: dict[str, NDArray[np.int32]]
    labels: int


def postings_of(folder: Folder, files: Mapping[str, File], labels: Collection[str] | None = None) -> Postings:
    """Postings of some labels, by default of all that the shard has, in the order of their texts."""
    wanted = None if labels is None else sorted(labels)
    with parquet.reader(*_place(folder, files["postings"])) as file:
        groups = [k for k in range(file.num_row_groups) if wanted is None or _may_hold(file, k, wanted)]
        table = file.read_row_groups(groups, columns=["label", "number", "document_rows"], use_threads=False)
        count = int(file.metadata.num_rows)
    texts = table["label"].to_pylist()
    places = range(len(texts)) if labels is None else [k for k, text in enumerate(texts) if text in labels]
    numbers, rows = table["number"].to_numpy(), table["document_rows"].combine_chunks()
    return Postings(
        {texts[k]: int(numbers[k]) for k in places},
        {texts[k]: np.frombuffer(rows[k].as_buffer(), "<i4") for k in places},
        count,
    )


def labels_of(folder: Folder, shards: Iterable[Shard]) -> frozenset[str]:
    """All labels of the documents in some shards."""
    return frozenset(label for shard in shards for label in postings_of(folder, shard.files).numbers)


def _may_hold(file: Any, group: int, texts: Sequence[str]) -> bool:
    """Whether the first column of a row group may hold any of some sorted texts."""
    limits = file.metadata.row_group(group).column(0).statistics
    if limits is None or not limits.has_min_max:
        return True
    first = bisect_left(texts, limits.min)
    return first < len(texts) and texts[first] <= limits.max


def shard_rows(folder: Folder, files: Mapping[str, File]) -> int:
    """Number of rows of a shard, including documents that are not live."""
    with parquet.reader(*_place(folder, files["lattices"])) as file:
        return int(file.metadata.num_rows)


def read_lattices(
    folder: Folder, files: Mapping[str, File], rows: Bools | None = None, memory: Memory | None = None
) -> Iterator[tuple[int, Lattices]]:
    """Row groups of a shard that hold any of the chosen rows: the first row of each, and its lattices.

    Args:
        folder: of the store.
        files: of the shard.
        rows: bool (documents,), the chosen ones; by default all.
        memory: holds row groups for later.
    """
    with parquet.reader(*_place(folder, files["lattices"])) as file:
        first = 0
        for k in range(file.num_row_groups):
            count = file.metadata.row_group(k).num_rows
            if rows is None or rows[first : first + count].any():
                key = files["lattices"].name, k
                table = None if memory is None else memory.get(key)
                if table is None:
                    table = file.read_row_group(k, _SEARCHED, use_threads=False).combine_chunks()
                    if memory is not None:
                        memory.put(key, table, table.nbytes)
                yield first, _lattices(table)
            first += count


def read_words(store: Store, documents: Iterable[tuple[str, int, str]]) -> dict[tuple[str, int], list[Word]]:
    """The best words of live documents, as they are written, by start; times in s from the document's start.

    Args:
        store: of lattices.
        documents: doc_id, channel and shard of each.

    Returns:
        the words by doc_id and channel.

    Raises:
        StoreError: it holds none.
    """
    by_shard: dict[str, set[tuple[str, int]]] = {}
    for doc_id, channel, shard in documents:
        by_shard.setdefault(shard, set()).add((doc_id, channel))
    result: dict[tuple[str, int], list[Word]] = {}
    for shard, keys in by_shard.items():
        files, doc_ids = store.manifest.shard(shard).files, sorted({doc_id for doc_id, _ in keys})
        with parquet.reader(*_place(store.folder, files.get("lattices") or next(iter(files.values())))) as file:
            if "words" not in file.schema_arrow.names:
                raise codes.NO_WORDS_IN_STORE(where=store.folder.path())
            for k in range(file.num_row_groups):
                if not _may_hold(file, k, doc_ids):
                    continue
                names = file.read_row_group(k, ["doc_id", "channel"], use_threads=False)
                places = pc.indices_nonzero(pc.is_in(names["doc_id"], pa.array(doc_ids)))
                named = zip(*(column.to_pylist() for column in names.take(places).columns), strict=True)
                rows = {row: key for row, key in zip(places.to_pylist(), named, strict=True) if key in keys}
                if rows:
                    words = file.read_row_group(k, ["words"], use_threads=False)["words"].take(list(rows)).to_pylist()
                    result |= zip(rows.values(), ([_word(row) for row in some] for some in words), strict=True)
    return result


def words_of_recordings(store: Store) -> Iterator[tuple[str, dict[int, list[Word]], str | None]]:
    """The best words of recordings, by name of the recording and channel; times in s from the recording's start.

    The third item is the language, None if it is unknown or there are several.

    Raises:
        StoreError: it holds none.
    """
    documents: dict[str, list[dict[str, Any]]] = {}
    for row in store.documents(columns=_NAMED).to_pylist():
        documents.setdefault(row["recording"] or row["doc_id"], []).append(row)
    names = sorted(documents)
    for first in range(0, len(names), _RECORDINGS):
        some = names[first : first + _RECORDINGS]
        rows = (row for name in some for row in documents[name])
        words = read_words(store, ((row["doc_id"], row["channel"], row["shard"]) for row in rows))
        for name in some:
            channels: dict[int, list[Word]] = {}
            for row in sorted(documents[name], key=lambda row: (row["channel"], row["start"] or 0.0)):
                begin, said = row["start"] or 0.0, words[row["doc_id"], row["channel"]]
                placed = (word._replace(start=begin + word.start, end=begin + word.end) for word in said)
                channels.setdefault(row["channel"], []).extend(placed)
            languages = {row["language"] for row in documents[name]} - {None}
            yield name, channels, languages.pop() if len(languages) == 1 else None


def _as_row(word: Word) -> dict[str, object]:
    start, end = (round(time / MILLISECOND) for time in (word.start, word.end))
    return {"text": word.text, "start": start, "end": end, "confidence": word.confidence}


def _word(row: dict[str, Any]) -> Word:
    return Word(row["text"], row["start"] / 1000, row["end"] / 1000, row["confidence"])


def faults(lattices: Lattices, breaking: int = 0) -> Iterator[str]:
    """Defects of lattices that were read; `breaking` is the number of `BREAK`, which may lead back in time."""
    states, arcs = int(lattices.documents[-1]), int(lattices.first[-1])
    if any(len(column) != states for column in (lattices.times, lattices.visits, lattices.first[1:])):
        yield "states: arrays of different lengths"
        return
    if any(len(column) != arcs for column in (lattices.steps, lattices.labels, lattices.chances)):
        yield "arcs: arrays of different lengths"
        return
    source = np.repeat(np.arange(states), np.diff(lattices.first))
    last = lattices.documents[np.searchsorted(lattices.documents, source, side="right")]
    if ((lattices.steps < 1) | (source + lattices.steps >= last)).any():
        yield "an arc leads out of its lattice"
    elif (
        ((lattices.labels > 0) & (lattices.labels != breaking))
        & (lattices.times[source + lattices.steps] < lattices.times[source])
    ).any():
        yield "a word ends before it starts"
    if not all(((column >= 0) & (column <= 1)).all() for column in (lattices.visits, lattices.chances)):
        yield "a probability is not between 0 and 1"


def _lattices(table: pa.Table) -> Lattices:
    def flat(name: str, dtype: str) -> NDArray[np.generic]:
        column = table[name].chunk(0)
        offsets = np.frombuffer(column.buffers()[1], np.int64)[column.offset :][: len(column) + 1]
        data = column.buffers()[2]
        if data is None:
            return np.empty(0, dtype)
        return np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]].view(dtype)

    states = table["states"].to_numpy().astype(np.int64)
    return Lattices(
        table["doc_id"].to_pylist(),
        table["channel"].to_pylist(),
        table["ticks"].to_pylist(),
        np.concatenate(([0], np.cumsum(states))),
        np.concatenate(([0], np.cumsum(flat("arcs", "<i4"), dtype=np.int64))),
        flat("times", "<i4"),  # type: ignore[arg-type]
        flat("visits", "<f4").astype(np.float64),
        flat("steps", "<i4"),  # type: ignore[arg-type]
        flat("labels", "<i4"),  # type: ignore[arg-type]
        flat("chances", "<f4").astype(np.float64),
    )


def _place(folder: Folder, file: File) -> tuple[Folder, str]:
    """A file, from the node's cache if it has one."""
    return nearest(folder, file.name, file.size, file.sha256)
