"""measure counts, for one bucket of queries, what the measures need."""

from __future__ import annotations

from collections.abc import Iterator

from swsdist.corpora.places import Places, stored
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Done, Task
from swsdist.score import PER_TERM, per_term
from swsdist.score.measures.protocol import OperatingPoint
from swsdist.score.parts.evaluating import identities, measure_parts
from swsdist.stages.documents import population_at
from swsdist.stages.inputs.known import CorpusInputs
from swsdist.stages.point import point_of, population_for
from swsdist.stages.told import Bucket, Counted


class Measure(Stage):
    """Counts that add, so that the driver merges them as streams and holds no list."""

    name = "measure"
    version = 1
    unit = "trials"
    phase = "score"
    takes = {"trials": "trials"}
    with_hours = "kept"
    tables = {"parts": Table(None, digested=False), "terms": Table(PER_TERM)}

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """A task a bucket that has trials."""
        lists = inputs.told("trials", Bucket)
        if not lists:
            return
        point, measures = point_of(inputs).as_json(), identities()
        # Lists of document trials name documents, others recordings.
        by_recording = inputs.own(CorpusInputs).corpus.placed and point["trials_are"] != "document"
        population = population_for(inputs) if by_recording else None
        for (_, told), part in zip(lists, inputs.parts("trials"), strict=True):
            yield inputs.task(
                measures,
                point,
                part.name,
                *([population] if population else []),
                label=f"bucket {told.bucket}",
                work=told.rows,
                payload={"trials": part.name, "point": point, "slots": part.slots, "population": population},
            )

    def run(self, task: Task, context: Context) -> Done:
        """Count."""
        point = OperatingPoint(**task.payload["point"])
        trials, slots = context.read(task.payload["trials"]), tuple(task.payload["slots"])
        population, places = task.payload["population"], None
        if population is not None:
            places = Places(stored(population_at(population, context)))
        outputs = [
            context.publish(task, "parts", [table], table.schema, slots, suffix=f"-{name}.parquet")
            for name, table in measure_parts(trials, point, places=places).items()
        ]
        names = list(measure_parts(trials.slice(0, 0), point))
        terms = per_term(trials, trials=point.trials, beta=point.beta)
        outputs.append(context.publish(task, "terms", [terms], PER_TERM, slots))
        return Done(tuple(outputs), Counted(names))
