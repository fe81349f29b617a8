"""The chain sweep: scores one search at many points. `swsdist sweep` makes its plans.

::

    (align.train of a search) -> fit-calibration -> sort-scores -> score_points
    (reduce of a search, if it gives posteriors) --^

The points of a plan are of KST and STO, and differ only in alpha, beta and method; or of fitted thresholds, and differ
only in beta and folds. The aligned list is read once, to be sorted; a task then scores some points, and a process that
does several tasks keeps the sorted list.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.calibrate.procedure import Procedure, fit_models, procedures
from swsdist.calibrate.rescoring import (
    RANKS,
    TERMS_OF,
    CompactList,
    RescoredPoints,
    Rescoring,
    compact_list,
    rescore_fitted,
)
from swsdist.calibrate.statistics import CandidatePosteriors, from_table, posterior_sums
from swsdist.calibrate.steps.interface import TwvParameters
from swsdist.config import Config
from swsdist.config.model import Calibrate
from swsdist.core.codes import fuse as codes
from swsdist.core.fingerprint import fingerprint
from swsdist.core.types import TRIALS, columns
from swsdist.pipeline.chain import Chain, ChainInputs, Context, ExternalTable, Stage, Step, Table
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.task import Task, TaskOutput, Values
from swsdist.stages.buckets import Bucket, BucketStage, Fitted
from swsdist.stages.inputs.provenance import calibration_file


class Compacting(NamedTuple):
    """The payload of a task.

    Attributes:
        models, trials: files.
        sums: files of statistics with S(w); None: it is of the list.
        tolerance, conventions: of the sweep.
    """

    models: str
    trials: str
    sums: list[str] | None
    tolerance: float | None
    conventions: str


class SortScores(BucketStage[Compacting]):
    """See `swsdist.calibrate.rescoring`."""

    name = "sort-scores"
    version = 1
    phase = "score"
    takes = {"models": "models"}
    may_take = {"trials": "trials", "statistics": "statistics"}
    tables = {
        "terms": Table(TERMS_OF, digested=False),
        "ranks": Table(RANKS, None, digested=False),
        "contested": Table(TRIALS, digested=False),
    }

    def plan(self, inputs: Inputs) -> Iterator[Task[Compacting]]:
        """A task a bucket."""
        models = inputs.parts("models")
        if not models:
            return  # their stage failed
        rules: Values = {name: inputs.config.options[name] for name in ("tolerance", "conventions")}
        statistics = inputs.parts("statistics") if inputs.config.options.get("sums") else None
        for part in inputs.parts("trials"):
            # A bucket has no statistics if there are references of its queries only.
            beside = None if statistics is None else [item for item in statistics if item.slots == part.slots]
            sums = None if beside is None else [item.name for item in beside]
            key_parts = [] if beside is None else [[item.sha256 for item in beside]]
            payload = Compacting(models[0].name, part.name, sums, **rules)
            yield self.following(part, inputs, models[0].sha256, part.sha256, rules, *key_parts, payload=payload)

    def run(self, task: Task[Compacting], context: Context) -> TaskOutput:
        """Convert scores to probabilities, and sort them."""
        payload, tolerance = task.payload, task.payload.tolerance
        models = Procedure.from_run(context.read_bytes(payload.models))
        aligned = models.scores(context.read(payload.trials))
        results = compact_list(
            aligned,
            tolerance=tolerance,
            conventions=payload.conventions,
            probabilities=tolerance is not None,
            sums=None if payload.sums is None else _sums(payload.sums, context),
        )
        outputs = (
            context.publish(task, "terms", [results.terms], TERMS_OF),
            context.publish(task, "ranks", [results.ranks], RANKS),
            context.publish(task, "contested", [results.contested], TRIALS),
        )
        return TaskOutput(outputs, Bucket(results.terms.num_rows))


def _sums(files: list[str], context: Context) -> dict[str, float]:
    """S(w) of the queries of a bucket, over all candidates."""
    tallies = [from_table(context.read(name)) for name in files]
    name = CandidatePosteriors.name
    return {query: value for item in tallies if name in item for query, value in posterior_sums(item[name]).items()}


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: One row per point: its id (`point_id`), ATWV and mean rates, for a fitted threshold MTWV too; and by query with references
#: (by id) hits and false alarms of the decisions, and of the maximum.
RESCORED = columns(
    "point string, atwv float64, atwv_pmiss float64, atwv_pfa float64, mtwv float64?, mtwv_pmiss float64?, "
    "mtwv_pfa float64?, mtwv_threshold float64?, hits int32[], false_alarms int32[], best_hits int32[]?, "
    "best_false_alarms int32[]?"
)
#: Queries with references, by id, and their number of references.
QUERIES_OF = pa.schema([pa.field("query_id", pa.string(), False), pa.field("ntrue", pa.int64(), False)])

#: Points of a task: a process that is killed loses no more.
POINTS_A_TASK = 64
#: The same for fitted thresholds, where most work is done once per task.
FITTED_A_TASK = 500


class Scoring(NamedTuple):
    """The payload of a task: points, files of each bucket, a name for the list that these are, and the sweep's rules."""

    points: list[Values]
    files: list[list[str]]
    source: str
    tolerance: float | None
    conventions: str
    rejects_all: bool


