"""The chain sweep, which scores one search at many points, and the runs of a sweep's plans.

`swsdist sweep` makes the plans of the chain::

    (align.train of a search) -> fit-calibration -> sort-scores -> score_points
    (reduce of a search, if it gives posteriors) --^

The points of a plan use KST or STO, and differ only in alpha, beta and method; or they use fitted thresholds, and
differ only in beta and folds. The aligned list is read once, to be sorted; a task then scores some points, and a
process that does several tasks keeps the sorted list.

All plans of a sweep run together. If an error of one point ends that, the plans run one by one, so that only that
point fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.calibrate.procedure import Procedure, fit_models, procedures
from swsdist.calibrate.rescoring import (
    RANKS,
    TERMS_OF,
    CompactList,
    RescoredPoints,
    Rescoring,
    compact_list,
    query_values,
    rescore_fitted,
)
from swsdist.calibrate.statistics import CandidatePosteriors, from_table, posterior_sums
from swsdist.calibrate.steps.interface import TwvParameters
from swsdist.chains.sweep.planning import FITTED, PlannedPoint, Plans, PointGroup, SweepPoint, alpha_of
from swsdist.chains.sweep.planning import RESCORED as RESCORED_MEASURES
from swsdist.config import Config
from swsdist.config.model import Calibrate
from swsdist.core.arrays import Floats, Ints
from swsdist.core.codes import families
from swsdist.core.errors import DataError, LockedError, StorageError, UserError
from swsdist.core.fingerprint import fingerprint
from swsdist.core.types import TRIALS, columns
from swsdist.evaluation.comparison import finite_threshold, values_at
from swsdist.pipeline.chain import Chain, ChainInputs, Context, ExternalTable, Inputs, Stage, Step, Table
from swsdist.pipeline.chain_run import ChainRun, Outcome, StepSelection
from swsdist.pipeline.driver import run_plans
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.task import Receipt, Task, TaskOutput, Values
from swsdist.registry.registries import quantities
from swsdist.score.measures.curve import Ranking
from swsdist.score.measures.protocol import OperatingPoint, protocol_of
from swsdist.score.measures.twv import optimum, optimum_rows
from swsdist.stages.buckets import Bucket, BucketStage, Fitted, Measured
from swsdist.stages.inputs.provenance import calibration_file, named_calibration
from swsdist.stages.score import point_of, scored_queries


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
    """The stage sort-scores: sorted scores of a bucket, as `swsdist.calibrate.rescoring` needs them."""

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


#: One row per point: its id (`point_id`), ATWV and mean rates, for a fitted threshold MTWV too; and by query with references
#: (by id) hits and false alarms of the decisions, and of the maximum.
RESCORED = columns(
    "point string, atwv float64, atwv_pmiss float64, atwv_pfa float64, mtwv float64?, mtwv_pmiss float64?, "
    "mtwv_pfa float64?, mtwv_threshold float64?, hits int32[], false_alarms int32[], best_hits int32[]?, "
    "best_false_alarms int32[]?"
)
#: Queries with references, by id, and their number of references.
QUERIES_OF = columns("query_id string, ntrue int64")

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
    """Score points from the sorted list, which a process keeps for its next task."""

    name = "score_points"
    version = 1
    unit = "points"
    phase = "score"
    takes = {"terms": "terms", "ranks": "ranks", "contested": "contested"}
    tables = {"rescored": Table(RESCORED, None, digested=False), "queries": Table(QUERIES_OF, None, digested=False)}

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
    """The stage fit-calibration; the fit equals that of a run at any point: it depends on neither alpha nor beta."""

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
        raise families.UNUSED_OPTION(
            "the chain sweep has no options {options}",
            "leave chain: sweep to `swsdist sweep`, which writes its options",
            where="options",
            options=", ".join(config.options),
        )
    searched = str(config.options.get("searched", ""))
    reads = {"trials": ExternalTable(config.run, "aligned", searched)} if searched else {}
    listed = dict(reads)
    if searched and config.options.get("sums"):
        listed["statistics"] = ExternalTable(config.run, "statistics", searched)
    stages = Step("fit-calibration", FitCalibration(), reads), Step("sort-scores", SortScores(), listed), ScorePoints()
    return Chain("sweep", stages, ChainInputs())


@dataclass(frozen=True)
class PointResult:
    """The result of a point.

    Attributes:
        point: of the plan.
        measures: by name; None if undefined.
        values: of each query with references, by id; their mean is the objective. Empty if the objective is not a mean.
        cpu: CPU seconds of all its tasks.
        share: the same, with each task's cost divided by the number of its points.
        failed: the error message, if it failed.
    """

    point: SweepPoint
    measures: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)
    cpu: float = 0.0
    share: float = 0.0
    failed: str = ""


@dataclass
class SweepRun:
    """A sweep that was run.

    Attributes:
        results: of all points, in order.
        searches: runs of the searches that several points are scored from, by name of the group.
        rescorings: runs of the chain `sweep`, by name of the group.
        notices: warnings, each once.
        tasks_done: tasks that were done now.
        wall: seconds of these tasks.
    """

    results: list[PointResult] = field(default_factory=list)
    searches: dict[str, ChainRun] = field(default_factory=dict)
    rescorings: dict[str, ChainRun] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    tasks_done: int = 0
    wall: float = 0.0


#: Errors of one point; errors of locks and file systems concern all.
_OF_A_POINT = (UserError, DataError)
_OF_ALL = (LockedError, StorageError)


def run_sweep(plans: Plans, objective: str, progress: Progress) -> SweepRun:
    """Run the unfinished points of a sweep.

    Args:
        plans: to run.
        objective: a measure; if it is a mean over queries, their values are gathered too.
        progress: receives events.

    Raises:
        LockedError: another process works in the run folder.
        StorageError: a file system or server fails.
    """
    swept, failed = SweepRun(), dict[str, str]()
    searches = _run_all(
        {name: group.config for name, group in plans.groups.items()}, "aligned", progress, swept, failed
    )
    scored = {
        f"{name}.points": _rescoring(group, searches[name]) for name, group in plans.groups.items() if name in searches
    }
    rescored = _run_all(scored, None, progress, swept, failed)
    single = _run_all({name: point.config for name, point in plans.single.items()}, None, progress, swept, failed)
    swept.searches = searches
    swept.rescorings = {name: rescored[f"{name}.points"] for name in plans.groups if f"{name}.points" in rescored}
    uses = _task_uses([*single.values()], swept)
    results: dict[int, PointResult] = {}
    for name, point in plans.single.items():
        if name in single:
            results[point.number] = _own_plan_result(point, single[name], objective, uses)
        else:
            results[point.number] = PointResult(point, failed=failed[name])
    for name, group in plans.groups.items():
        why = failed.get(name) or failed.get(f"{name}.points")
        if why is not None:
            results |= {point.number: PointResult(point, failed=why) for point in group.points}
        else:
            results |= _group_results(group, swept.searches[name], swept.rescorings[name], objective, uses)
    swept.results = [results[point.number] for point in plans.points]
    swept.notices = notices_of([*searches.values(), *single.values()])
    return swept


def notices_of(chain_runs: Iterable[ChainRun]) -> list[str]:
    """Warnings of these runs, and counts of rejected inputs."""
    results: dict[str, None] = {}
    for chain_run in {id(chain_run.chain.inputs): chain_run for chain_run in chain_runs}.values():
        results |= dict.fromkeys(chain_run.notices())
        rejected: dict[tuple[str, str], list[Values]] = {}
        for row in chain_run.rejected().to_pylist():
            if row["kind"] != "task":
                rejected.setdefault((row["kind"], row["reason"]), []).append(row)
        for (kind, reason), rows in sorted(rejected.items()):
            first = rows[0]
            line = f"{len(rows)} {kind}(s) rejected, {reason}; the first: {first['path'] or first['id']}: {first['message']}"
            results[line] = None
    return list(results)


def _run_all(
    configs: Mapping[str, Config], table: str | None, progress: Progress, swept: SweepRun, failed: dict[str, str]
) -> dict[str, ChainRun]:
    """Run plans of a chain together up to a table, or one by one if one fails; return the complete ones."""
    done: dict[str, ChainRun] = {}
    # Steps of one name are of one stage in a chain only.
    for chain in dict.fromkeys(config.chain for config in configs.values()):
        some = {name: config for name, config in configs.items() if config.chain == chain}
        try:
            outcome = _run(some, table, progress, swept)
            done |= {name: chain_run for name, chain_run in outcome.chain_runs.items() if _is_complete(chain_run)}
        except _OF_ALL:
            raise
        except _OF_A_POINT:
            continue  # one by one
    for name, config in configs.items():
        if name in done:
            continue
        try:
            outcome = _run({name: config}, table, progress, swept)
        except _OF_ALL:
            raise
        except _OF_A_POINT as error:
            failed[name] = str(error).replace("\n  remedy:", "; remedy:")  # the caller adds a line break
            continue
        if _is_complete(outcome.chain_run):
            done[name] = outcome.chain_run
        else:
            first = outcome.failures[0]
            failed[name] = f"{first.task.stage}, {first.task.label}: {first.message}"
    return done


def _run(configs: Mapping[str, Config], table: str | None, progress: Progress, swept: SweepRun) -> Outcome:
    outcome = run_plans(configs, StepSelection(table=table, shared=True), progress)
    swept.tasks_done += outcome.tasks_done
    swept.wall += outcome.wall
    return outcome


def _is_complete(chain_run: ChainRun) -> bool:
    ended = [chain_run.outcomes.get(step.name) for step in chain_run.steps]
    return all(item is not None and not item.failures for item in ended)


def point_at(config: Config, chain_run: ChainRun) -> OperatingPoint:
    """The operating point of a point's config, given the run of its search."""
    return point_of(_searching(config, chain_run))


