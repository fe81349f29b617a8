"""What stages share that have a task a bucket of queries."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage
from swsdist.pipeline.task import Done, P, Part, Receipt, Task
from swsdist.score import score_limits
from swsdist.stages.told import Bucket


class BucketStage(Stage[P]):
    """A stage that makes a list of detections of each bucket: the first of its tables."""

    unit = "detections"

    def following(self, receipt: Receipt, inputs: Inputs, *matters: Any, payload: P) -> Task[P]:
        """The task of the bucket that a task of an earlier stage was of; the rest as of `Inputs.task`."""
        (low, high), rows = receipt.outputs[0].slots, receipt.tells(Bucket).rows
        return inputs.task(*matters, label=receipt.label, work=rows, payload=payload, slots=range(low, high + 1))

    def done(self, task: Task[P], context: Context, found: pa.Table, *others: Part) -> Done:
        """The list, what is told of it, and other files."""
        table = next(iter(self.tables))
        output = context.publish(task, table, [found], self.tables[table].schema)
        return Done((output, *others), Bucket(found.num_rows, *score_limits(found["score"])))
