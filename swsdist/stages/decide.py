"""decide makes final scores, and YES or NO, one bucket of queries at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from swsdist.calibrate.procedure import Procedure, decide, keep_order
from swsdist.config import Config
from swsdist.core.types import DETECTIONS
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Table
from swsdist.pipeline.task import Task, TaskOutput, Values
from swsdist.stages.buckets import BucketStage
from swsdist.stages.describe import query_covariates, read_covariates


class Deciding(NamedTuple):
    """The payload of a task."""

    detections: str
    calibration: str | None
    covariates: Values | None


class Decide(BucketStage[Deciding]):
    """Decisions are null if nothing decides. With fitted steps, this stage gives scores their final values."""

    name = "decide"
    version = 1
    phase = "score"
    takes = {"detections": "normalised"}
    may_take = {"calibration": "calibration", "statistics": "statistics", "described": "described"}
    grows_with_hours = "kept"
    tables = {"scored": Table(DETECTIONS)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Deciding]]:
        """A task per bucket."""
        files, fitted = [part.name for part in inputs.parts("calibration")], bool(inputs.config.calibrate.fitted)
        for part in inputs.parts("detections"):
            covariates = query_covariates(inputs, part.slots) if fitted else None
            payload = Deciding(part.name, files[0] if files else None, covariates)
            key_parts = files, part.name, fitted, *([covariates] if covariates else [])
            yield self.following(part, inputs, *key_parts, payload=payload)

    def keeps_order(self, config: Config) -> bool:
        """Whether its steps depend on the score alone."""
        return keep_order(config.calibrate, config.calibrate.fitted)

    def run(self, task: Task[Deciding], context: Context) -> TaskOutput:
        """Compare scores with the threshold."""
        payload = task.payload
        result = context.read(payload.detections)
        if payload.calibration is None:
            result = decide(result, None)
        else:
            fitted = Procedure.from_run(context.read_bytes(payload.calibration))
            result = replace(fitted, covariates=read_covariates(context, payload.covariates)).apply(result)
        return self.done(task, context, result.select(DETECTIONS.names))  # joined lists have more columns
