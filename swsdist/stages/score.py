"""Stages of scoring: align, measure, fit, decide, score.

**align** makes aligned lists of trials, and **decide** applies the fitted calibration and its threshold.

**measure** makes the counts behind the measures, for one bucket of queries. **score** computes the measures of the
whole list from them. Long tables of counts are merged before that, several files into one, in rounds until one is left.

**fit** learns the threshold and the fitted calibration steps from aligned lists. A short list is fitted by one task. Of
a long one (`MOST`), tasks learn from each part, and others add that up, in rounds::

    for each fitted step   gather (a task a part) -> fit
    then                   count (a task a part) -> threshold (a task a fold) -> end, which writes the file

Without a threshold to be fitted, count finds only the limits of the scores.

Columns of a store's documents that tasks use besides frames are read once per process and kept for later tasks, because
a bucket of queries may have candidates in any document.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.calibrate.procedure import (
    Procedure,
    count,
    counted_for,
    decide,
    finished,
    fit_procedure,
    fit_thresholds,
    fitted_steps,
    from_bytes,
    gather,
    keep_order,
    known_thresholds,
    procedures,
    silent,
    threshold_of,
    thresholds_for,
    to_bytes,
    with_models,
)
from swsdist.calibrate.steps.interface import TwvParameters
from swsdist.config import Config
from swsdist.config.model import Calibrate
from swsdist.config.model import Score as ScoreSettings
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError
from swsdist.core.fingerprint import SLOTS, bucket_of, fingerprint, slot_of
from swsdist.core.types import DETECTIONS, REFERENCES, TRIALS
from swsdist.corpora.places import Places, by_document, stored
from swsdist.io.filesystem import identify
from swsdist.io.nist.rttm import read_speech
from swsdist.kernels.regression import MOST
from swsdist.pipeline.chain import Context, Inputs, Stage, Table
from swsdist.pipeline.task import Part, Task, TaskOutput, Values
from swsdist.reduce.examples import WHO, Speakers
from swsdist.reduce.spans import WHERE
from swsdist.score.align import is_judged, score_limits
from swsdist.score.events import CLASSES, EVENTS, curve_of, identities, measure_parts, measures_of, merge, values
from swsdist.score.measures.det import DET, det_of
from swsdist.score.measures.protocol import OperatingPoint, operating_point, protocol_of
from swsdist.score.measures.twv import PER_TERM, per_term
from swsdist.score.trials import TrialRules, check_needs, in_every_document, make_trials, segments_for
from swsdist.stages.buckets import Aligned, Bucket, BucketStage, Counted, Fitted, Measured, buckets_of
from swsdist.stages.inputs.corpus import COLUMNS, POPULATION, spans_of
from swsdist.stages.inputs.provenance import calibration_file, named_calibration, provenance
from swsdist.stages.inputs.search_inputs import CorpusInputs
from swsdist.stages.queries import query_covariates, read_covariates
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
    corpus = chain_inputs.corpus
    if protocol_of(inputs.config.score).trials != "document" or (references := corpus.references) is None:
        return set()
    if corpus.placed:
        references = by_document(references, Places(corpus.documents))
    return set(in_every_document(references, chain_inputs.population.num_rows))


def population_for(inputs: Inputs) -> Values:
    """The population in a task's form (`population_at`): the state of the store, and documents not in it."""
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
            raise families.MISSING_FILE(
                "there is no such file", "name an RTTM, or a table of speech", where=f"score.speech: {settings.speech}"
            ) from None
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
    """The stage score: measures of the whole list. Of several thresholds it reports those of folds with a query."""

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
    """The stage measure: counts of a bucket of queries, which are merged as streams."""

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


class Aligning(NamedTuple):
    """The payload of a task."""

    rules: TrialRules
    detections: str | None
    references: list[Values]
    left_out: list[str]
    score: ScoreSettings
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


class Fitting(NamedTuple):
    """The payload of the task of a short list: what is fitted.

    Attributes:
        calibrate: section of the config.
        own_threshold: of the last step if that decides; then nothing is fitted.
        file: earlier calibration; None: fit on this run's lists.
        seen: the file was fitted on the scored data.
        folds: 1 fits on all.
        by_document: whether trials are documents.
        point: operating point, if a list is read.
        aligned: files of the list.
        of: system and corpus of the thresholds.
        covariates: of `query_covariates`.
        query_ids: queries whose trials count.
    """

    calibrate: Calibrate
    own_threshold: float | None = None
    file: str | None = None
    seen: bool = False
    folds: int = 1
    by_document: bool = False
    point: TwvParameters = TwvParameters(1, 1.0)
    aligned: tuple[str, ...] = ()
    of: Mapping[str, object] = {}
    covariates: Values | None = None
    query_ids: tuple[str, ...] = ()


