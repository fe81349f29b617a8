"""The stage propose-pairs: pairs of segments that stand near each other in a sorted order, a task per order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.chains.discover.inputs import DiscoverInputs, stretches, unit_of
from swsdist.config.search import Search
from swsdist.core.fingerprint import SLOTS, slot_of
from swsdist.core.types import columns
from swsdist.discovery.neighbours import (
    Match,
    Matching,
    Neighbours,
    Pairs,
    Places,
    Stretches,
    best,
    both_ways,
    joined,
    lines,
    match,
    most_alike,
    near,
    ordered,
    unique,
)
from swsdist.methods.method import create
from swsdist.pipeline.chain import Context, Stage, Table
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.task import Part, Task, TaskOutput
from swsdist.stages.buckets import Bucket, BucketStage
from swsdist.store.reading import Store
from swsdist.store.same_sound import Key

#: Row groups of a file of pairs.
_GROUPS = 64

#: Pairs of segments, by number in the order of documents and first frames; the slot is that of the left one's document.
PAIRS = columns("slot int32, left int32, right int32, unlike int32")


class Collection(NamedTuple):
    """All segments, and the documents that they are of, in order."""

    documents: list[tuple[str, int]]
    slots: NDArray[np.int32]
    places: Places


class Proposing(NamedTuple):
    """The payload of a task."""

    files: tuple[str, ...]
    number: int
    apart: int
    hop: int
    neighbours: Neighbours


class ProposePairs(Stage[Proposing]):
    """Pairs of one order: of segments in two rows each, once as neighbour of either; of diagonals in one."""

    name = "propose-pairs"
    version = 3
    unit = "segments"
    phase = "search"
    takes = {"segments": "segments"}
    grows_with_hours = "larger"
    grows_with_queries = "same"
    tables = {"proposed": Table(PAIRS, key="left", order=("right",), digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Proposing]]:
        """A task per order; each reads all signatures."""
        options, parts = inputs.chain_inputs(DiscoverInputs).options, inputs.parts("segments")
        neighbours = options.neighbours
        files, rows = files_of(parts), sum(part.rows for part in parts)
        for number in range(neighbours.orders if rows else 0):
            payload = Proposing(files, number, options.apart, options.segments.hop, neighbours)
            key_parts = neighbours.model_dump(mode="json", exclude={"orders", "kept", "width", "points"})
            yield inputs.task(*payload[:-1], key_parts, label=f"order {number}", work=rows, payload=payload)

    def run(self, task: Task[Proposing], context: Context) -> TaskOutput:
        """Sort, and compare neighbours."""
        payload = task.payload
        everything = collection(payload.files, context)
        pairs = near(everything.places, payload.number, payload.apart, payload.hop, payload.neighbours)
        if payload.neighbours.by == "segments":
            pairs = both_ways(pairs)
        table = by_slot(pairs, everything)
        return TaskOutput((context.publish(task, "proposed", in_groups(table), PAIRS),), Bucket(table.num_rows))


def in_groups(table: pa.Table) -> Iterator[pa.Table]:
    """PAIRS by row groups of some slots each, so that a bucket reads few others."""
    edges = np.searchsorted(table["slot"].to_numpy(), np.arange(0, SLOTS + 1, SLOTS // _GROUPS))
    for begin, end in pairwise(edges.tolist()):
        yield table.slice(begin, end - begin)


def files_of(parts: Sequence[Part]) -> tuple[str, ...]:
    """Names of files, in an order of their own."""
    return tuple(sorted(part.name for part in parts))


def collection(files: tuple[str, ...], context: Context) -> Collection:
    """All segments of some files, kept for the next task of the process."""
    return context.cached("collection", files, lambda: _read(files, context))


def _read(files: tuple[str, ...], context: Context) -> Collection:
    order: list[tuple[str, str]] = [(name, "ascending") for name in ("doc_id", "channel", "first")]
    table = pa.concat_tables([context.read(name).combine_chunks() for name in files]).sort_by(order)
    ids = table["doc_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    new = (np.diff(ids, prepend=-1) != 0) | (np.diff(table["channel"].to_numpy(), prepend=-1) != 0)
    documents = [(row["doc_id"], row["channel"]) for row in table.filter(new).select(["doc_id", "channel"]).to_pylist()]
    slots = np.array([slot_of(doc_id) for doc_id, _ in documents], np.int32)
    packed = np.frombuffer(table["signature"].combine_chunks().buffers()[2], np.uint8).reshape(table.num_rows, -1)
    recording = table["recording"].combine_chunks().dictionary_encode().indices.to_numpy()
    first, origin = (table[name].to_numpy() for name in ("first", "origin"))
    places = Places.of(np.cumsum(new, dtype=np.int32) - 1, first, packed, recording, origin)
    return Collection(documents, slots, places)


def by_slot(pairs: Pairs, everything: Collection) -> pa.Table:
    """PAIRS, ascending."""
    slot = everything.slots[everything.places.document[pairs.left]]
    order = np.lexsort((pairs.right, pairs.left, slot))
    return pa.table([slot[order], *pairs.take(order)], schema=PAIRS)


class Selecting(NamedTuple):
    """The payload of a task."""

    segments: tuple[str, ...]
    files: tuple[str, ...]
    hop: int
    neighbours: Neighbours


class SelectPairs(BucketStage[Selecting]):
    """The pairs that are aligned, the lesser segment first."""

    name = "select-pairs"
    version = 2
    unit = "pairs"
    phase = "search"
    takes = {"segments": "segments", "proposed": "proposed"}
    tables = {"selected": Table(PAIRS, key="left", order=("right",), digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Selecting]]:
        """A task per bucket of documents."""
        chain_inputs, parts = inputs.chain_inputs(DiscoverInputs), inputs.parts("proposed")
        buckets = inputs.config.reduce.buckets_for(0)
        segments, files, rows = files_of(inputs.parts("segments")), files_of(parts), sum(part.rows for part in parts)
        options = chain_inputs.options
        payload = Selecting(segments, files, options.segments.hop, options.neighbours)
        used = options.neighbours.model_dump(mode="json", include={"by", "kept", "width", "window", "points"})
        for bucket in range(buckets if rows else 0):
            key_parts = segments, files, payload.hop, used, bucket, buckets
            yield self.numbered(bucket, buckets, inputs, *key_parts, work=rows / buckets, payload=payload)

    def run(self, task: Task[Selecting], context: Context) -> TaskOutput:
        """Choose."""
        payload = task.payload
        everything = collection(payload.segments, context)
        pairs = unique(pairs_in(payload.files, task.slots, context))
        if payload.neighbours.by == "diagonals":
            chosen = lines(everything.places, pairs, payload.hop, payload.neighbours)
        else:
            chosen = unique(ordered(most_alike(pairs, payload.neighbours.kept)))
        table = by_slot(chosen, everything)
        return TaskOutput((context.publish(task, "selected", in_groups(table), PAIRS),), Bucket(table.num_rows))


def pairs_in(files: tuple[str, ...], slots: range, context: Context) -> Pairs:
    """Pairs of some slots, of all files."""
    tables = [context.in_slots(name, slots) for name in files]
    return joined([Pairs(*(table[column].to_numpy() for column in Pairs._fields)) for table in tables])


#: Two stretches of frames, the first in the lesser document, whose slot it is, and their score in units of the distance.
MATCHES = columns(
    "slot int32, doc_id string, channel int32, first int32, stop int32, other_doc_id string, "
    "other_channel int32, other_first int32, other_stop int32, score int64"
)


class Aligning(NamedTuple):
    """The payload of a task."""

    store: tuple[str, str]
    segments: tuple[str, ...]
    files: tuple[str, ...]
    search: Search
    frames: int
    matching: Matching


class AlignPairs(BucketStage[Aligning]):
    """Matches of the documents of a bucket with later ones."""

    name = "align-pairs"
    version = 3
    unit = "pairs"
    phase = "search"
    takes = {"segments": "segments", "selected": "selected"}
    tables = {
        "matches": Table(
            MATCHES,
            key="doc_id",
            order=("channel", "first", "stop", "other_doc_id", "other_channel", "other_first", "other_stop"),
        )
    }

    def plan(self, inputs: Inputs) -> Iterator[Task[Aligning]]:
        """A task per bucket of documents."""
        chain_inputs, parts = inputs.chain_inputs(DiscoverInputs), inputs.parts("selected")
        buckets = inputs.config.reduce.buckets_for(0)
        options, search = chain_inputs.options, inputs.config.search
        segments, files, rows = files_of(inputs.parts("segments")), files_of(parts), sum(part.rows for part in parts)
        payload = Aligning(chain_inputs.store.state, segments, files, search, options.segments.frames, options.matching)
        for bucket in range(buckets if rows else 0):
            key_parts = (
                segments,
                files,
                search.matters(),
                payload.frames,
                options.matching.matters(),
                bucket,
                buckets,
            )
            yield self.numbered(bucket, buckets, inputs, *key_parts, work=rows / buckets, payload=payload)

    def warm(self, task: Task[Aligning], context: Context) -> None:
        """Load the compiled kernels."""
        create(task.payload.search).warm()

    def run(self, task: Task[Aligning], context: Context) -> TaskOutput:
        """Align the pairs, the later documents shard by shard."""
        payload = task.payload
        everything = collection(payload.segments, context)
        pairs = unique(pairs_in(payload.files, task.slots, context))
        places, documents = everything.places, everything.documents
        wanted: dict[Key, dict[Key, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
        for left, right in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True):
            wanted[documents[places.document[right]]][documents[places.document[left]]].append((left, right))
        store = Store.at(*payload.store, storage=context.storage)
        unit = unit_of(payload.search)
        lefts: dict[Key, Stretches] = {}
        keys = {key for others in wanted.values() for key in others}
        for shard in store.manifest.shards:
            held = stretches(store, shard.name, payload.search, keys, "query")
            lefts.update((key, stretch) for key, stretch, _ in held)
        rows: list[tuple[object, ...]] = []
        done = 0
        for shard in store.manifest.shards:
            for key, right, distance in stretches(store, shard.name, payload.search, wanted.keys()):
                for key_left, segments in wanted[key].items():
                    left, shift = lefts[key_left], places.shift(*segments[0])
                    matches = [
                        match(left, right, shift, (a, b), payload.frames, distance, unit, payload.matching)
                        for a, b in ((int(places.first[a]), int(places.first[b])) for a, b in segments)
                    ]
                    rows += (_row(key_left, key, item) for item in best([item for item in matches if item is not None]))
                    done += len(segments)
                    context.report(done / max(1, len(pairs.left)))
        table = pa.table(
            [list(column) for column in zip(*sorted(rows), strict=True)] or [[]] * len(MATCHES), schema=MATCHES
        )
        return TaskOutput((context.publish(task, "matches", [table], MATCHES),), Bucket(table.num_rows))


def _row(key_left: Key, key: Key, item: Match) -> tuple[object, ...]:
    return slot_of(key_left[0]), *key_left, *item.left, *key, *item.right, item.score
