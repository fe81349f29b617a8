"""The stage select-pairs: of each segment's pairs the most alike, by bucket of documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.chains.discover.inputs import DiscoverInputs
from swsdist.chains.discover.propose_pairs import PAIRS, collection, files_of, in_groups
from swsdist.discovery.search.neighbours import Neighbours, Pairs, most_alike, unique
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.buckets import BucketStage
from swsdist.stages.task_results import Bucket
from swsdist.store import parquet


class Selecting(NamedTuple):
    """The payload of a task."""

    segments: tuple[str, ...]
    files: tuple[str, ...]
    neighbours: Neighbours


class SelectPairs(BucketStage[Selecting]):
    """The pairs that are aligned, by the slot of the first document."""

    name = "select-pairs"
    version = 1
    unit = "pairs"
    phase = "search"
    takes = {"segments": "segments", "proposed": "proposed"}
    tables = {"selected": Table(PAIRS, key="left", order=("right",), digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Selecting]]:
        """A task per bucket of documents."""
        chain_inputs, parts = inputs.chain_inputs(DiscoverInputs), inputs.parts("proposed")
        buckets = inputs.config.reduce.buckets
        segments, files, rows = files_of(inputs.parts("segments")), files_of(parts), sum(part.rows for part in parts)
        payload = Selecting(segments, files, chain_inputs.options.neighbours)
        for bucket in range(buckets if rows else 0):
            matters = segments, files, payload.neighbours.kept, bucket, buckets
            yield self.numbered(bucket, inputs, *matters, work=rows / buckets, payload=payload)

    def run(self, task: Task[Selecting], context: Context) -> TaskOutput:
        """Choose."""
        payload = task.payload
        everything = collection(payload.segments, context)
        pairs = unique(pairs_in(payload.files, task.slots, context))
        of = everything.slots[everything.places.document]
        chosen = most_alike(pairs, (of >= task.slots[0]) & (of <= task.slots[-1]), payload.neighbours.kept)
        slot = of[chosen.left]
        order = np.lexsort((chosen.right, chosen.left, slot))
        table = pa.table([slot[order], *(column[order] for column in chosen)], schema=PAIRS)
        return TaskOutput((context.publish(task, "selected", in_groups(table), PAIRS),), Bucket(table.num_rows))


def pairs_in(files: tuple[str, ...], slots: range, context: Context) -> Pairs:
    """Pairs of some slots, of all files."""
    pieces = []
    for name in files:
        table = parquet.in_slots(*context.place(name), slots)
        pieces.append([table[column].to_numpy() for column in Pairs._fields])
    return Pairs(*map(np.concatenate, zip(*pieces, strict=True)))
