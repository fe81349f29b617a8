"""measure counts, for one bucket of queries, what the measures need."""

from __future__ import annotations

from collections.abc import Iterator

from swsdist.chains.search.documents import documents_in
from swsdist.chains.search.point import placed_store, point_of
from swsdist.chains.search.told import Bucket, Counted
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Done, Task
from swsdist.score import PER_TERM, per_term
from swsdist.score.measures.protocol import OperatingPoint
from swsdist.score.parts.evaluating import identities, measure_parts


class Measure(Stage):
    """Counts that add, so that the driver merges them as streams and holds no list."""

    name = "measure"
    version = 1
    unit = "trials"
    with_hours = "kept"
    tables = {"parts": Table(None, digested=False), "terms": Table(PER_TERM)}

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """A task a bucket that has trials."""
        lists = inputs.told("trials", Bucket)
        if not lists:
            return
        point, measures = point_of(inputs).as_json(), identities()
        # Lists of document trials name documents, others recordings.
        store = placed_store(inputs) if point["trials_are"] != "document" else []
        for (_, told), part in zip(lists, inputs.parts("trials"), strict=True):
            yield inputs.task(
                measures,
                point,
                part.name,
                *store,
                label=f"bucket {told.bucket}",
                work=told.rows,
                payload={"trials": part.name, "point": point, "slots": part.slots, "store": store},
            )

    def run(self, task: Task, context: Context) -> Done:
        """Count."""
        point = OperatingPoint(**task.payload["point"])
        trials, slots = context.read(task.payload["trials"]), tuple(task.payload["slots"])
        places = documents_in(task.payload["store"], context) if task.payload["store"] else None
        outputs = [
            context.publish(task, "parts", [table], table.schema, slots, suffix=f"-{name}.parquet")
            for name, table in measure_parts(trials, point, places=places).items()
        ]
        names = list(measure_parts(trials.slice(0, 0), point))
        terms = per_term(trials, trials=point.trials, beta=point.beta)
        outputs.append(context.publish(task, "terms", [terms], PER_TERM, slots))
        return Done(tuple(outputs), Counted(names))
