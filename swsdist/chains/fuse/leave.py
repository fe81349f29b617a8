"""leave takes away what overlaps a better detection of another query, one bucket of queries at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.partition import SLOTS
from swsdist.core.types import DETECTIONS
from swsdist.fusion.parts import keys_of
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Done, Task
from swsdist.score import score_limits
from swsdist.stages.told import Bucket
from swsdist.store import parquet


class Leave(Stage):
    """A task a bucket of queries: its detections without those that go."""

    name = "leave"
    version = 1
    unit = "detections"
    phase = "score"
    takes = {"scored": "scored", "gone": "gone"}
    tables = {"scored": Table(DETECTIONS)}

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """Each reads its own rows of every file of what goes."""
        gone = [part.name for part in inputs.parts("gone") if part.rows]
        for receipt, told in inputs.told("scored", Bucket):
            (part,) = receipt.outputs
            yield inputs.task(
                part.name,
                gone,
                label=f"bucket {told.bucket}",
                work=told.rows,
                payload={"scored": part.name, "gone": gone, "bucket": told.bucket, "slots": part.slots},
            )

    def run(self, task: Task, context: Context) -> Done:
        """All else stays as it is."""
        payload = task.payload
        table = context.read(payload["scored"])
        low, high = payload["slots"]
        gone: set[tuple[object, ...]] = set()
        for name in payload["gone"]:
            rows = parquet.in_slots(*context.place(name), range(low, min(high, SLOTS - 1) + 1))
            gone.update(keys_of(rows))
        stays = [key not in gone for key in keys_of(table)]
        table = table.filter(pa.array(stays, pa.bool_()))
        output = context.publish(task, "scored", [table], DETECTIONS, (low, high))
        limits = score_limits(pc.drop_null(table["score"]).to_numpy())
        return Done((output,), Bucket(payload["bucket"], table.num_rows, *limits))
