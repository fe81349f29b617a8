"""fit learns the threshold, and the steps of calibration that are fitted, from aligned lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from swsdist.calibrate.fitting import completed, fit_procedure
from swsdist.calibrate.procedure import Procedure, procedures
from swsdist.calibrate.steps.interface import Point
from swsdist.config.calibration import Calibrate
from swsdist.core.errors import ConfigError
from swsdist.core.fingerprint import fingerprint
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Done, Task, Values
from swsdist.score.measures.protocol import protocol_of
from swsdist.stages.describe import read_sides, sides_of
from swsdist.stages.inputs.known import CorpusInputs
from swsdist.stages.inputs.provenance import calibration_file, named_calibration, provenance
from swsdist.stages.point import asked_of, point_of
from swsdist.stages.told import Fitted


class Fit(Stage):
    """There is one task, for it reads counts and not lists."""

    name = "fit"
    version = 4
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
        entries = settings.entries()
        own = not settings.fitted and settings.threshold == "own"
        if own and any(entries[name].own_threshold for name in settings.unfitted[-1:]):
            settled = point_of(inputs)
            first, _ = procedures(settings, Point(settled.trials, settled.beta))
            if (threshold := first.own_threshold) is not None:
                yield inputs.task("own", threshold, label="own", work=1, payload={"own": threshold})
                return
        fitted = settings.fit in ("crossfit", "oracle")
        read, of_scored = (None, False) if fitted else named_calibration(inputs.config, inputs.own(CorpusInputs))
        data = None if read is None else read.decode("utf-8", "replace")
        seen = (
            ["fitted on what is scored"] if of_scored else []
        )  # a file of other data names a task by its content alone
        if fitted and (references is None or not references.num_rows):
            if not settings.fitted:
                return
            raise ConfigError(
                f"there is no true occurrence to fit a step on: {settings.fitted[0]}",
                where="calibrate.steps",
                remedy="give references, or a fitted file in calibrate.fit",
            )
        folds = settings.folds if settings.fit == "crossfit" else 1
        by_document = protocol_of(inputs.config.score).trials == "document"
        payload: Values = {"calibrate": settings.model_dump(mode="json"), "folds": folds, "by_document": by_document}
        named: list[object] = []
        if fitted or settings.fitted:  # a threshold that is read needs no list
            aligned = inputs.parts("trials")
            files, point = [part.name for part in aligned], _point(inputs)
            payload |= {"aligned": files, "point": point, "of": provenance(inputs.config, inputs.own(CorpusInputs))}
            named = [files, point]
        if settings.fitted:
            _, steps = procedures(settings, Point(point["trials"], point["beta"]))
            payload |= {"sides": (sides := sides_of(inputs)), "asked": sorted(asked_of(inputs)) if fitted else []}
            of_list = by_document and any(step.of_list() for step in steps.steps)
            named += [steps.identity(), settings.threshold, payload["asked"]]
            named += [*([sides] if sides else []), *(["by document"] if of_list else [])]
        yield inputs.task(
            data,
            folds,
            *named,
            *seen,
            label=settings.fit if fitted else f"from {settings.fit}",
            work=sum(part.rows for part in aligned) if named else 1,
            payload=payload if fitted else {**payload, "file": settings.fit, "seen": bool(seen)},
        )

    def run(self, task: Task, context: Context) -> Done:
        """Thresholds of the maximum TWV, and what steps need."""
        if "own" in task.payload:
            fitted = Procedure((), thresholds=(task.payload["own"],), fit="own")
        else:
            fitted = self._fit(task.payload, context)
        output = context.write(task, "calibration", fitted.to_json(), place="")
        fit = "oracle" if task.payload.get("seen") else fitted.fit
        return Done((output,), Fitted(fit, list(fitted.thresholds)))

    def _fit(self, payload: Values, context: Context) -> Procedure:
        settings = Calibrate.model_validate(payload["calibrate"])
        point = Point(payload["point"]["trials"], payload["point"]["beta"]) if "point" in payload else Point(1, 1.0)
        _, steps = procedures(settings, point)
        by_document = payload["by_document"]
        if steps.steps:
            steps = replace(steps, sides=read_sides(context, payload), by_document=by_document, documents=by_document)
        own = settings.threshold == "own"

        def parts() -> Iterator[pa.Table]:
            return (context.read(name) for name in payload.get("aligned", ()))

        if "file" not in payload:
            return fit_procedure(
                parts,
                steps,
                folds=payload["folds"],
                own=own,
                point=point,
                trained_on={"aligned": fingerprint(payload["aligned"]), **payload["point"], **payload["of"]},
                asked=payload.get("asked", ()),
            )
        data = calibration_file(payload["file"], context.storage)
        steps = steps.with_file(data, payload["file"], thresholds=not own or steps.own_threshold is None)
        return completed(steps, parts, folds=1, own=own, point=point)


def _point(inputs: Inputs) -> Values:
    """What a threshold is fitted for."""
    settled = point_of(inputs)
    return {name: getattr(settled, name) for name in ("protocol", "trials", "beta", "true")}
