"""The chain sweep: scores one search at many points. `swsdist sweep` makes its plans.

::

    (align.train of a search) -> fit-calibration -> sort-scores -> score_points
    (reduce of a search, if it gives posteriors) --^

The points of a plan are of KST and STO, and differ only in alpha, beta and method; or of fitted thresholds, and differ
only in beta and folds. The aligned list is read once, to be sorted; a task then scores some points, and a process that
does several tasks keeps the sorted list.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from swsdist.calibrate.fitting import fit_models
from swsdist.calibrate.procedure import Procedure, procedures
from swsdist.calibrate.steps.interface import TwvParameters
from swsdist.chains.sweep.score_points import ScorePoints
from swsdist.chains.sweep.sort_scores import SortScores
from swsdist.config import Config
from swsdist.config.calibration import Calibrate
from swsdist.core.codes import sweep as codes
from swsdist.pipeline.chain import Chain, ChainInputs, Step
from swsdist.pipeline.external_table import ExternalTable
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.inputs.provenance import calibration_file
from swsdist.stages.task_results import Fitted


class Learning(NamedTuple):
    """The payload of the task."""

    calibrate: Calibrate
    folds: int
    file: str | None
    aligned: list[str]
    query_ids: list[str]


class FitCalibration(Stage[Learning]):
    """The fit equals that of a run at any of the points, since it depends on neither alpha nor beta."""

    name = "fit-calibration"
    version = 1
    unit = "detections"
    phase = "score"
    may_take = {"trials": "trials"}
    tables = {"models": Table(None, None, digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Learning]]:
        """One task."""
        settings, trials = inputs.config.calibrate, inputs.parts("trials")
        if not trials:
            return
        data = None
        if settings.fit not in ("crossfit", "oracle"):
            data = calibration_file(settings.fit, inputs.config.storage).decode("utf-8", "replace")
        folds = 1 if settings.fit == "oracle" else settings.folds
        file = settings.fit if data is not None else None
        requested: list[str] = inputs.config.options.get("queries", [])  # type: ignore[assignment]
        payload = Learning(settings, folds, file, [part.name for part in trials], requested)
        hashes, work = [part.sha256 for part in trials], sum(part.rows for part in trials)
        key_parts = before_last(settings).identity(), folds if data is None else data, hashes, requested
        yield inputs.task(*key_parts, label=settings.fit, work=work, payload=payload)

    def run(self, task: Task[Learning], context: Context) -> TaskOutput:
        """Fit."""
        payload = task.payload
        steps = before_last(payload.calibrate)

        def parts() -> Iterator[pa.Table]:
            return (context.read(name) for name in payload.aligned)

        if not steps.steps:
            fitted = steps
        elif payload.file is not None:
            data = calibration_file(payload.file, context.storage)
            fitted = steps.with_file(data, payload.file, thresholds=False)
        else:
            fitted = fit_models(parts, steps, folds=payload.folds, trained_on={}, query_ids=payload.query_ids)
        output = context.write(task, "models", fitted.to_json(), place="")
        return TaskOutput((output,), Fitted(fitted.fit, []))


def before_last(settings: Calibrate) -> Procedure:
    """The fitted steps of a config before the last, which is kst or sto."""
    _, steps = procedures(settings, TwvParameters(1, 1.0))  # none of these depends on the operating point
    return replace(steps, steps=steps.steps[:-1], point=None)


def build(config: Config, ledger: Ledger) -> Chain:
    """The chain for a config, whose options `swsdist sweep` writes.

    The options: `searched`, the plan of the search, in the same run folder; `sums`, whether S(w) is the search's statistic over
    all candidates, not the sum over its list; `tolerance` (s) of the mid-point rule, None
    if scores, and so pairs, are the same at all points; `conventions`, the program whose alignment rules apply;
    `rejects_all`, whether a threshold that rejects everything is on the curve of TWV; and `points`, each with `method`
    (`fitted`: the threshold of best TWV), `beta`, `trials`, and `alpha` or `folds` (1: fitted on all); `queries`, those of the
    search, which steps are fitted with.

    Raises:
        ConfigError: unknown options.
    """
    if config.options.keys() - {"searched", "queries", "sums", "tolerance", "conventions", "rejects_all", "points"}:
        raise codes.SWEEP_OPTIONS(where="options", options=", ".join(config.options))
    searched = str(config.options.get("searched", ""))
    reads = {"trials": ExternalTable(config.run, "aligned", searched)} if searched else {}
    listed = dict(reads)
    if searched and config.options.get("sums"):
        listed["statistics"] = ExternalTable(config.run, "statistics", searched)
    stages = Step("fit-calibration", FitCalibration(), reads), Step("sort-scores", SortScores(), listed), ScorePoints()
    return Chain("sweep", stages, ChainInputs())
