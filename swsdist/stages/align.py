"""align matches detections with true occurrences, one bucket of queries at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.config.model import Score
from swsdist.core.fingerprint import SLOTS, bucket_of
from swsdist.core.types import DETECTIONS, REFERENCES, TRIALS
from swsdist.corpora.places import Places, by_document, stored
from swsdist.io.nist.rttm import read_speech
from swsdist.pipeline.chain import Context, Table
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.task import Task, TaskOutput, Values
from swsdist.score.align import is_judged
from swsdist.score.measures.protocol import protocol_of
from swsdist.score.trials import TrialRules, make_trials, segments_for
from swsdist.stages.buckets import Aligned, Bucket, BucketStage, buckets_of
from swsdist.stages.inputs.corpus import spans_of
from swsdist.stages.inputs.search_inputs import CorpusInputs
from swsdist.stages.score import population_at, trial_settings


class Aligning(NamedTuple):
    """The payload of a task."""

    rules: TrialRules
    detections: str | None
    references: list[Values]
    left_out: list[str]
    score: Score
    population: Values | None
    judged: list[Values] | None


class Align(BucketStage[Aligning]):
    """Alignment uses scores and ignores decisions. So one alignment, of comparable scores, can fit the decision, and
    another, of the final scores, is counted.
    """

    name = "align"
    version = 1
    needs_run = "references"
    phase = "score"
    takes = {"detections": "normalised"}
    grows_with_hours = "kept"
    tables = {"trials": Table(TRIALS)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Aligning]]:
        """A task per bucket with detections or references; none without references."""
        references = inputs.chain_inputs(CorpusInputs).corpus.references
        if references is None:
            return
        settings = trial_settings(inputs)
        parts = inputs.parts("detections")
        buckets = buckets_of(parts, inputs)
        lists = {part.slots[0] * buckets // SLOTS: part for part in parts}
        rules = TrialRules.of(protocol_of(inputs.config.score))
        if rules.needs_limits:
            results = [each for _, each in inputs.results("detections", Bucket)]
            low = min((item.low for item in results), default=0.0)
            high = max((item.high for item in results), default=0.0)
            rules = TrialRules.of(protocol_of(inputs.config.score), low, high)
        true: dict[int, list[int]] = {bucket: [] for bucket in lists}
        left_out = set(settings["left_out"])
        for row, query_id in enumerate(references["query_id"].to_pylist()):
            if query_id not in left_out:
                true.setdefault(bucket_of(query_id, buckets), []).append(row)
        corpus = inputs.chain_inputs(CorpusInputs).corpus
        judged = None if corpus.judged is None else corpus.judged.to_pylist()
        for bucket, rows in sorted(true.items()):
            of_bucket = judged and [row for row in judged if bucket_of(row["query_id"], buckets) == bucket]
            occurrences, part = references.take(pa.array(rows, pa.int64())).to_pylist(), lists.get(bucket)
            name, population = part.name if part is not None else None, settings.get("population")
            payload = Aligning(
                rules, name, occurrences, settings["left_out"], inputs.config.score, population, of_bucket
            )
            work = part.rows if part is not None else len(occurrences)
            yield self.numbered(
                bucket,
                buckets,
                inputs,
                *(rules.as_json(), settings, name, occurrences, *([] if judged is None else [of_bucket])),
                work=work,
                payload=payload,
            )

    def run(self, task: Task[Aligning], context: Context) -> TaskOutput:
        """Trials by the protocol: one-to-one pairs, segments, or documents."""
        payload = task.payload
        references = pa.Table.from_pylist(payload.references, REFERENCES)
        detections = DETECTIONS.empty_table() if payload.detections is None else context.read(payload.detections)
        if payload.left_out:
            gone = pc.is_in(detections["query_id"], value_set=pa.array(payload.left_out, pa.string()))
            detections = detections.filter(pc.invert(gone))
        count = detections.num_rows
        if payload.judged is not None:
            judged = pa.Table.from_pylist(payload.judged, REFERENCES)
            detections = detections.filter(pa.array(is_judged(detections, judged)))
        unjudged = count - detections.num_rows
        segments = None
        if payload.population is not None:
            population = population_at(payload.population, context)
            if payload.rules.trials_are == "segment":
                speech = read_speech(str(payload.score.speech), context.storage)
                segments = segments_for(protocol_of(payload.score), spans_of(population), speech)
            else:  # document trials, and documents are places in recordings
                places = Places(stored(population))
                detections, references = by_document(detections, places), by_document(references, places)
        trials = self.kept(make_trials(detections, references, payload.rules, segments), detections)
        output = context.publish(task, "trials", [trials], trials.schema)
        return TaskOutput((output,), Aligned(trials.num_rows, unjudged, count))

    def kept(self, trials: pa.Table, detections: pa.Table) -> pa.Table:
        """Trials with further columns of their detections: none here."""
        del detections
        return trials.cast(TRIALS)
