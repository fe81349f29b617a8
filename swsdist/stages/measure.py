"""measure makes the counts behind the measures, for one bucket of queries.

Columns of a store's documents that tasks use besides frames, read once per process and kept for later tasks.

A bucket of queries may have candidates in any document, so each task would otherwise read the complete table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.corpora.places import Places, stored
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Table
from swsdist.pipeline.task import Task, TaskOutput, Values
from swsdist.reduce.spans import WHERE
from swsdist.reduce.speakers import WHO, Speakers
from swsdist.score import PER_TERM, per_term
from swsdist.score.measures.protocol import OperatingPoint
from swsdist.score.parts.events import identities, measure_parts, measures_of
from swsdist.stages.buckets import BucketStage, Counted
from swsdist.stages.inputs.corpus import COLUMNS, POPULATION
from swsdist.stages.inputs.search_inputs import CorpusInputs
from swsdist.stages.score import point_of, population_for
from swsdist.store.reading import Store


def speakers_of(store: tuple[str, str], context: Context) -> Speakers:
    """Speakers of the documents in a state of a store.

    Args:
        store: its folder and the state's fingerprint.
        context: keeps the result.
    """

    def read() -> Speakers:
        there = Store.at(*store, storage=context.storage)
        return Speakers(there.documents(columns=list(WHO)), there.manifest.tick)

    return context.cached("speakers", store, read)


def places_of(store: tuple[str, str], context: Context) -> pa.Table:
    """Places of the documents of a state of a store: columns WHERE of DOCUMENTS; arguments as for `speakers_of`."""
    return context.cached("places", store, lambda: _documents(store, WHERE, context))


def population_at(population: Values, context: Context) -> pa.Table:
    """The scored population: POPULATION.

    Args:
        population: from `operating_point.population_for`.
        context: keeps the store's part.
    """
    store = population["store"]
    there = context.cached("population", store, lambda: _documents(store, COLUMNS, context))
    read = there.select(COLUMNS).append_column("read", pa.array(np.ones(there.num_rows, bool)))
    return pa.concat_tables([read.cast(POPULATION), pa.Table.from_pylist(population["unread"], POPULATION)])


def _documents(store: tuple[str, str], columns: Iterable[str], context: Context) -> pa.Table:
    return Store.at(*store, storage=context.storage).documents(columns=list(columns))


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
