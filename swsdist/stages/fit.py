"""fit learns the threshold and the fitted calibration steps from aligned lists.

A short list is fitted by one task. Of a long one (`MOST`), tasks learn from each part, and others add that up, in rounds::

    for each fitted step   gather (a task a part) -> fit
    then                   count (a task a part) -> threshold (a task a fold) -> end, which writes the file

Without a threshold to be fitted, count finds only the limits of the scores.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

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
    to_bytes,
    with_models,
)
from swsdist.calibrate.steps.interface import TwvParameters
from swsdist.config import Config
from swsdist.config.model import Calibrate
from swsdist.core.codes import stages as codes
from swsdist.core.fingerprint import fingerprint, slot_of
from swsdist.core.types import DETECTIONS
from swsdist.kernels.regression import MOST
from swsdist.pipeline.chain import Context, Stage, Table
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.task import Part, Task, TaskOutput, Values
from swsdist.score.align import score_limits
from swsdist.score.events import CLASSES, EVENTS
from swsdist.score.measures.protocol import protocol_of
from swsdist.stages.buckets import BucketStage, Fitted
from swsdist.stages.describe import query_covariates, read_covariates
from swsdist.stages.inputs.provenance import calibration_file, named_calibration, provenance
from swsdist.stages.inputs.search_inputs import CorpusInputs
from swsdist.stages.score import point_of, scored_queries


class Fitting(NamedTuple):
    """What is fitted: the payload of the task of a short list.

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
    tables = {
        "calibration": Table(None, None, digested=False),
        "learnt": Table(None, None, digested=False),
    }

    def plan(self, inputs: Inputs) -> Iterator[Task[Fitting | Learning]]:
        """Nothing without references, unless a FILE decides."""
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
            raise codes.NOTHING_TO_FIT_ON(where="calibrate.steps", step=settings.fitted[0])
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
    """Decisions are null if nothing decides. With fitted steps, this stage gives scores their final values."""

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
