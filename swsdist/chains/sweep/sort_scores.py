"""The stage sort-scores: sort the probabilities of a bucket of queries, so that many points can be scored from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from swsdist.calibrate.operating_points.rescoring import RANKS, TERMS_OF, compact_list
from swsdist.calibrate.procedure import Procedure
from swsdist.calibrate.statistics import CandidatePosteriors, from_table, posterior_sums
from swsdist.core.types import TRIALS
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Table
from swsdist.pipeline.task import Task, TaskOutput, Values
from swsdist.stages.buckets import BucketStage
from swsdist.stages.task_results import Bucket


class Compacting(NamedTuple):
    """The payload of a task.

    Attributes:
        models, trials: files.
        sums: files of statistics with S(w); None: it is of the list.
        tolerance, conventions: of the sweep.
    """

    models: str
    trials: str
    sums: list[str] | None
    tolerance: float | None
    conventions: str


class SortScores(BucketStage[Compacting]):
    """See `swsdist.calibrate.operating_points.rescoring`."""

    name = "sort-scores"
    version = 1
    phase = "score"
    takes = {"models": "models"}
    may_take = {"trials": "trials", "statistics": "statistics"}
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
        statistics = inputs.parts("statistics") if inputs.config.options.get("sums") else None
        for part in inputs.parts("trials"):
            # A bucket has no statistics if there are references of its queries only.
            beside = None if statistics is None else [item for item in statistics if item.slots == part.slots]
            sums = None if beside is None else [item.name for item in beside]
            key_parts = [] if beside is None else [[item.sha256 for item in beside]]
            payload = Compacting(models[0].name, part.name, sums, **rules)
            yield self.following(part, inputs, models[0].sha256, part.sha256, rules, *key_parts, payload=payload)

    def run(self, task: Task[Compacting], context: Context) -> TaskOutput:
        """Convert scores to probabilities, and sort them."""
        payload, tolerance = task.payload, task.payload.tolerance
        models = Procedure.from_run(context.read_bytes(payload.models))
        aligned = models.scores(context.read(payload.trials))
        results = compact_list(
            aligned,
            tolerance=tolerance,
            conventions=payload.conventions,
            probabilities=tolerance is not None,
            sums=None if payload.sums is None else _sums(payload.sums, context),
        )
        outputs = (
            context.publish(task, "terms", [results.terms], TERMS_OF),
            context.publish(task, "ranks", [results.ranks], RANKS),
            context.publish(task, "contested", [results.contested], TRIALS),
        )
        return TaskOutput(outputs, Bucket(results.terms.num_rows))


def _sums(files: list[str], context: Context) -> dict[str, float]:
    """S(w) of the queries of a bucket, over all candidates."""
    tallies = [from_table(context.read(name)) for name in files]
    name = CandidatePosteriors.name
    return {query: value for item in tallies if name in item for query, value in posterior_sums(item[name]).items()}
