"""align decides which detection matches which true occurrence, one bucket of queries at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.config.model import Score
from swsdist.core.partition import bucket_of, slots_of
from swsdist.core.types import DETECTIONS, REFERENCES, TRIALS
from swsdist.corpora.places import Places, by_document, stored
from swsdist.io.nist.speech import read_speech
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Done, Task, Values
from swsdist.score.measures.protocol import protocol_of
from swsdist.score.trials.making import TrialRules, make_trials, segments_for
from swsdist.stages.documents import population_at
from swsdist.stages.inputs.known import CorpusInputs
from swsdist.stages.inputs.population import spans_of
from swsdist.stages.point import trial_settings
from swsdist.stages.told import Bucket


class Align(Stage):
    """Alignment looks at scores and ignores decisions. So one alignment, of comparable scores, can fit what decides, and
    another, of the final scores, is counted.
    """

    name = "align"
    version = 1
    unit = "detections"
    phase = "score"
    takes = {"detections": "normalised"}
    with_hours = "kept"
    tables = {"trials": Table(TRIALS)}

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """A task a bucket that has detections or references; none without references."""
        references = inputs.own(CorpusInputs).corpus.references
        if references is None:
            return
        settings = trial_settings(inputs)
        buckets = inputs.config.reduce.buckets
        told = [told for _, told in inputs.told("detections", Bucket)]
        lists = {one.bucket: (part, one) for part, one in zip(inputs.parts("detections"), told, strict=True)}
        rules = TrialRules.of(protocol_of(inputs.config.score))
        if rules.needs_limits:
            low = min((one.low for one in told), default=0.0)
            high = max((one.high for one in told), default=0.0)
            rules = TrialRules.of(protocol_of(inputs.config.score), low, high)
        true: dict[int, list[int]] = {bucket: [] for bucket in lists}
        left_out = set(settings["left_out"])
        for row, query_id in enumerate(references["query_id"].to_pylist()):
            if query_id not in left_out:
                true.setdefault(bucket_of(query_id, buckets), []).append(row)
        matters = {key: value for key, value in settings.items() if key != "score"}
        for bucket, rows in sorted(true.items()):
            mine = references.take(pa.array(rows, pa.int64())).to_pylist()
            part, one = lists.get(bucket, (None, None))
            slots = slots_of(bucket, buckets)
            yield inputs.task(
                rules.as_json(),
                matters,
                part.name if part is not None else None,
                mine,
                label=f"bucket {bucket}",
                work=one.rows if one is not None else len(mine),
                payload={
                    **settings,
                    "detections": part.name if part is not None else None,
                    "references": mine,
                    "rules": rules.as_json(),
                    "bucket": bucket,
                    "slots": [slots[0], slots[-1]],
                },
            )

    def run(self, task: Task, context: Context) -> Done:
        """Trials as the protocol has them: pairs one to one, segments, or documents."""
        payload = task.payload
        references = pa.Table.from_pylist(payload["references"], REFERENCES)
        detections = DETECTIONS.empty_table()
        if payload["detections"] is not None:
            detections = context.read(payload["detections"])
        if payload["left_out"]:
            gone = pc.is_in(detections["query_id"], value_set=pa.array(payload["left_out"], pa.string()))
            detections = detections.filter(pc.invert(gone))
        segments = _segments(payload, context) if "speech" in payload else None
        if segments is None and "population" in payload:  # trials are documents, and these are places in recordings
            places = Places(stored(population_at(payload["population"], context)))
            detections, references = by_document(detections, places), by_document(references, places)
        trials = self.kept(make_trials(detections, references, TrialRules(**payload["rules"]), segments), detections)
        output = context.publish(task, "trials", [trials], trials.schema, tuple(payload["slots"]))
        return Done((output,), Bucket(payload["bucket"], trials.num_rows))

    def kept(self, trials: pa.Table, detections: pa.Table) -> pa.Table:
        """Trials with what else is kept of their detections: nothing."""
        del detections
        return trials.cast(TRIALS)


def _segments(payload: Values, context: Context) -> pa.Table | None:
    settings = Score.model_validate(payload["score"])
    speech = read_speech(str(settings.speech), context.storage)
    return segments_for(protocol_of(settings), spans_of(population_at(payload["population"], context)), speech)
