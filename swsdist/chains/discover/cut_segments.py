"""The stage cut-segments: segments of documents and their signatures, a task per shard."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.chains.discover.inputs import DiscoverInputs, stretches
from swsdist.chains.discover.propose_pairs import PAIRS, Collection, by_slot, collection, files_of, in_groups
from swsdist.config.search import Search
from swsdist.core.fingerprint import fingerprint
from swsdist.core.types import columns
from swsdist.discovery.neighbours import (
    Neighbours,
    Pairs,
    Places,
    Segments,
    directions,
    most_alike,
    signatures,
    starts,
    unique,
)
from swsdist.methods.dtw.search import Matches, search
from swsdist.methods.dtw.shard import Documents, engine_settings
from swsdist.methods.method import create, demand_readable
from swsdist.methods.query.example import Example
from swsdist.pipeline.chain import Context, Stage, Table
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.buckets import Bucket
from swsdist.store.reading import Store
from swsdist.store.same_sound import WHEN, Key, times

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
                    chain_inputs.store.state,
                    files,
                    of_segments,
                    of_documents,
                    settings,
                    options.segments,
                    options.apart,
                    neighbours,
                )
                work = (
                    searched.frames * options.segments.frames // (options.segments.hop * neighbours.every) * unit.frames
                )
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
    documents: NDArray[np.int64],
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