def _searching(config: Config, chain_run: ChainRun) -> Inputs:
    return Inputs(config, chain_run.ledger, chain_run.chain.inputs, ("", 0))


def _rescoring(group: PointGroup, search: ChainRun) -> Config:
    """The config of the plan that scores a group."""
    rules = protocol_of(group.config.score)
    options = {
        "searched": group.name,
        "queries": sorted(scored_queries(_searching(group.config, search))),
        "sums": group.of_candidates,
        "tolerance": rules.tolerance if group.by_term else None,
        "conventions": rules.conventions,
        "rejects_all": rules.rules.rejects_all,
        "points": [values_of(point, search) for point in group.points],
    }
    return group.config.model_copy(update={"chain": "sweep", "options": options})


def values_of(point: PlannedPoint, search: ChainRun) -> Values:
    """A point as an option of the chain `sweep`."""
    at = point_at(point.config, search)
    if point.method == "fitted":
        settings = point.config.calibrate
        folds = 1 if settings.fit == "oracle" else settings.folds
        return {"method": point.method, "folds": folds, "beta": at.beta, "trials": at.trials}
    alpha = 1.0 if point.method == "oracle-kst" else alpha_of(point.config.calibrate)
    return {"method": point.method, "alpha": alpha, "beta": at.beta, "trials": at.trials}


