"""compact sorts the probabilities of one bucket of queries, so that any number of points can be scored from them."""

from __future__ import annotations

from collections.abc import Iterator

from swsdist.calibrate.points.rescoring import RANKS, TERMS_OF, compacted
from swsdist.calibrate.procedure import Procedure
from swsdist.core.types import TRIALS
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Done, Task
from swsdist.stages.told import Bucket


class Compact(Stage):
    """See `swsdist.calibrate.points.rescoring`."""

    name = "compact"
    version = 1
    unit = "detections"
    phase = "score"
    takes = {"models": "models"}
    may_take = {"trials": "trials"}
    tables = {
        "terms": Table(TERMS_OF, digested=False),
        "ranks": Table(RANKS, None, digested=False),
        "contested": Table(TRIALS, digested=False),
    }

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """A task a bucket."""
        models = inputs.parts("models")
        if not models:
            return  # what was to make them failed, and is told
        options = inputs.config.options
        rules = {"tolerance": options["tolerance"], "conventions": options["conventions"]} if models else {}
        for receipt, part in zip(inputs.receipts("trials"), inputs.parts("trials"), strict=True):
            yield inputs.task(
                models[0].sha256,
                part.sha256,
                rules,
                label=receipt.label,
                work=part.rows,
                payload={**rules, "models": models[0].name, "trials": part.name},
                slots=range(part.slots[0], part.slots[1] + 1),
            )

    def run(self, task: Task, context: Context) -> Done:
        """Make probabilities of the scores, and sort them."""
        payload = task.payload
        models = Procedure.from_run(context.read_bytes(payload["models"]))
        aligned = models.scores(context.read(payload["trials"]))
        rules = {"tolerance": payload["tolerance"], "conventions": payload["conventions"]}
        found = compacted(aligned, **rules, probabilities=payload["tolerance"] is not None)
        outputs = (
            context.publish(task, "terms", [found.terms], TERMS_OF),
            context.publish(task, "ranks", [found.ranks], RANKS),
            context.publish(task, "contested", [found.contested], TRIALS),
        )
        return Done(outputs, Bucket(found.terms.num_rows))
