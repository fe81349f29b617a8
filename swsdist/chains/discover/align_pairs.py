"""The stage align-pairs: matches around pairs of segments, by bucket of documents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from swsdist.chains.discover.frames import stretches, unit_of
from swsdist.chains.discover.inputs import DiscoverInputs
from swsdist.chains.discover.propose_pairs import collection, files_of
from swsdist.chains.discover.propose_pairs import pairs_in
from swsdist.config.search import Search
from swsdist.core.partition import slot_of
from swsdist.discovery.search.matches import Match, Matching, Stretches, best, match
from swsdist.discovery.search.neighbours import unique
from swsdist.methods.create import create
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.buckets import BucketStage
from swsdist.stages.task_results import Bucket
from swsdist.store.reading import Store
from swsdist.store.same_sound import Key

#: Two stretches of frames, the first in the lesser document, whose slot it is, and their score in units of the distance.
MATCHES = pa.schema(
    [
        pa.field("slot", pa.int32(), False),
        pa.field("doc_id", pa.string(), False),
        pa.field("channel", pa.int32(), False),
        pa.field("first", pa.int32(), False),
        pa.field("stop", pa.int32(), False),
        pa.field("other_doc_id", pa.string(), False),
        pa.field("other_channel", pa.int32(), False),
        pa.field("other_first", pa.int32(), False),
        pa.field("other_stop", pa.int32(), False),
        pa.field("score", pa.int64(), False),
    ]
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
