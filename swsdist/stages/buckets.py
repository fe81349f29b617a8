"""Base of stages with a task per bucket."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from swsdist.core.fingerprint import SLOTS, slots_of
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage
from swsdist.pipeline.task import P, Part, Task, TaskOutput
from swsdist.score import score_limits
from swsdist.stages.task_results import Bucket


def buckets_of(parts: Iterable[Part], inputs: Inputs) -> int:
    """The number of buckets that files, one each, were made for."""
    widths = (part.slots[1] - part.slots[0] + 1 for part in parts)
    return inputs.config.reduce.buckets or next((SLOTS // width for width in widths), 1)


class BucketStage(Stage[P]):
    """A stage with a task per bucket: of queries, or of another partition of its tables."""

    unit = "detections"
    in_buckets = True

    def numbered(self, bucket: int, buckets: int, inputs: Inputs, *key_parts: Any, work: float, payload: P) -> Task[P]:
        """The task of a bucket by number, of so many; other arguments as for `Inputs.task`."""
        slots = slots_of(bucket, buckets)
        return inputs.task(*key_parts, label=f"bucket {bucket}", work=work, payload=payload, slots=slots)

    def following(self, part: Part, inputs: Inputs, *key_parts: Any, payload: P) -> Task[P]:
        """The task for the bucket of a file; other arguments as for `Inputs.task`."""
        low, high = part.slots
        label = f"bucket {low * buckets_of([part], inputs) // SLOTS}"
        return inputs.task(*key_parts, label=label, work=part.rows, payload=payload, slots=range(low, high + 1))

    def done(self, task: Task[P], context: Context, result: pa.Table, *others: Part) -> TaskOutput:
        """Output of a bucket: its list of detections as the first table, its summary, and other files."""
        table = next(iter(self.tables))
        output = context.publish(task, table, [result], self.tables[table].schema)
        return TaskOutput((output, *others), Bucket(result.num_rows, *score_limits(result["score"])))
