"""fit learns the threshold and the fitted calibration steps from aligned lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from swsdist.calibrate.fitting import fit_procedure, fit_thresholds
from swsdist.calibrate.procedure import Procedure, procedures
from swsdist.calibrate.steps.interface import TwvParameters
from swsdist.config.calibration import Calibrate
from swsdist.core.codes import stages as codes
from swsdist.core.fingerprint import fingerprint
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Task, TaskOutput, Values
from swsdist.score.measures.protocol import protocol_of
from swsdist.stages.describe import query_covariates, read_covariates
from swsdist.stages.inputs.provenance import calibration_file, named_calibration, provenance
from swsdist.stages.inputs.search_inputs import CorpusInputs
from swsdist.stages.operating_point import point_of, scored_queries
from swsdist.stages.task_results import Fitted


class Fitting(NamedTuple):
    """The payload of the task.

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


class Fit(Stage[Fitting]):
    """A single task, since it reads counts and not lists."""

    name = "fit"
    version = 4
    needs_run = "references"
    unit = "detections"
    phase = "score"
    takes = {"trials": "trials"}
    may_take = {"statistics": "statistics", "described": "described"}
    grows_with_hours = "kept"
    tables = {"calibration": Table(None, None, digested=False)}
    in_driver = True

    def plan(self, inputs: Inputs) -> Iterator[Task[Fitting]]:
        """One task; none without references, unless a FILE decides."""
        settings, references = inputs.config.calibrate, inputs.chain_inputs(CorpusInputs).corpus.references
        if settings.fit == "none":
            return
        entries = settings.entries()
        own_threshold = not settings.fitted and settings.threshold == "own"
        if own_threshold and any(entries[name].own_threshold for name in settings.unfitted[-1:]):
            settled = point_of(inputs)
            first, _ = procedures(settings, TwvParameters(settled.trials, settled.beta))
            if (threshold := first.own_threshold) is not None:
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
        label = settings.fit if fitted else f"from {settings.fit}"
        work = sum(part.rows for part in aligned) if named else 1
        yield inputs.task(data, folds, *named, *seen, label=label, work=work, payload=payload)

    def run(self, task: Task[Fitting], context: Context) -> TaskOutput:
        """Thresholds of maximum TWV, and parameters of the steps."""
        if task.payload.own_threshold is not None:
            fitted = Procedure((), thresholds=(task.payload.own_threshold,), fit="own")
        else:
            fitted = self._fit(task.payload, context)
        output = context.write(task, "calibration", fitted.to_json(), place="")
        fit = "oracle" if task.payload.seen else fitted.fit
        return TaskOutput((output,), Fitted(fit, list(fitted.thresholds)))

    def _fit(self, payload: Fitting, context: Context) -> Procedure:
        point, by_document = payload.point, payload.by_document
        _, steps = procedures(payload.calibrate, point)
        if steps.steps:
            covariates = read_covariates(context, payload.covariates)
            steps = replace(steps, covariates=covariates, by_document=by_document, documents=by_document)
        own_threshold = payload.calibrate.threshold == "own"

        def parts() -> Iterator[pa.Table]:
            return (context.read(name) for name in payload.aligned)

        if payload.file is None:
            return fit_procedure(
                parts,
                steps,
                folds=payload.folds,
                own_threshold=own_threshold,
                point=point,
                trained_on={"aligned": fingerprint(payload.aligned), **payload.of},
                query_ids=payload.query_ids,
            )
        data = calibration_file(payload.file, context.storage)
        steps = steps.with_file(data, payload.file, thresholds=not own_threshold or steps.own_threshold is None)
        return fit_thresholds(steps, parts, folds=1, own_threshold=own_threshold, point=point)
