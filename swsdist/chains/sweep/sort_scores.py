"""The stage sort-scores: sort the probabilities of a bucket of queries, so that many points can be scored from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from swsdist.calibrate.operating_points.rescoring import RANKS, TERMS_OF, compact_list
from swsdist.calibrate.procedure import Procedure
from swsdist.core.types import TRIALS
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Table
from swsdist.pipeline.task import Task, TaskOutput, Values
from swsdist.stages.buckets import BucketStage
from swsdist.stages.task_results import Bucket


class Compacting(NamedTuple):
    """The payload of a task; tolerance and conventions are those of the sweep."""

    models: str
    trials: str
    tolerance: float | None
    conventions: str


class SortScores(BucketStage[Compacting]):
    """See `swsdist.calibrate.operating_points.rescoring`."""

    name = "sort-scores"
    version = 1
    phase = "score"
    takes = {"models": "models"}
    may_take = {"trials": "trials"}
    tables = {
        "terms": Table(TERMS_OF, digested=False),
        "ranks": Table(RANKS, None, digested=False),
        "contested": Table(TRIALS, digested=False),
    }

    def plan(self, inputs: Inputs) -> Iterator[Task[Compacting]]:
        """A task a bucket."""
        models = inputs.parts("models")
        if not models:
            return  # their stage failed
        rules: Values = {name: inputs.config.options[name] for name in ("tolerance", "conventions")}
        for receipt, part in zip(inputs.receipts("trials"), inputs.parts("trials"), strict=True):
            payload = Compacting(models[0].name, part.name, **rules)
            yield self.following(receipt, inputs, models[0].sha256, part.sha256, rules, payload=payload)

    def run(self, task: Task[Compacting], context: Context) -> TaskOutput:
        """Convert scores to probabilities, and sort them."""
        payload, tolerance = task.payload, task.payload.tolerance
        models = Procedure.from_run(context.read_bytes(payload.models))
        aligned = models.scores(context.read(payload.trials))
        results = compact_list(
            aligned, tolerance=tolerance, conventions=payload.conventions, probabilities=tolerance is not None
        )
        outputs = (
            context.publish(task, "terms", [results.terms], TERMS_OF),
            context.publish(task, "ranks", [results.ranks], RANKS),
            context.publish(task, "contested", [results.contested], TRIALS),
        )
        return TaskOutput(outputs, Bucket(results.terms.num_rows))
