"""fit: the threshold, from aligned lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.calibrate.threshold import Calibration, fit, fold_of
from swsdist.errors import ConfigError
from swsdist.fingerprint import fingerprint
from swsdist.io.filesystem import Folder, locate
from swsdist.run.stages.align import aligned_name
from swsdist.run.state import State
from swsdist.run.task import Context, Done, Stage, Task
from swsdist.score import Counts, beta, number_of_trials, protocol
from swsdist.store.parquet import Output, describe, read


def calibration_name(fingerprint: str) -> str:
    """Where a calibration lies in the run folder."""
    return f"calibration/{fingerprint}.json"


def operating_point(state: State) -> dict[str, Any]:
    """Trials and beta of this run's protocol, from its data where the protocol says so."""
    settings = state.config.score
    rules = protocol(
        settings.protocol,
        beta=settings.beta,
        tolerance=settings.tolerance,
        trials_per_second=settings.trials_per_second,
    )
    true = state.references.num_rows if state.references is not None else 0
    return {
        "protocol": rules.name,
        "trials": number_of_trials(rules, state.seconds),
        "beta": beta(rules, state.seconds, true),
        "true": true,
    }


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
        if settings.fit not in ("crossfit", "oracle"):
            data = _file(settings.fit, state.config.storage)
            name = fingerprint(self.name, self.version, data.decode("utf-8", "replace"))
            yield Task(self.name, name, f"from {settings.fit}", 1, {"file": settings.fit})
            return
        if state.references is None or state.references.num_rows == 0:
            return
        folds = 1 if settings.fit == "oracle" else settings.folds
        aligned = [receipt.fingerprint for receipt in state.ended["align"].receipts]
        point = operating_point(state)
        name = fingerprint(self.name, self.version, folds, aligned, point)
        work = sum(receipt.summary["trials"] for receipt in state.ended["align"].receipts)
        yield Task(self.name, name, settings.fit, work, {"aligned": aligned, "folds": folds, "point": point})

    def run(self, task: Task, context: Context) -> Done:
        """Thresholds of the maximum TWV."""
        if "file" in task.payload:
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
            ids = table["query_id"].combine_chunks().dictionary_encode()
            fold = {q: fold_of(q, folds) for q in ids.dictionary.to_pylist()}
            queries += len(fold)
            of_row = pa.array([fold[q] for q in ids.dictionary.to_pylist()], pa.int32()).take(ids.indices)
            for k in sorted(set(fold.values())):
                counts[k] = counts[k] + Counts.of(table.filter(pc.equal(of_row, k)))
        trained_on = {"aligned": fingerprint(payload["aligned"]), "queries": queries, **point}
        return fit(counts, folds, trials=point["trials"], beta=point["beta"], trained_on=trained_on)


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
