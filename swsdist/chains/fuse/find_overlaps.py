"""The stage find-overlaps: detections that overlap one of another query with a higher fused score, by bucket of documents.

With drop-overlaps, decisions about a query depend on the other queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from swsdist.chains.fuse.inputs import FuseInputs
from swsdist.chains.fuse.merge_lists import of_slots
from swsdist.core.partition import slot_of
from swsdist.core.types import DETECTIONS
from swsdist.fusion.joining import best_of_overlaps
from swsdist.fusion.parts import KEY
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.buckets import BucketStage
from swsdist.stages.task_results import Bucket

#: Detections to drop, by the slot of their query.
GONE = pa.schema([pa.field("slot", pa.int32(), False), *(DETECTIONS.field(name) for name in KEY)])


class Parting(NamedTuple):
    """The payload of a task."""

    files: list[str]
    overlap: float


class FindOverlaps(BucketStage[Parting]):
    """One task per bucket of documents: the detections to drop."""

    name = "find-overlaps"
    version = 1
    phase = "score"
    takes = {"scored": "scored"}
    tables = {"gone": Table(GONE, key="doc_id", order=KEY, digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Parting]]:
        """Each task reads its rows of every file."""
        files = inputs.parts("scored")
        overlap = inputs.chain_inputs(FuseInputs).options.overlap
        names, rows = [part.name for part in files], sum(part.rows for part in files)
        buckets = inputs.config.reduce.buckets_for(rows)
        for bucket in range(buckets) if rows else ():
            payload, work = Parting(names, overlap), rows / buckets
            yield self.numbered(bucket, buckets, inputs, names, overlap, bucket, buckets, work=work, payload=payload)

    def run(self, task: Task[Parting], context: Context) -> TaskOutput:
        """Suppress overlaps, best first, across queries."""
        payload = task.payload
        tables = [of_slots(context.read(name), "doc_id", task.slots) for name in payload.files]
        table = pa.concat_tables([DETECTIONS.empty_table(), *tables])
        gone = table.filter(pa.array(~best_of_overlaps(table, payload.overlap, between_queries=True))).select(KEY)
        slots = pa.array([slot_of(query_id) for query_id in gone["query_id"].to_pylist()], pa.int32())
        gone = gone.add_column(0, GONE.field("slot"), slots).sort_by(
            [("slot", "ascending"), *((k, "ascending") for k in KEY)]
        )
        return TaskOutput((context.publish(task, "gone", [gone], GONE),), Bucket(gone.num_rows))
