"""fit: the threshold, and the logistic where scores become probabilities, from aligned lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.calibrate.procedure import Procedure, completed, fit_procedure, procedures
from swsdist.calibrate.steps.interface import Point
from swsdist.calibrate.threshold import Calibration, by_fold, fit
from swsdist.chains.search.align import aligned_name
from swsdist.chains.search.point import operating_point
from swsdist.errors import ConfigError
from swsdist.fingerprint import fingerprint
from swsdist.io.filesystem import Folder, locate
from swsdist.pipeline.state import State
from swsdist.pipeline.task import Context, Done, Stage, Task
from swsdist.score import Counts
from swsdist.store.parquet import Output, describe, read


def calibration_name(fingerprint: str) -> str:
    """Where a calibration lies in the run folder."""
    return f"calibration/{fingerprint}.json"


class Fit(Stage):
    """One task: what it reads are counts, not lists."""

    name = "fit"
    version = 1
    phase = "score"
    unit = "detections"
    in_driver = True

    def plan(self, state: State) -> Iterator[Task]:
        """One task, or none: without references only a FILE can decide."""
        settings = state.config.calibrate
        if settings.fit == "none":
            return
        if settings.fitted:
            yield self._plan_steps(state)
            return
        point = operating_point(state)
        first, _ = procedures(settings, Point(point["trials"], point["beta"]))
        if settings.threshold == "own" and first.own_threshold is not None:
            own = first.own_threshold
            name = fingerprint(self.name, self.version, "own", own)
            yield Task(self.name, name, "own", 1, {"own": own})
            return
        if settings.fit not in ("crossfit", "oracle"):
            data = _file(settings.fit, state.config.storage)
            name = fingerprint(self.name, self.version, data.decode("utf-8", "replace"))
            yield Task(self.name, name, f"from {settings.fit}", 1, {"file": settings.fit})
            return
        if state.references is None or state.references.num_rows == 0:
            return
        folds = 1 if settings.fit == "oracle" else settings.folds
        aligned = [receipt.fingerprint for receipt in state.ended["align"].receipts]
        name = fingerprint(self.name, self.version, folds, aligned, point)
        work = sum(receipt.summary["trials"] for receipt in state.ended["align"].receipts)
        yield Task(self.name, name, settings.fit, work, {"aligned": aligned, "folds": folds, "point": point})

    def _plan_steps(self, state: State) -> Task:
        settings = state.config.calibrate
        fitted = settings.fit in ("crossfit", "oracle")
        data = None if fitted else _file(settings.fit, state.config.storage).decode("utf-8", "replace")
        if fitted and (state.references is None or not state.references.num_rows):
            raise ConfigError(
                f"there is no true occurrence to fit a step on: {settings.fitted[0]}",
                where="calibrate.steps",
                remedy="give references, or a fitted file in calibrate.fit",
            )
        folds = settings.folds if settings.fit == "crossfit" else 1
        aligned = [receipt.fingerprint for receipt in state.ended["align"].receipts]
        point = operating_point(state)
        _, steps = procedures(settings, Point(point["trials"], point["beta"]))
        name = fingerprint(self.name, self.version, steps.identity(), settings.threshold, data, folds, aligned, point)
        payload = {"aligned": aligned, "folds": folds, "point": point, "steps": list(settings.fitted)}
        work = sum(receipt.summary["trials"] for receipt in state.ended["align"].receipts)
        label = settings.fit if fitted else f"from {settings.fit}"
        return Task(self.name, name, label, work, payload if fitted else {**payload, "file": settings.fit})

    def run(self, task: Task, context: Context) -> Done:
        """Thresholds of the maximum TWV, or what steps need."""
        if "steps" in task.payload:
            steps = self._fit_steps(task.payload, context)
            output = write_json(context.run, calibration_name(task.fingerprint), steps.to_json())
            return Done((output,), summary={"fit": steps.fit, "thresholds": list(steps.thresholds)})
        if "own" in task.payload:
            calibration = Calibration("own", (task.payload["own"],), {})
        elif "file" in task.payload:
            path = task.payload["file"]
            calibration = Calibration.from_json(_file(path, context.config.storage), path)
        else:
            calibration = self._fit(task.payload, context.run)
        output = write_json(context.run, calibration_name(task.fingerprint), calibration.to_json())
        return Done((output,), summary={"fit": calibration.fit, "thresholds": list(calibration.thresholds)})

    def _fit(self, payload: dict[str, Any], folder: Folder) -> Calibration:
        folds, point = payload["folds"], payload["point"]
        counts: dict[int, Counts] = {fold: Counts.zero() for fold in range(folds)}
        queries = 0
        for name in payload["aligned"]:
            table = read(folder, aligned_name(name))
            queries += pc.count_distinct(table["query_id"]).as_py()
            for fold, rows in by_fold(table, folds):
                counts[fold] = counts[fold] + Counts.of(rows)
        trained_on = {"aligned": fingerprint(payload["aligned"]), "queries": queries, **point}
        return fit(counts, folds, trials=point["trials"], beta=point["beta"], trained_on=trained_on)

    def _fit_steps(self, payload: dict[str, Any], context: Context) -> Procedure:
        settings, point = context.config.calibrate, Point(payload["point"]["trials"], payload["point"]["beta"])
        _, steps = procedures(settings, point)
        own = settings.threshold == "own"

        def parts() -> Iterator[pa.Table]:
            return (read(context.run, aligned_name(name)) for name in payload["aligned"])

        if "file" not in payload:
            trained_on = {"aligned": fingerprint(payload["aligned"]), **payload["point"]}
            return fit_procedure(parts, steps, folds=payload["folds"], own=own, point=point, trained_on=trained_on)
        data = _file(payload["file"], context.config.storage)
        steps = steps.with_file(data, payload["file"], thresholds=not own or steps.own_threshold is None)
        return completed(steps, parts, folds=1, own=own, point=point)


def _file(path: str, storage: Any) -> bytes:
    folder, name = locate(path, storage)
    try:
        return folder.read_bytes(name)
    except FileNotFoundError:
        raise ConfigError(
            "there is no such file",
            where=f"calibrate.fit: {path}",
            remedy="name a file below calibration/ of an earlier run",
        ) from None


def write_json(folder: Folder, name: str, data: bytes) -> Output:
    """Publish a small file, and describe it."""
    with folder.temporary(".json") as path:
        path.write_bytes(data)
        output = describe(path, name)
        folder.publish(path, name)
    return output
