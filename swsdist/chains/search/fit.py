"""fit: the threshold, and the logistic where scores become probabilities, from aligned lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.calibrate.chain import Chain, completed, fit_chain, thresholds_of
from swsdist.calibrate.logistic import Logistics
from swsdist.calibrate.threshold import Calibration, by_fold, fit
from swsdist.calibrate.thresholding import Thresholding
from swsdist.chains.search.inputs import SearchInputs
from swsdist.chains.search.told import Fitted
from swsdist.errors import ConfigError
from swsdist.fingerprint import fingerprint
from swsdist.io.filesystem import locate
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Done, Task
from swsdist.score import Counts, beta, number_of_trials, protocol


def operating_point(inputs: Inputs) -> dict[str, Any]:
    """Trials and beta of this run's protocol, from its data where the protocol says so."""
    own, settings = inputs.own(SearchInputs), inputs.config.score
    rules = protocol(
        settings.protocol,
        beta=settings.beta,
        tolerance=settings.tolerance,
        trials_per_second=settings.trials_per_second,
    )
    true = own.references.num_rows if own.references is not None else 0
    return {
        "protocol": rules.name,
        "trials": number_of_trials(rules, own.seconds),
        "beta": beta(rules, own.seconds, true),
        "true": true,
    }


class Fit(Stage):
    """One task: what it reads are counts, not lists."""

    name = "fit"
    version = 1
    unit = "detections"
    tables = {"calibration": Table(None, None, digested=False)}
    in_driver = True

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """One task, or none: without references only a FILE can decide."""
        settings, references = inputs.config.calibrate, inputs.own(SearchInputs).references
        if settings.fit == "none":
            return
        if settings.probabilities:
            yield self._plan_chain(inputs)
            return
        if settings.fit not in ("crossfit", "oracle"):
            data = _file(settings.fit, inputs.config.storage)
            yield inputs.task(
                data.decode("utf-8", "replace"),
                label=f"from {settings.fit}",
                work=1,
                payload={"file": settings.fit},
            )
            return
        if references is None or references.num_rows == 0:
            return
        folds = 1 if settings.fit == "oracle" else settings.folds
        aligned = inputs.parts("trials")
        files, point = [part.name for part in aligned], operating_point(inputs)
        yield inputs.task(
            folds,
            files,
            point,
            label=settings.fit,
            work=sum(part.rows for part in aligned),
            payload={"aligned": files, "folds": folds, "point": point},
        )

    def _plan_chain(self, inputs: Inputs) -> Task:
        settings, references = inputs.config.calibrate, inputs.own(SearchInputs).references
        fitted = settings.fit in ("crossfit", "oracle")
        data = None if fitted else _file(settings.fit, inputs.config.storage).decode("utf-8", "replace")
        if fitted and (references is None or not references.num_rows):
            raise ConfigError(
                "there is no true occurrence to fit a logistic on",
                where=f"calibrate.normalise: {settings.normalise}",
                remedy="give references, or a fitted file in calibrate.fit",
            )
        folds = settings.folds if settings.fit == "crossfit" else 1
        aligned = inputs.parts("trials")
        files, point = [part.name for part in aligned], operating_point(inputs)
        chain = [settings.normalise, settings.alpha, settings.threshold]
        payload = {"aligned": files, "folds": folds, "point": point, "chain": chain}
        return inputs.task(
            chain,
            data,
            folds,
            files,
            point,
            label=settings.fit if fitted else f"from {settings.fit}",
            work=sum(part.rows for part in aligned),
            payload=payload if fitted else {**payload, "file": settings.fit},
        )

    def run(self, task: Task, context: Context) -> Done:
        """Thresholds of the maximum TWV, or what a chain needs."""
        if "chain" in task.payload:
            chain = self._fit_chain(task.payload, context)
            output = context.write(task, "calibration", chain.to_json(), place="")
            return Done((output,), Fitted(chain.logistics.fit, list(chain.thresholds)))
        if "file" in task.payload:
            path = task.payload["file"]
            calibration = Calibration.from_json(_file(path, context.storage), path)
        else:
            calibration = self._fit(task.payload, context)
        output = context.write(task, "calibration", calibration.to_json(), place="")
        return Done((output,), Fitted(calibration.fit, list(calibration.thresholds)))

    def _fit(self, payload: dict[str, Any], context: Context) -> Calibration:
        folds, point = payload["folds"], payload["point"]
        counts: dict[int, Counts] = {fold: Counts.zero() for fold in range(folds)}
        queries = 0
        for name in payload["aligned"]:
            table = context.read(name)
            queries += pc.count_distinct(table["query_id"]).as_py()
            for fold, rows in by_fold(table, folds):
                counts[fold] = counts[fold] + Counts.of(rows)
        trained_on = {"aligned": fingerprint(payload["aligned"]), "queries": queries, **point}
        return fit(counts, folds, trials=point["trials"], beta=point["beta"], trained_on=trained_on)

    def _fit_chain(self, payload: dict[str, Any], context: Context) -> Chain:
        point = payload["point"]
        trials, beta = point["trials"], point["beta"]
        kind, alpha, threshold = payload["chain"]
        how = None if kind == "logistic" else Thresholding(kind, trials, beta, alpha)
        own = threshold == "own" and how is not None

        def parts() -> Iterator[pa.Table]:
            return (context.read(name) for name in payload["aligned"])

        if "file" not in payload:
            trained_on = {"aligned": fingerprint(payload["aligned"]), **point}
            return fit_chain(
                parts, how, folds=payload["folds"], own=own, trials=trials, beta=beta, trained_on=trained_on
            )
        data = _file(payload["file"], context.storage)
        chain = Chain(Logistics.from_json(data, payload["file"]), how)
        thresholds = () if own else thresholds_of(data, payload["file"], chain)
        chain = Chain(chain.logistics, how, thresholds)
        return completed(chain, parts, folds=1, own=own, trials=trials, beta=beta)


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