class Learning(NamedTuple):
    """The payload of a task of a long list.

    Attributes:
        what: gather, fit, count, threshold or end.
        fitting: the whole; `covariates` and `query_ids` are those of the part.
        files: the part, or files of the round before.
        models: file of the steps fitted so far.
        number: of the step; of count, folds to count for; of threshold, the fold.
    """

    what: str
    fitting: Fitting
    files: tuple[str, ...]
    models: str | None = None
    number: int = 0


class Fit(Stage[Fitting | Learning]):
    """Everything that is learnt of parts of a list adds, so it may be cut anyhow."""

    name = "fit"
    version = 4
    needs_run = "references"
    unit = "detections"
    phase = "score"
    takes = {"trials": "trials"}
    may_take = {"statistics": "statistics", "described": "described"}
    grows_with_hours = "kept"
    in_buckets = True
    most_work = MOST
    rounds = True
    tables = {"calibration": Table(None, None, digested=False), "learnt": Table(None, None, digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Fitting | Learning]]:
        """Tasks of the fit; none without references, unless a FILE decides."""
        settings, references = inputs.config.calibrate, inputs.chain_inputs(CorpusInputs).corpus.references
        if settings.fit == "none":
            return
        entries = settings.entries()
        own_threshold = not settings.fitted and settings.threshold == "own"
        if own_threshold and any(entries[name].own_threshold for name in settings.unfitted[-1:]):
            settled = point_of(inputs)
            first, _ = procedures(settings, TwvParameters(settled.trials, settled.beta))
            if (threshold := first.own_threshold) is not None:
                if inputs.round:
                    return
                yield inputs.task("own", threshold, label="own", work=1, payload=Fitting(settings, threshold))
                return
        fitted = settings.fit in ("crossfit", "oracle")
        read, of_scored = (
            (None, False) if fitted else named_calibration(inputs.config, inputs.chain_inputs(CorpusInputs))
        )
        data = None if read is None else read.decode("utf-8", "replace")
        # A file fitted on other data enters the task's name by its content alone.
        seen = ["fitted on what is scored"] if of_scored else []
        if fitted and (references is None or not references.num_rows):
            if not settings.fitted:
                return
            raise families.NOTHING_TO_FIT.of(ConfigError)(
                "there is no true occurrence to fit the step {step} on",
                "give references, or a fitted file in calibrate.fit",
                where="calibrate.steps",
                step=settings.fitted[0],
            )
        folds = settings.folds if settings.fit == "crossfit" else 1
        by_document = protocol_of(inputs.config.score).trials == "document"
        file = None if fitted else settings.fit
        payload = Fitting(settings, None, file, of_scored, folds, by_document)
        named: list[object] = []
        if fitted or settings.fitted:  # a threshold from a file needs no list
            aligned, settled = inputs.parts("trials"), point_of(inputs)
            files, point = tuple(part.name for part in aligned), TwvParameters(settled.trials, settled.beta)
            required = {name: getattr(settled, name) for name in ("protocol", "trials", "beta", "true")}
            of = {**required, **provenance(inputs.config, inputs.chain_inputs(CorpusInputs))}
            payload = payload._replace(point=point, aligned=files, of=of)
            named = [files, required]
        if settings.fitted:
            _, steps = procedures(settings, point)
            covariates, requested = query_covariates(inputs), tuple(sorted(scored_queries(inputs)) if fitted else ())
            payload = payload._replace(covariates=covariates, query_ids=requested)
            of_list = by_document and any(step.of_list() for step in steps.steps)
            named += [steps.identity(), settings.threshold, requested]
            named += [*([covariates] if covariates else []), *(["by document"] if of_list else [])]
        key_parts = (data, folds, *named, *seen)
        label = settings.fit if fitted else f"from {settings.fit}"
        work = sum(part.rows for part in aligned) if named else 1
        if work > MOST:
            yield from self._in_rounds(inputs, payload, key_parts, label)
        elif not inputs.round:
            yield inputs.task(*key_parts, label=label, work=work, payload=payload)

    @staticmethod
    def _in_rounds(
        inputs: Inputs, fitting: Fitting, key_parts: tuple[Any, ...], label: str
    ) -> Iterator[Task[Fitting | Learning]]:
        parts, (_, steps) = list(inputs.parts("trials")), procedures(fitting.calibrate, fitting.point)
        fits = fitting.file is None and not known_thresholds(steps, fitting.calibrate.threshold == "own")
        rounds: list[tuple[str, int]] = []
        for number in fitted_steps(steps) if fitting.file is None else ():
            rounds += [("gather", number), ("fit", number)]
        rounds += [("count", fitting.folds if fits else 0), *([("threshold", 0)] if fits else []), ("end", 0)]
        tasks = {"gather": len(parts), "fit": 1, "count": len(parts), "threshold": fitting.folds, "end": 1}
        if inputs.round >= len(rounds):
            return
        receipts, made = iter(inputs.outcome.receipts), dict[str, list[list[str]]]()
        for what, _ in rounds[: inputs.round]:
            made[what] = [[part.name for part in next(receipts).outputs] for _ in range(tasks[what])]
        models = made["fit"][0][0] if "fit" in made else None
        what, number = rounds[inputs.round]
        own = [key_parts[0], steps.identity(), fitting.point, fitting.folds, fitting.by_document, number, models]
        few = fitting._replace(aligned=(), query_ids=())
        if what in ("gather", "count"):
            covered = {slot for part in parts for slot in range(part.slots[0], part.slots[1] + 1)}
            # Queries of which nothing is listed may be in no part's slots: they go to the first.
            slots = {
                name: slot if (slot := slot_of(name)) in covered else parts[0].slots[0]
                for name in (fitting.query_ids if what == "gather" else ())
            }
            for k, part in enumerate(parts):
                ids = tuple(name for name, slot in slots.items() if part.slots[0] <= slot <= part.slots[1])
                covariates = query_covariates(inputs, part.slots) if steps.steps else None
                mine = few._replace(covariates=covariates, query_ids=ids)
                payload, key = Learning(what, mine, (part.name,), models, number), (*own, part.name, ids, covariates)
                label = f"{what}, part {k + 1} of {len(parts)}"
                yield inputs.task(what, *key, label=label, work=part.rows, payload=payload)
        elif what == "threshold":
            files = tuple(name for names in made["count"] for name in names[:-1])
            for fold in range(fitting.folds):
                payload = Learning(what, few, files, models, fold)
                yield inputs.task(
                    what, *own, files, fold, label=f"threshold of fold {fold + 1}", work=1, payload=payload
                )
        else:
            kinds = ("gather",) if what == "fit" else ("count", "threshold")
            files = tuple(names[-1] for kind in kinds for names in made.get(kind, []))
            key = (what, *own, files) if what == "fit" else (what, *key_parts, models, files)
            yield inputs.task(*key, label=label, work=1, payload=Learning(what, fitting, files, models, number))

    def run(self, task: Task[Fitting | Learning], context: Context) -> TaskOutput:
        """Thresholds of maximum TWV, and parameters of the steps; or a part of it."""
        payload = task.payload
        if isinstance(payload, Learning):
            if payload.what != "end":
                return TaskOutput(tuple(_learnt(payload, task, context)))
            fitting, fitted = payload.fitting, _ended(payload, context)
        elif payload.own_threshold is not None:
            fitting, fitted = payload, Procedure((), thresholds=(payload.own_threshold,), fit="own")
        else:
            fitting, fitted = payload, _fitted(payload, context)
        output = context.write(task, "calibration", fitted.to_json(), place="")
        fit = "oracle" if fitting.seen else fitted.fit
        return TaskOutput((output,), Fitted(fit, list(fitted.thresholds)))


