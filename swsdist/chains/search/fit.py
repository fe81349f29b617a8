"""fit learns the threshold, and the steps of calibration that are fitted, from aligned lists."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.calibrate.procedure import Procedure, completed, fit_procedure, procedures
from swsdist.calibrate.steps.interface import Point
from swsdist.calibrate.threshold import Calibration, by_fold, fit_parts
from swsdist.chains.search.describe import read_sides, sides_of
from swsdist.chains.search.inputs.known import CorpusInputs
from swsdist.chains.search.inputs.provenance import calibration_file, is_of_scored, provenance, tell_of_provenance
from swsdist.chains.search.point import asked_of, point_of
from swsdist.chains.search.told import Fitted
from swsdist.config.calibration import Calibrate
from swsdist.errors import ConfigError
from swsdist.fingerprint import fingerprint
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Done, Task, Values
from swsdist.score import Counts
from swsdist.score.measures.protocol import protocol_of
from swsdist.score.parts.spilled import LIMIT, SpilledCounts


class Fit(Stage):
    """There is one task, for it reads counts and not lists."""

    name = "fit"
    version = 3
    unit = "detections"
    phase = "score"
    takes = {"trials": "trials"}
    may_take = {"statistics": "statistics", "described": "described"}
    with_hours = "kept"
    tables = {"calibration": Table(None, None, digested=False)}
    in_driver = True

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """One task, or none: without references only a FILE can decide."""
        settings, references = inputs.config.calibrate, inputs.own(CorpusInputs).corpus.references
        if settings.fit == "none":
            return
        if settings.fitted:
            yield self._plan_steps(inputs)
            return
        own_point = Point(1, 1.0)
        entries = settings.entries()
        if settings.threshold == "own" and any(entries[name].own_threshold for name in settings.unfitted[-1:]):
            settled = point_of(inputs)
            own_point = Point(settled.trials, settled.beta)
        first, _ = procedures(settings, own_point)
        if settings.threshold == "own" and first.own_threshold is not None:
            own = first.own_threshold
            yield inputs.task("own", own, label="own", work=1, payload={"own": own})
            return
        if settings.fit not in ("crossfit", "oracle"):
            data = _given(inputs)
            seen = _seen(inputs, data)
            payload = {"file": settings.fit, "seen": bool(seen)}
            yield inputs.task(data, *seen, label=f"from {settings.fit}", work=1, payload=payload)
            return
        if references is None or references.num_rows == 0:
            return
        folds = 1 if settings.fit == "oracle" else settings.folds
        aligned = inputs.parts("trials")
        files, point = [part.name for part in aligned], _point(inputs)
        yield inputs.task(
            folds,
            files,
            point,
            label=settings.fit,
            work=sum(part.rows for part in aligned),
            payload={
                "aligned": files,
                "folds": folds,
                "point": point,
                "of": provenance(inputs.config, inputs.own(CorpusInputs)),
            },
        )

    def _plan_steps(self, inputs: Inputs) -> Task:
        settings, references = inputs.config.calibrate, inputs.own(CorpusInputs).corpus.references
        fitted = settings.fit in ("crossfit", "oracle")
        data = None if fitted else _given(inputs)
        if fitted and (references is None or not references.num_rows):
            raise ConfigError(
                f"there is no true occurrence to fit a step on: {settings.fitted[0]}",
                where="calibrate.steps",
                remedy="give references, or a fitted file in calibrate.fit",
            )
        folds = settings.folds if settings.fit == "crossfit" else 1
        seen = [] if data is None else _seen(inputs, data)
        aligned = inputs.parts("trials")
        files, point = [part.name for part in aligned], _point(inputs)
        _, steps = procedures(settings, Point(point["trials"], point["beta"]))
        payload = {
            "aligned": files,
            "folds": folds,
            "point": point,
            "of": provenance(inputs.config, inputs.own(CorpusInputs)),
            "calibrate": settings.model_dump(mode="json"),
            "sides": (sides := sides_of(inputs)),
            "by_document": (by_document := protocol_of(inputs.config.score).trials == "document"),
            "asked": sorted(asked_of(inputs)) if fitted else [],
        }
        return inputs.task(
            steps.identity(),
            settings.threshold,
            data,
            folds,
            files,
            point,
            payload["asked"],
            *([sides] if sides else []),
            *(["by document"] if by_document and any(step.of_list() for step in steps.steps) else []),
            *seen,
            label=settings.fit if fitted else f"from {settings.fit}",
            work=sum(part.rows for part in aligned),
            payload=payload if fitted else {**payload, "file": settings.fit, "seen": bool(seen)},
        )

    def run(self, task: Task, context: Context) -> Done:
        """Thresholds of the maximum TWV, or what steps need."""
        if "calibrate" in task.payload:
            steps = self._fit_steps(task.payload, context)
            output = context.write(task, "calibration", steps.to_json(), place="")
            return Done((output,), _told(steps, task))
        if "own" in task.payload:
            calibration = Calibration("own", (task.payload["own"],), {})
        elif "file" in task.payload:
            path = task.payload["file"]
            calibration = Calibration.from_json(calibration_file(path, context.storage), path)
        else:
            calibration = self._fit(task.payload, context)
        output = context.write(task, "calibration", calibration.to_json(), place="")
        return Done((output,), _told(calibration, task))

    def _fit(self, payload: Values, context: Context) -> Calibration:
        folds, point = payload["folds"], payload["point"]
        queries = 0
        with ExitStack() as held:
            counts = [held.enter_context(SpilledCounts(LIMIT // folds)) for _ in range(folds)]
            for name in payload["aligned"]:
                table = context.read(name)
                queries += pc.count_distinct(table["query_id"]).as_py()
                for fold, rows in by_fold(table, folds):
                    counts[fold].add(Counts.of(rows))
            trained_on = {"aligned": fingerprint(payload["aligned"]), "queries": queries, **point, **payload["of"]}
            return fit_parts(counts, trials=point["trials"], beta=point["beta"], trained_on=trained_on)

    def _fit_steps(self, payload: Values, context: Context) -> Procedure:
        settings = Calibrate.model_validate(payload["calibrate"])
        point = Point(payload["point"]["trials"], payload["point"]["beta"])
        _, steps = procedures(settings, point)
        by_document = payload["by_document"]
        steps = replace(steps, sides=read_sides(context, payload), by_document=by_document, documents=by_document)
        own = settings.threshold == "own"

        def parts() -> Iterator[pa.Table]:
            return (context.read(name) for name in payload["aligned"])

        if "file" not in payload:
            return fit_procedure(
                parts,
                steps,
                folds=payload["folds"],
                own=own,
                point=point,
                trained_on={"aligned": fingerprint(payload["aligned"]), **payload["point"], **payload["of"]},
                asked=payload["asked"],
            )
        data = calibration_file(payload["file"], context.storage)
        steps = steps.with_file(data, payload["file"], thresholds=not own or steps.own_threshold is None)
        return completed(steps, parts, folds=1, own=own, point=point)


def _point(inputs: Inputs) -> Values:
    """What a threshold is fitted for."""
    settled = point_of(inputs)
    return {name: getattr(settled, name) for name in ("protocol", "trials", "beta", "true")}


def _told(fitted: Procedure | Calibration, task: Task) -> Fitted:
    return Fitted("oracle" if task.payload.get("seen") else fitted.fit, list(fitted.thresholds))


def _seen(inputs: Inputs, data: str) -> list[str]:
    """What names a task whose file was fitted on what is scored; a file of other data names it by its content alone."""
    own = inputs.own(CorpusInputs)
    scored = own.corpus.references is not None and own.corpus.references.num_rows > 0
    return ["fitted on what is scored"] if scored and is_of_scored(data.encode(), inputs.config, own) else []


def _given(inputs: Inputs) -> str:
    """The content of the file that the config names, once it was told whether it fits."""
    own, path = inputs.own(CorpusInputs), inputs.config.calibrate.fit
    data = calibration_file(path, inputs.config.storage)
    if own.first_look(f"{inputs.config.system}, {path}"):
        tell_of_provenance(data, path, inputs.config, own, own.noted)
    return data.decode("utf-8", "replace")
