"""Base of stages with a task per bucket."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from swsdist.core.partition import SLOTS, slots_of
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage
from swsdist.pipeline.task import P, Part, Task, TaskOutput
from swsdist.score import score_limits
from swsdist.stages.task_results import Bucket


class BucketStage(Stage[P]):
    """A stage with a task per bucket: of queries, or of another partition of its tables."""

    unit = "detections"

    def numbered(self, bucket: int, inputs: Inputs, *key_parts: Any, work: float, payload: P) -> Task[P]:
        """The task of a bucket by number; other arguments as for `Inputs.task`."""
        slots = slots_of(bucket, inputs.config.reduce.buckets)
        return inputs.task(*key_parts, label=f"bucket {bucket}", work=work, payload=payload, slots=slots)

    def following(self, part: Part, inputs: Inputs, *key_parts: Any, payload: P) -> Task[P]:
        """The task for the bucket of a file; other arguments as for `Inputs.task`."""
        low, high = part.slots
        label = f"bucket {low * inputs.config.reduce.buckets // SLOTS}"
        return inputs.task(*key_parts, label=label, work=part.rows, payload=payload, slots=range(low, high + 1))

    def done(self, task: Task[P], context: Context, result: pa.Table, *others: Part) -> TaskOutput:
        """Output of a bucket: its list of detections as the first table, its summary, and other files."""
        table = next(iter(self.tables))
        output = context.publish(task, table, [result], self.tables[table].schema)
        return TaskOutput((output, *others), Bucket(result.num_rows, *score_limits(result["score"])))
