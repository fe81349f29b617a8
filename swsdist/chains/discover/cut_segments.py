"""The stage cut-segments: segments of documents and their signatures, a task per shard."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from swsdist.chains.discover.frames import stretches
from swsdist.chains.discover.inputs import DiscoverInputs
from swsdist.config.search import Search
from swsdist.core.fingerprint import fingerprint
from swsdist.discovery.search.segments import Segments, directions, signatures, starts
from swsdist.methods.create import create, demand_readable
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.task_results import Bucket
from swsdist.store.reading import Store
from swsdist.store.same_sound import WHEN, Key, times

#: Segments: their documents, when these are (`swsdist.store.same_sound.times`), first frames and signatures.
SEGMENTS = pa.schema(
    [
        pa.field("doc_id", pa.string(), False),
        pa.field("channel", pa.int32(), False),
        pa.field("recording", pa.string(), False),
        pa.field("origin", pa.int32(), False),
        pa.field("first", pa.int32(), False),
        pa.field("signature", pa.binary(), False),
    ]
)


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
