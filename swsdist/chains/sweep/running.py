"""Run the plans of a sweep, and gather the results of each point.

All plans run together. If an error of one point ends that, the plans run one by one, so that only that
point fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.calibrate.rescoring import query_values
from swsdist.chains.sweep.chain import ScorePoints, point_id
from swsdist.chains.sweep.planning import FITTED, RESCORED, PlannedPoint, Plans, PointGroup, SweepPoint, alpha_of
from swsdist.config import Config
from swsdist.core.errors import DataError, LockedError, StorageError, UserError
from swsdist.evaluation.comparison import finite_threshold, values_at
from swsdist.pipeline.chain_run import ChainRun, Outcome, StepSelection
from swsdist.pipeline.driver import run_plans
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.task import Receipt, Values
from swsdist.registry.registries import quantities
from swsdist.score.measures.curve import Ranking
from swsdist.score.measures.protocol import OperatingPoint, protocol_of
from swsdist.score.measures.twv import optimum, optimum_rows
from swsdist.stages.buckets import Fitted, Measured
from swsdist.stages.inputs.provenance import named_calibration
from swsdist.stages.score import point_of, scored_queries

Ints = NDArray[np.int64]


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
            {name: row[name] for name in (RESCORED if group.by_term else FITTED)},
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
        counts: references, hits and false alarms of each.
        beta: weight of false alarms.
        trials: T.
    """
    ntrue, hits, false_alarms = counts
    if objective.endswith("_threshold"):
        return {}
    if objective.endswith("twv"):
        results = query_values(ntrue, hits, false_alarms, beta=beta, trials=trials)
    else:
        results = (ntrue - hits) / ntrue if objective.endswith("_pmiss") else false_alarms / (trials - ntrue)
    return dict(zip(names, results.tolist(), strict=True))
