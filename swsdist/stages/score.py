"""score computes the measures of the whole list from the counts of its parts.

Long tables of counts are merged before that, several files into one, in rounds until one is left.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.calibrate.procedure import thresholds_for
from swsdist.core.codes import stages as codes
from swsdist.corpora.places import Places, by_document
from swsdist.io.filesystem import identify
from swsdist.io.nist.speech import read_speech
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Part, Task, TaskOutput, Values
from swsdist.score.measures.det import DET, det_of
from swsdist.score.measures.protocol import OperatingPoint, operating_point, protocol_of
from swsdist.score.parts.events import identities, measures_of, merge, values
from swsdist.score.parts.events import curve_of
from swsdist.score.trials.making import check_needs, in_every_document, segments_for
from swsdist.stages.buckets import Counted, Fitted, Measured
from swsdist.stages.inputs.corpus import spans_of
from swsdist.stages.inputs.search_inputs import CorpusInputs


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
