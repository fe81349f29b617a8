"""Stages of the chain discover that find pairs of similar segments, and align them.

- cut-segments: signatures of the segments of a shard.
- propose-pairs: pairs of segments that are near each other in a sorted order, a task per order.
- search-segments: pairs of segments by searching those of a shard in another.
- select-pairs: the pairs to align, by bucket of documents.
- align-pairs: matches of the pairs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.chains.discover.inputs import DiscoverInputs, stretches, unit_of
from swsdist.config.search import Search
from swsdist.core.arrays import Ints
from swsdist.core.fingerprint import SLOTS, fingerprint, slot_of
from swsdist.core.types import columns
from swsdist.discovery.neighbours import (
    Match,
    Matching,
    Neighbours,
    Pairs,
    Places,
    Segments,
    Stretches,
    best,
    both_ways,
    directions,
    joined,
    lines,
    match,
    most_alike,
    near,
    ordered,
    signatures,
    starts,
    unique,
)
from swsdist.methods.dtw.search import Matches, search
from swsdist.methods.dtw.shard import Documents, engine_settings
from swsdist.methods.method import create, demand_readable
from swsdist.methods.query.example import Example
from swsdist.pipeline.chain import Context, Inputs, Stage, Table
from swsdist.pipeline.task import Part, Task, TaskOutput
from swsdist.stages.buckets import Bucket, BucketStage
from swsdist.store.reading import Store
from swsdist.store.same_sound import WHEN, Key, times

#: Row groups of a file of pairs.
_GROUPS = 64

#: Pairs of segments, by number in the order of documents and first frames; the slot is that of the left one's document.
PAIRS = columns("slot int32, left int32, right int32, unlike int32")


class Collection(NamedTuple):
    """All segments, and their documents, in order; `slots` is int32 (documents,), of the documents' names."""

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
    """Names of files, sorted."""
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
            key_parts = segments, files, search.matters(), payload.frames, options.matching.matters(), bucket, buckets
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


#: Segments: their documents, when these are (`swsdist.store.same_sound.times`), first frames and signatures.
SEGMENTS = columns("doc_id string, channel int32, recording string, origin int32, first int32, signature binary")


class Cutting(NamedTuple):
    """The payload of a task; copies of the shard are left out."""

    store: tuple[str, str]
    shard: str
    copies: tuple[Key, ...]
    search: Search
    segments: Segments


class CutSegments(Stage[Cutting]):
    """Signatures of the segments of a shard."""

    name = "cut-segments"
    version = 2
    unit = "s"
    phase = "search"
    takes = {"shards": "features"}
    grows_with_hours = "more"
    grows_with_queries = "same"
    tables = {"segments": Table(SEGMENTS, key="doc_id", order=("channel", "first"), digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Cutting]]:
        """A task per shard."""
        chain_inputs = inputs.chain_inputs(DiscoverInputs)
        store, search, segments = chain_inputs.store.open(), inputs.config.search, chain_inputs.options.segments
        demand_readable(search, store)
        copies = chain_inputs.copies
        for unit in create(search).plan(store):
            (name,) = unit.shards
            here = tuple(sorted(store.live(name) & copies.keys()))
            key_parts = search.matters(), segments.matters(), fingerprint(unit.matters), here
            label = f"{unit.documents - len(here)} documents"
            payload = Cutting(chain_inputs.store.state, name, here, search, segments)
            yield inputs.task(*key_parts, label=label, work=unit.frames * store.manifest.shift, payload=payload)

    def run(self, task: Task[Cutting], context: Context) -> TaskOutput:
        """Cut the documents, a row group each."""
        payload, rows = task.payload, 0
        store = Store.at(*payload.store, storage=context.storage)
        time = times(store.documents(payload.shard, list(WHEN)), store.manifest.shift)
        keys = time.keys() - set(payload.copies)

        def tables() -> Iterator[pa.Table]:
            nonlocal rows
            for (doc_id, channel), document, distance in stretches(store, payload.shard, payload.search, keys):
                shape = distance.columns, payload.segments
                signs = context.cached("directions", shape, partial(directions, *shape))
                first = starts(document.spoken, payload.segments)
                bits = signatures(document.frames, first, signs, payload.segments)
                rows += len(first)
                same = [[value] * len(first) for value in (doc_id, channel, *time[doc_id, channel])]
                yield pa.table([*same, first, [row.tobytes() for row in bits]], schema=SEGMENTS)

        return TaskOutput((context.publish(task, "segments", tables(), SEGMENTS),), Bucket(rows))


class Searching(NamedTuple):
    """The payload of a task."""

    store: tuple[str, str]
    files: tuple[str, ...]
    searched: str
    shard: str
    search: Search
    segments: Segments
    apart: int
    neighbours: Neighbours


