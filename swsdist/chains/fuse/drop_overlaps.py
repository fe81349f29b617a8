"""The stage drop-overlaps: drop detections that overlap a better one of another query, by bucket of queries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from swsdist.core.types import DETECTIONS
from swsdist.fusion.parts import row_keys
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.buckets import BucketStage


class Leaving(NamedTuple):
    """The payload of a task."""

    scored: str
    gone: list[str]


class DropOverlaps(BucketStage[Leaving]):
    """One task per bucket of queries: its detections without the dropped ones."""

    name = "drop-overlaps"
    version = 1
    phase = "score"
    takes = {"scored": "scored", "gone": "gone"}
    tables = {"scored": Table(DETECTIONS)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Leaving]]:
        """Each task reads its rows of every file of dropped detections."""
        gone = [part.name for part in inputs.parts("gone") if part.rows]
        for part in inputs.parts("scored"):
            yield self.following(part, inputs, part.name, gone, payload=Leaving(part.name, gone))

    def run(self, task: Task[Leaving], context: Context) -> TaskOutput:
        """Drop the rows; others stay unchanged."""
        table = context.read(task.payload.scored)
        gone: set[tuple[object, ...]] = set()
        for name in task.payload.gone:
            gone.update(row_keys(context.in_slots(name, task.slots)))
        stays = [key not in gone for key in row_keys(table)]
        return self.done(task, context, table.filter(pa.array(stays, pa.bool_())))
