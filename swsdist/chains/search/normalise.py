"""normalise: scores of a query made comparable with those of others."""

from __future__ import annotations

from collections.abc import Iterator

from swsdist.calibrate.qnorm import normalise
from swsdist.chains.search.inputs import SearchInputs
from swsdist.chains.search.told import Bucket
from swsdist.config.model import Calibrate
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Done, Task
from swsdist.score import score_limits
from swsdist.types import DETECTIONS


def _step(settings: Calibrate) -> str:
    """Probabilities are made of q-normed scores, later: that takes a logistic, which is fitted on aligned lists."""
    return "q-norm" if settings.probabilities else settings.normalise


class Normalise(Stage):
    """Needs no references: it is a part of searching."""

    name = "normalise"
    version = 1
    unit = "detections"
    tables = {"normalised": Table(DETECTIONS)}

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """A task a bucket."""
        how, unit = _step(inputs.config.calibrate), inputs.own(SearchInputs).unit(inputs.config)
        for receipt, told in inputs.told("detections", Bucket):
            (detections,), (statistics,) = receipt.parts("detections"), receipt.parts("statistics")
            yield inputs.task(
                how,
                receipt.fingerprint,
                label=f"bucket {told.bucket}",
                work=told.rows,
                payload={
                    "how": how,
                    "unit": unit,
                    "bucket": told.bucket,
                    "detections": detections.name,
                    "statistics": statistics.name,
                    "slots": detections.slots,
                },
            )

    def run(self, task: Task, context: Context) -> Done:
        """Scores normalised, all else as it was."""
        detections = context.read(task.payload["detections"])
        if task.payload["how"] == "q-norm":
            detections = normalise(detections, context.read(task.payload["statistics"]), task.payload["unit"])
        output = context.publish(task, "normalised", [detections], DETECTIONS, tuple(task.payload["slots"]))
        limits = score_limits(detections["score"].to_numpy())
        return Done((output,), Bucket(task.payload["bucket"], detections.num_rows, *limits))