class SearchSegments(Stage[Searching]):
    """Pairs of the segments of a shard with those nearest to their hits in another, or the same."""

    name = "search-segments"
    version = 2
    unit = "cells"
    phase = "search"
    takes = {"segments": "segments"}
    grows_with_hours = "more"
    grows_with_queries = "same"
    tables = {"proposed": Table(PAIRS, key="left", order=("right",), digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Searching]]:
        """A task per shard whose segments are searched and shard in which they are."""
        chain_inputs, settings = inputs.chain_inputs(DiscoverInputs), inputs.config.search
        options, parts = chain_inputs.options, inputs.parts("segments")
        files, neighbours = files_of(parts), options.neighbours
        units = list(create(settings).plan(chain_inputs.store.open())) if sum(part.rows for part in parts) else []
        common = files, settings.matters(), options.segments.matters(), options.apart, neighbours.every, neighbours.kept
        for searched in units:
            for unit in units:
                (of_segments,), (of_documents,) = searched.shards, unit.shards
                payload = Searching(
                    *(chain_inputs.store.state, files, of_segments, of_documents),
                    *(settings, options.segments, options.apart, neighbours),
                )
                hop = options.segments.hop * neighbours.every
                work = searched.frames * options.segments.frames // hop * unit.frames
                key_parts = fingerprint(searched.matters), fingerprint(unit.matters)
                yield inputs.task(
                    *common, *key_parts, label=f"{of_segments} in {of_documents}", work=work, payload=payload
                )

    def warm(self, task: Task[Searching], context: Context) -> None:
        """Load the compiled kernels."""
        create(task.payload.search).warm()

    def run(self, task: Task[Searching], context: Context) -> TaskOutput:
        """Search, and name the segments of the best hits of each segment."""
        payload = task.payload
        store = Store.at(*payload.store, storage=context.storage)
        everything = collection(payload.files, context)
        number = {key: k for k, key in enumerate(everything.documents)}
        searched, examples = _searched(store, everything.places, number, payload)
        documents = Documents(store, [payload.shard], payload.search)
        window = max(1, payload.segments.frames // 2)
        # Of a segment's own document as many hits may overlap it; a path takes at most twice its frames.
        most = payload.neighbours.kept + 2 * (payload.apart + payload.segments.frames) // (window + 1) + 1
        settings = engine_settings(payload.search, documents.distance, store.manifest.shift)._replace(window=window)
        limits = np.full(documents.table.num_rows, most, np.int64)
        matches = search(examples, documents.stream(), limits, settings)
        keys = zip(documents.table["doc_id"].to_pylist(), documents.table["channel"].to_pylist(), strict=True)
        names = np.array([number.get(key, -1) for key in keys], np.int64)
        pairs = pairs_of(matches, searched, names, everything, payload.segments.frames, payload.apart)
        table = by_slot(most_alike(pairs, payload.neighbours.kept), everything)
        return TaskOutput(
            (context.publish(task, "proposed", in_groups(table), PAIRS),),
            Bucket(table.num_rows),
            cells=len(examples) * payload.segments.frames * documents.searched,
        )


def _searched(
    store: Store, places: Places, number: dict[Key, int], payload: Searching
) -> tuple[NDArray[np.int32], list[Example]]:
    """Numbers of the segments of a shard that are searched, and their frames."""
    segments = payload.segments
    chosen = places.first // segments.hop % payload.neighbours.every == 0
    numbers: list[int] = []
    examples: list[Example] = []
    for key, document, _ in stretches(store, payload.searched, payload.search, number.keys(), "query"):
        begin, end = np.searchsorted(places.document, (number[key], number[key] + 1))
        for segment in (begin + np.flatnonzero(chosen[begin:end])).tolist():
            first = int(places.first[segment])
            examples.append(Example("", len(numbers), document.frames[first : first + segments.frames]))
            numbers.append(segment)
    return np.array(numbers, np.int32), examples


def pairs_of(
    matches: Matches,
    searched: NDArray[np.int32],
    documents: Ints,
    everything: Collection,
    frames: int,
    apart: int,
) -> Pairs:
    """Pairs of searched segments, first, and those whose middles are nearest to the middles of hits, with their costs.

    A hit without a segment half a segment from it is not in speech; one too near to the searched segment overlaps it.

    Args:
        matches: hits.
        searched: int32 (examples,), numbers of segments.
        documents: int64 (documents,), numbers in the collection of the documents of matches, -1: not there.
        everything: all segments.
        frames: of a segment.
        apart: least frames between the first frames of two segments of a document.
    """
    places = everything.places
    at = places.document.astype(np.int64) << 32 | places.first
    first = matches.end_frame + 1 - (matches.frames + frames) // 2
    place = (documents[matches.document] << 32) + first
    after = np.searchsorted(at, place)
    beside = [np.clip(after - 1, 0, None), np.clip(after, None, len(at) - 1)]
    distance = [np.abs(at[segment] - place) for segment in beside]
    left, right = searched[matches.query], np.where(distance[0] <= distance[1], *beside).astype(np.int32)
    good = np.minimum(*distance) <= frames // 2
    good &= places.apart(left, right, apart)
    return unique(Pairs(left, right, matches.cost.astype(np.int32)).take(good))