# -- results --------------------------------------------------------------------------------------------------------


def _task_uses(single: list[ChainRun], swept: SweepRun) -> dict[tuple[str, str], int]:
    """How many points need a task."""
    results: dict[tuple[str, str], int] = {}

    def count(chain_run: ChainRun, many: int) -> None:
        for receipt in receipts_of(chain_run):
            key = receipt.stage, receipt.fingerprint
            results[key] = results.get(key, 0) + many

    for chain_run in single:
        count(chain_run, 1)
    for name, chain_run in swept.rescorings.items():
        many = len(chain_run.config.options["points"])  # type: ignore[arg-type]
        for item in (swept.searches[name], chain_run):
            count(item, many)
    return results


def receipts_of(chain_run: ChainRun) -> Iterator[Receipt]:
    """Receipts of a plan, including all of its store, whose earlier tasks are not planned again."""
    for step in chain_run.steps:
        place = chain_run.place(step)
        if place:
            yield from chain_run.ledger.receipts(step.stage.name, place).values()
        elif step.name in chain_run.outcomes:
            yield from chain_run.outcomes[step.name].receipts


def _cost(receipts: list[Receipt], uses: Mapping[tuple[str, str], int]) -> tuple[float, float]:
    cpu = sum(receipt.cost.cpu for receipt in receipts)
    share = sum(receipt.cost.cpu / max(1, uses.get((receipt.stage, receipt.fingerprint), 1)) for receipt in receipts)
    return round(cpu, 3), round(share, 3)


def _own_plan_result(
    point: PlannedPoint, chain_run: ChainRun, objective: str, uses: Mapping[tuple[str, str], int]
) -> PointResult:
    scored = chain_run.results("measures", Measured)
    cpu, share = _cost(list(receipts_of(chain_run)), uses)
    if any(each.fit == "oracle" for each in chain_run.results("calibration", Fitted)):
        point = replace(point, oracle=True)  # a file may have been fitted on the scored references
    if not scored:
        return PointResult(point, cpu=cpu, share=share, failed="nothing was scored: there are no references")
    measures = scored[0].measures
    return PointResult(point, measures, _values(chain_run, objective, scored[0]), cpu, share)


