"""score computes the measures of the whole list from the counts of its parts.

Long tables of counts are merged before that, several files into one, in rounds until one is left.

measure makes the counts behind the measures, for one bucket of queries.

Columns of a store's documents that tasks use besides frames, read once per process and kept for later tasks.

A bucket of queries may have candidates in any document, so each task would otherwise read the complete table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.calibrate.procedure import thresholds_for
from swsdist.core.codes import stages as codes
from swsdist.corpora.places import Places, by_document, stored
from swsdist.io.filesystem import identify
from swsdist.io.nist.rttm import read_speech
from swsdist.pipeline.chain import Context, Stage, Table
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.task import Part, Task, TaskOutput, Values
from swsdist.reduce.examples import WHO, Speakers
from swsdist.reduce.spans import WHERE
from swsdist.score.events import curve_of, identities, measure_parts, measures_of, merge, values
from swsdist.score.measures.det import DET, det_of
from swsdist.score.measures.protocol import OperatingPoint, operating_point, protocol_of
from swsdist.score.measures.twv import PER_TERM, per_term
from swsdist.score.trials import check_needs, in_every_document, segments_for
from swsdist.stages.buckets import BucketStage, Counted, Fitted, Measured
from swsdist.stages.inputs.corpus import COLUMNS, POPULATION, spans_of
from swsdist.stages.inputs.search_inputs import CorpusInputs
from swsdist.store.reading import Store


def point_of(inputs: Inputs) -> OperatingPoint:
    """Trials, beta and the other parameters that turn counts into values.

    Raises:
        UserError: the protocol's trials need missing inputs, or beta cannot be taken from the data.
    """
    chain_inputs, settings = inputs.chain_inputs(CorpusInputs), inputs.config.score
    rules = protocol_of(settings)
    check_needs(rules, {"speech": settings.speech is not None, "documents": True}, "score.speech")
    segments = None
    if rules.trials == "segment":
        speech = read_speech(str(settings.speech), inputs.config.storage)
        result = segments_for(rules, spans_of(chain_inputs.population), speech)
        segments = result.num_rows if result is not None else None
    references = chain_inputs.corpus.references
    left_out = unscorable_queries(inputs)
    true = 0 if references is None else sum(query not in left_out for query in references["query_id"].to_pylist())
    return operating_point(
        rules,
        seconds=chain_inputs.seconds,
        true=true,
        queries=len(scored_queries(inputs)),
        documents=chain_inputs.population.num_rows,
        segments=segments,
    )


def scored_queries(inputs: Inputs) -> set[str]:
    """Queries whose trials count, with or without detections."""
    return set(inputs.chain_inputs(CorpusInputs).corpus.queries["query_id"].to_pylist()) - unscorable_queries(inputs)


def unscorable_queries(inputs: Inputs) -> set[str]:
    """Queries that cannot be scored: with document trials those in every document, which have no non-targets."""
    chain_inputs = inputs.chain_inputs(CorpusInputs)
    if protocol_of(inputs.config.score).trials != "document" or chain_inputs.corpus.references is None:
        return set()
    references = chain_inputs.corpus.references
    references = (
        by_document(references, Places(chain_inputs.corpus.documents)) if chain_inputs.corpus.placed else references
    )
    return set(in_every_document(references, chain_inputs.population.num_rows))


def population_for(inputs: Inputs) -> Values:
    """The population in a task's form (`documents.population_at`): the state of the store, and documents not in it."""
    chain_inputs = inputs.chain_inputs(CorpusInputs)
    unread = chain_inputs.population.filter(pc.invert(chain_inputs.population["read"]))
    return {"store": chain_inputs.store.state, "unread": unread.to_pylist()}


def trial_settings(inputs: Inputs) -> Values:
    """Trial settings besides the protocol: excluded queries, speech, and the population; JSON values."""
    chain_inputs, settings = inputs.chain_inputs(CorpusInputs), inputs.config.score
    values: Values = {"left_out": sorted(unscorable_queries(inputs))}
    if protocol_of(settings).trials == "segment":
        check_needs(protocol_of(settings), {"speech": settings.speech is not None}, "score.speech")
        try:
            values["speech"] = identify(str(settings.speech), inputs.config.storage)
        except FileNotFoundError:
            raise codes.NO_SPEECH_FILE(where=f"score.speech: {settings.speech}") from None
        values["population"] = population_for(inputs)
    if protocol_of(settings).trials == "document" and chain_inputs.corpus.placed:
        values["population"] = population_for(inputs)
    return values


