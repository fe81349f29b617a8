"""decide makes final scores, and YES or NO, one bucket of queries at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from swsdist.calibrate.procedure import Procedure
from swsdist.calibrate.threshold import decide
from swsdist.core.types import DETECTIONS
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Done, Task
from swsdist.score import score_limits
from swsdist.stages.describe import read_sides, sides_of
from swsdist.stages.told import Bucket


class Decide(Stage):
    """Decisions are null where nothing decides. Where steps are fitted, this stage gives scores their final values."""

    name = "decide"
    version = 1
    unit = "detections"
    phase = "score"
    takes = {"detections": "normalised"}
    may_take = {"calibration": "calibration", "statistics": "statistics", "described": "described"}
    with_hours = "kept"
    tables = {"scored": Table(DETECTIONS)}

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """A task a bucket."""
        fitted = [part.name for part in inputs.parts("calibration")]
        for receipt, told in inputs.told("detections", Bucket):
            (part,) = receipt.outputs
            sides = sides_of(inputs, told.bucket) if inputs.config.calibrate.fitted else None
            yield inputs.task(
                fitted,
                part.name,
                bool(inputs.config.calibrate.fitted),
                *([sides] if sides else []),
                label=f"bucket {told.bucket}",
                work=told.rows,
                payload={
                    "detections": part.name,
                    "calibration": fitted[0] if fitted else None,
                    "sides": sides,
                    "bucket": told.bucket,
                    "slots": part.slots,
                },
            )

    def run(self, task: Task, context: Context) -> Done:
        """Compare with the threshold."""
        found = context.read(task.payload["detections"])
        source = task.payload["calibration"]
        if source is None:
            found = decide(found, None)
        else:
            fitted = Procedure.from_run(context.read_bytes(source))
            found = replace(fitted, sides=read_sides(context, task.payload)).apply(found)
        found = found.select(DETECTIONS.names)  # joined lists have more
        output = context.publish(task, "scored", [found], DETECTIONS, tuple(task.payload["slots"]))
        limits = score_limits(found["score"].to_numpy())
        return Done((output,), Bucket(task.payload["bucket"], found.num_rows, *limits))