def _steps(fitting: Fitting, context: Context, models: str | None = None) -> Procedure:
    """The steps, with models of a file of an earlier round or of an earlier calibration."""
    _, steps = procedures(fitting.calibrate, fitting.point)
    if steps.steps:
        covariates, by_document = read_covariates(context, fitting.covariates), fitting.by_document
        steps = replace(steps, covariates=covariates, by_document=by_document, documents=by_document)
    if fitting.file is not None:
        data, own = calibration_file(fitting.file, context.storage), fitting.calibrate.threshold == "own"
        return steps.with_file(data, fitting.file, thresholds=not own or steps.own_threshold is None)
    return steps if models is None else replace(steps, models=Procedure.from_run(context.read_bytes(models)).models)


def _fitted(fitting: Fitting, context: Context) -> Procedure:
    """All at once."""
    steps, point, own = _steps(fitting, context), fitting.point, fitting.calibrate.threshold == "own"

    def parts() -> Iterator[pa.Table]:
        return (context.read(name) for name in fitting.aligned)

    if fitting.file is not None:
        return fit_thresholds(steps, parts, folds=1, own_threshold=own, point=point)
    trained_on = {"aligned": fingerprint(fitting.aligned), **fitting.of}
    return fit_procedure(
        *(parts, steps),
        folds=fitting.folds,
        own_threshold=own,
        point=point,
        trained_on=trained_on,
        query_ids=fitting.query_ids,
    )


