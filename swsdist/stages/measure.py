"""measure makes the counts behind the measures, for one bucket of queries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from swsdist.corpora.places import Places, stored
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Table
from swsdist.pipeline.task import Task, TaskOutput, Values
from swsdist.score import PER_TERM, per_term
from swsdist.score.measures.protocol import OperatingPoint
from swsdist.score.parts.evaluating import identities, measure_parts, measures_of
from swsdist.stages.buckets import BucketStage
from swsdist.stages.document_lookup import population_at
from swsdist.stages.inputs.search_inputs import CorpusInputs
from swsdist.stages.operating_point import point_of, population_for
from swsdist.stages.buckets import Counted


class Measuring(NamedTuple):
    """The payload of a task."""

    trials: str
    point: OperatingPoint
    population: Values | None


class Measure(BucketStage[Measuring]):
    """Counts add, so they are merged as streams, and nobody holds the list."""

    name = "measure"
    version = 1
    needs_run = "references"
    unit = "trials"
    phase = "score"
    takes = {"trials": "trials"}
    grows_with_hours = "kept"
    tables = {"parts": Table(None, digested=False), "terms": Table(PER_TERM)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Measuring]]:
        """A task per bucket with trials."""
        parts = inputs.parts("trials")
        if not parts:
            return
        point = point_of(inputs)
        measures = identities(measures_of(point))
        # Lists of document trials name documents, others recordings.
        by_recording = inputs.chain_inputs(CorpusInputs).corpus.placed and point.trials_are != "document"
        population = population_for(inputs) if by_recording else None
        for part in parts:
            key_parts = measures, point.as_json(), part.name, *([population] if population else [])
            yield self.following(part, inputs, *key_parts, payload=Measuring(part.name, point, population))

    def run(self, task: Task[Measuring], context: Context) -> TaskOutput:
        """Count."""
        payload = task.payload
        trials, point, places = context.read(payload.trials), payload.point, None
        if payload.population is not None:
            places = Places(stored(population_at(payload.population, context)))
        outputs = [
            context.publish(task, "parts", [table], table.schema, suffix=f"-{name}.parquet")
            for name, table in measure_parts(trials, point, places=places).items()
        ]
        names = list(measure_parts(trials.slice(0, 0), point))
        terms = per_term(trials, trials=point.trials, beta=point.beta)
        outputs.append(context.publish(task, "terms", [terms], PER_TERM))
        return TaskOutput(tuple(outputs), Counted(names))