#: Rows of a table of counts up to which all its files are merged by the task that measures, and files that a task merges.
_FEW, _TOGETHER = 1 << 20, 8


class Merging(NamedTuple):
    """The payload of a task that merges files of a table."""

    name: str
    files: list[str]


class Scoring(NamedTuple):
    """The payload of the last task."""

    files: dict[str, list[str]]
    point: OperatingPoint
    fit: Fitted
    left_out: list[str]


class Score(Stage[Merging | Scoring]):
    """Scoring never changes a score. Of several thresholds it reports those of folds with a query."""

    name = "score"
    version = 2
    needs_run = "references"
    unit = "counts"
    phase = "score"
    takes = {"parts": "parts"}
    may_take = {"calibration": "calibration"}
    grows_with_hours = "same"
    grows_with_queries = "same"
    tables = {
        "measures": Table(None, None),
        "det": Table(DET, None, digested=False),
        "merged": Table(None, None, digested=False),
    }
    rounds = True

    def plan(self, inputs: Inputs) -> Iterator[Task[Merging | Scoring]]:
        """Tasks that merge long tables; then one that measures. None without references."""
        references = inputs.chain_inputs(CorpusInputs).corpus.references
        counted = list(inputs.made("parts", Counted))
        if references is None or references.num_rows == 0 or not counted:
            return
        parts_of: dict[str, list[Part]] = {}
        for _, counts, parts in counted:
            for name, part in zip(counts.names, parts, strict=True):
                parts_of.setdefault(name, []).append(part)
        done = iter(inputs.outcome.receipts)
        for _ in range(inputs.round):
            groups = list(_groups(parts_of))
            if not groups:
                return
            parts_of |= {name: [] for name, _ in groups}
            for name, _ in groups:
                parts_of[name] += next(done).outputs
        for number, (name, group) in enumerate(groups := list(_groups(parts_of))):
            merging = Merging(name, [part.name for part in group])
            label = f"{name}, {number + 1} of {len(groups)}"
            work = sum(part.rows for part in group)
            yield inputs.task("merge", *merging, label=label, work=work, payload=merging)
        if groups:
            return
        files = {name: [part.name for part in group] for name, group in parts_of.items()}
        point = point_of(inputs)
        fitted = [each for _, each in inputs.results("calibration", Fitted)]
        calibration = fitted[0] if fitted else Fitted("none", [])
        calibration = calibration._replace(thresholds=thresholds_for(scored_queries(inputs), calibration.thresholds))
        payload = Scoring(files, point, calibration, sorted(unscorable_queries(inputs)))
        key_parts = files, identities(measures_of(point)), point.as_json(), calibration._asdict()
        work = sum(part.rows for group in parts_of.values() for part in group)
        yield inputs.task(*key_parts, label=point.protocol, work=work, payload=payload)

    def run(self, task: Task[Merging | Scoring], context: Context) -> TaskOutput:
        """Merge counts, or evaluate every measure once."""
        payload = task.payload
        if isinstance(payload, Merging):
            sources = {payload.name: [partial(context.batches, file) for file in payload.files]}
            merged = merge(sources)[payload.name]
            return TaskOutput((context.publish(task, "merged", merged.blocks(), merged.schema),))
        point = payload.point
        parts = merge(
            {name: [partial(context.batches, file) for file in files] for name, files in payload.files.items()}
        )
        result: dict[str, Any] = {**values(parts, point)}
        result |= {"calibration": payload.fit.fit, "atwv_thresholds": payload.fit.thresholds}
        points = det_of(curve_of(parts, point))
        drawn = pa.table([np.asarray(points.threshold), points.pmiss, points.pfa], schema=DET)
        outputs = (
            context.write(task, "measures", json.dumps(result, indent=1).encode()),
            context.publish(task, "det", [drawn], DET),
        )
        return TaskOutput(outputs, Measured(result, point.as_json(), payload.left_out))


def _groups(parts_of: Mapping[str, list[Part]]) -> Iterator[tuple[str, list[Part]]]:
    """The files of long tables that a task each merges in this round, with the table's name."""
    for name, parts in parts_of.items():
        if len(parts) > 1 and sum(part.rows for part in parts) > _FEW:
            for first in range(0, len(parts), _TOGETHER):
                yield name, parts[first : first + _TOGETHER]


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