def _values(chain_run: ChainRun, objective: str, scored: Measured) -> dict[str, float]:
    """The values of queries with references whose mean is the objective."""
    at = OperatingPoint(**scored.point)
    if objective == "otwv":  # a query's row does not show whether rejecting everything is allowed
        lists = chain_run.read("trials")
        rows = [optimum_rows(Ranking.of(table), trials=at.trials, beta=at.beta) for table in lists]
        best = optimum(pa.concat_tables(rows), beta=at.beta)
        return dict(sorted(zip(best.names.to_pylist(), best.twv.tolist(), strict=True)))
    column = quantities()[objective].by_query
    if not column:
        return {}
    if f"{objective}_threshold" in quantities():
        threshold = finite_threshold(
            *(scored.measures[f"{objective}_{name}"] for name in ("threshold", "pmiss", "pfa"))
        )
        tables = [values_at(chain_run.read("trials"), threshold, at.trials, at.beta)]
    else:
        tables = list(chain_run.read("terms"))
    results: dict[str, float] = {}
    for table in tables:
        for query, ntrue, value in zip(
            *(table[name].to_pylist() for name in ("query_id", "ntrue", column)), strict=True
        ):
            if ntrue and value is not None:
                results[query] = value
    return dict(sorted(results.items()))


def _group_results(
    group: PointGroup, search: ChainRun, chain_run: ChainRun, objective: str, uses: Mapping[tuple[str, str], int]
) -> dict[int, PointResult]:
    ids = {point.number: values_of(point, search) for point in group.points}
    rows: dict[str, Values] = {}
    shares: dict[str, float] = {}
    cpu_by_point: dict[str, float] = {}
    for receipt in chain_run.table("rescored").receipts:
        points = receipt.result["points"]
        for item in points:
            cpu_by_point[point_id(item)] = receipt.cost.cpu
            shares[point_id(item)] = receipt.cost.cpu / len(points)
    for table in chain_run.read("rescored"):
        for row in table.to_pylist():
            rows[row["point"]] = row
    (queries, *_) = list(chain_run.read("queries"))
    names, ntrue = queries["query_id"].to_pylist(), queries["ntrue"].to_numpy()
    fitted = group.config.calibrate.fit in ("crossfit", "oracle")
    of_scored = not fitted and named_calibration(group.config, search.chain.inputs)[1]
    before = [
        receipt for receipt in (*receipts_of(search), *receipts_of(chain_run)) if receipt.stage != ScorePoints.name
    ]
    cpu, share = _cost(before, uses)
    results: dict[int, PointResult] = {}
    for point in group.points:
        at = ids[point.number]
        row = rows[point_id(at)]
        kept = ("best_hits", "best_false_alarms") if objective.startswith("mtwv") else ("hits", "false_alarms")
        counts = ntrue, *(np.array(row[name], np.int64) for name in kept)
        values = values_by_query(objective, names, counts, beta=at["beta"], trials=at["trials"])
        results[point.number] = PointResult(
            replace(point, oracle=True) if of_scored else point,
            {name: row[name] for name in (RESCORED_MEASURES if group.by_term else FITTED)},
            values,
            round(cpu + cpu_by_point[point_id(at)], 3),
            round(share + shares[point_id(at)], 6),
        )
    return results


def values_by_query(
    objective: str, names: Sequence[str], counts: tuple[Ints, Ints, Ints], *, beta: float, trials: int
) -> dict[str, float]:
    """Values of queries whose mean is the objective.

    Args:
        objective: `atwv` or `mtwv`, or their rates; others are no means.
        names: ids of the queries.
        counts: references, hits and false alarms of each query, int64 (queries,).
        beta: weight of false alarms.
        trials: T, trials of each query.
    """
    ntrue, hits, false_alarms = counts
    if objective.endswith("_threshold"):
        return {}
    if objective.endswith("twv"):
        results = query_values(ntrue, hits, false_alarms, beta=beta, trials=trials)
    else:
        results = (ntrue - hits) / ntrue if objective.endswith("_pmiss") else false_alarms / (trials - ntrue)
    return dict(zip(names, results.tolist(), strict=True))