class ScoredPoints(NamedTuple):
    """The points of a task, and a name for their list."""

    source: str
    points: list[Values]


def point_id(point: Values) -> str:
    """A name for a point: its method, alpha or folds, beta and trials."""
    return fingerprint(point)[:16]


class ScorePoints(Stage[Scoring]):
    """A process keeps the sorted list for its next task."""

    name = "score_points"
    version = 1
    unit = "points"
    phase = "score"
    takes = {"terms": "terms", "ranks": "ranks", "contested": "contested"}
    tables = {
        "rescored": Table(RESCORED, None, digested=False),
        "queries": Table(QUERIES_OF, None, digested=False),
    }

    def plan(self, inputs: Inputs) -> Iterator[Task[Scoring]]:
        """Finished tasks with any of the points, and tasks for the other points."""
        lists, options = list(inputs.buckets("terms", "ranks", "contested")), inputs.config.options
        if not lists:
            return
        files = [[part.name for part in parts] for parts in lists]
        rules: Values = {name: options[name] for name in ("tolerance", "conventions", "rejects_all")}
        source = fingerprint([[part.sha256 for part in parts] for parts in lists], rules)
        points: Any = options["points"]
        left = {point_id(point): point for point in points}

        def task(some: list[Values]) -> Task[Scoring]:
            payload = Scoring(some, files, source, **rules)
            return inputs.task(source, some, label=f"{len(some)} points", work=len(some), payload=payload)

        for _, receipt in sorted(inputs.ledger.receipts(self.name).items()):
            batch = receipt.result_as(ScoredPoints)
            if batch.source == source and any(point_id(point) in left for point in batch.points):
                before = task(batch.points)
                if inputs.redo or inputs.ledger.receipt(before) is None:
                    continue
                for item in batch.points:
                    left.pop(point_id(item), None)
                yield before
        rest = [left[key] for key in sorted(left)]
        step = FITTED_A_TASK if options["tolerance"] is None else POINTS_A_TASK
        for first in range(0, len(rest), step):
            yield task(rest[first : first + step])

    def run(self, task: Task[Scoring], context: Context) -> TaskOutput:
        """Score."""
        payload = task.payload
        list_of = context.cached(self.name, payload.source, lambda: _read(payload, context))
        rows: list[Values] = []
        groups: dict[tuple[str, int, int], list[Values]] = {}
        for point in payload.points:
            groups.setdefault((point["method"], point.get("folds") or 0, point["trials"]), []).append(point)
        for some in groups.values():
            rows += _rows(list_of, some, payload.rejects_all)
            context.report(len(rows) / len(payload.points))
        queries = pa.table([list_of.names, pa.array(list_of.ntrue)], schema=QUERIES_OF)
        outputs = (
            context.publish(task, "rescored", [pa.Table.from_pylist(rows, RESCORED)], RESCORED),
            context.publish(task, "queries", [queries], QUERIES_OF),
        )
        return TaskOutput(outputs, ScoredPoints(payload.source, payload.points))


def _read(payload: Scoring, context: Context) -> Rescoring:
    parts = [CompactList(*(context.read(name) for name in files)) for files in payload.files]
    return Rescoring.of(parts, tolerance=payload.tolerance, conventions=payload.conventions)


def _rows(list_of: Rescoring, some: list[Values], rejects_all: bool) -> list[Values]:
    """Rows of points with the same method, or with thresholds fitted in the same folds."""
    first, beta = some[0], np.array([point["beta"] for point in some], np.float64)
    results: dict[str, RescoredPoints] = {}
    values: dict[str, Floats] = {}
    if first["method"] == "fitted":
        fitted = rescore_fitted(list_of, first["folds"], beta, trials=first["trials"], rejects_all=rejects_all)
        results, values = {"a": fitted.decided, "m": fitted.best}, {"mtwv_threshold": fitted.threshold}
    else:
        alpha = np.array([point["alpha"] for point in some], np.float64)
        results = {"a": list_of.at(first["method"], alpha, beta, trials=first["trials"])}
    counts: dict[str, Ints] = {}
    for letter, item in results.items():
        names = (f"{letter}twv", f"{letter}twv_pmiss", f"{letter}twv_pfa")
        values |= dict(zip(names, item.points, strict=True))
        best = "best_" if letter == "m" else ""
        counts |= {f"{best}hits": item.hits, f"{best}false_alarms": item.false_alarms}
    return [_row(point, k, values, counts) for k, point in enumerate(some)]


def _row(point: Values, k: int, values: Mapping[str, Floats], counts: Mapping[str, Ints]) -> Values:
    row = {name: float(item[k]) for name, item in values.items()}
    numbers = {name: None if math.isnan(value) else value for name, value in row.items()}
    return {"point": point_id(point), **numbers, **{name: item[:, k].tolist() for name, item in counts.items()}}


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