def _learnt(payload: Learning, task: Task[Any], context: Context) -> Iterator[Part]:
    """The files of a task before the last round."""
    fitting, number = payload.fitting, payload.number
    steps = _steps(fitting, context, payload.models)
    if payload.what == "gather":
        table = context.read(payload.files[0])
        unseen = set(fitting.query_ids).difference(table["query_id"].unique().to_pylist())
        table = pa.concat_tables([table, silent(unseen, table.schema)])
        examples = gather(table, steps, number, fitting.folds, coarse=True)
        yield context.write(task, "learnt", to_bytes(examples), ".npz")
    elif payload.what == "fit":
        gathered = (from_bytes(context.read_bytes(name)) for name in payload.files)
        yield context.write(task, "learnt", with_models(steps, number, gathered, fitting.folds).to_json())
    elif payload.what == "count":
        table = context.read(payload.files[0])
        counted = count(table, steps, number)
        for k, tables in enumerate(counted.counts):
            for part, rows in zip((EVENTS, CLASSES), tables, strict=True):
                yield context.publish(task, "learnt", [rows], part.schema, f"-{k}-{part.name}.parquet")
        queries = len(table["query_id"].unique())
        yield context.write(task, "learnt", json.dumps([queries, counted.low, counted.high]).encode())
    else:
        each = 2 * fitting.folds
        events, classes = (
            [partial(context.batches, name) for k in chosen for name in payload.files[2 * k + place :: each]]
            for chosen in [counted_for(steps, fitting.folds)[number]]
            for place in (0, 1)
        )
        threshold = threshold_of(events, classes, fitting.point)
        yield context.write(task, "learnt", json.dumps(threshold).encode())


def _ended(payload: Learning, context: Context) -> Procedure:
    """The whole, of files of limits and of thresholds."""
    fitting, steps = payload.fitting, _steps(payload.fitting, context, payload.models)
    values = [json.loads(context.read_bytes(name)) for name in payload.files]
    limits = [value for value in values if isinstance(value, list)]
    thresholds = known_thresholds(steps, fitting.calibrate.threshold == "own") or tuple(values[len(limits) :])
    low, high = score_limits([limit for _, *both in limits for limit in both])
    steps = replace(steps, thresholds=thresholds, low=low, high=high)
    if fitting.file is not None:
        return steps
    trained_on = {"aligned": fingerprint(fitting.aligned), **fitting.of, "queries": sum(each[0] for each in limits)}
    return finished(steps, fitting.folds, trained_on)


class Deciding(NamedTuple):
    """The payload of a task."""

    detections: str
    calibration: str | None
    covariates: Values | None


class Decide(BucketStage[Deciding]):
    """The stage decide: decisions, null if nothing decides. With fitted steps it also sets the final scores."""

    name = "decide"
    version = 1
    phase = "score"
    takes = {"detections": "normalised"}
    may_take = {"calibration": "calibration", "statistics": "statistics", "described": "described"}
    grows_with_hours = "kept"
    tables = {"scored": Table(DETECTIONS)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Deciding]]:
        """A task per bucket."""
        files, fitted = [part.name for part in inputs.parts("calibration")], bool(inputs.config.calibrate.fitted)
        for part in inputs.parts("detections"):
            covariates = query_covariates(inputs, part.slots) if fitted else None
            payload = Deciding(part.name, files[0] if files else None, covariates)
            key_parts = files, part.name, fitted, *([covariates] if covariates else [])
            yield self.following(part, inputs, *key_parts, payload=payload)

    def keeps_order(self, config: Config) -> bool:
        """Whether its steps depend on the score alone."""
        return keep_order(config.calibrate, config.calibrate.fitted)

    def run(self, task: Task[Deciding], context: Context) -> TaskOutput:
        """Compare scores with the threshold."""
        payload = task.payload
        result = context.read(payload.detections)
        if payload.calibration is None:
            result = decide(result, None)
        else:
            fitted = Procedure.from_run(context.read_bytes(payload.calibration))
            result = replace(fitted, covariates=read_covariates(context, payload.covariates)).apply(result)
        return self.done(task, context, result.select(DETECTIONS.names))  # joined lists have more columns
