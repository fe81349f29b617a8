"""This module runs the plans of a sweep, and gathers what came of each point.

All plans run side by side. Where the user's mistake or broken data in one of them ends that, they run one after the other, so a
point that cannot be done is told and the others are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.calibrate.points.rescoring import query_values
from swsdist.chains.sweep.planning import FITTED, RESCORED, PlannedPoint, Plans, PointGroup, SweepPoint, alpha_of
from swsdist.chains.sweep.score_points import point_id
from swsdist.config import Config
from swsdist.core.errors import DataError, LockedError, StorageError, UserError
from swsdist.evaluation.properties import threshold_of
from swsdist.pipeline.chain_run import ChainRun, Outcome, StepSelection
from swsdist.pipeline.driver import run_plans
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.task import Receipt, Values
from swsdist.registry.registries import quantities
from swsdist.score import per_term
from swsdist.score.compare.paired import decided_at
from swsdist.score.measures.optimum import optimum, optimum_rows
from swsdist.score.measures.protocol import OperatingPoint, protocol_of
from swsdist.score.measures.ranking import Ranking
from swsdist.stages.inputs.provenance import named_calibration
from swsdist.stages.operating_point import point_of
from swsdist.stages.task_results import Fitted, Measured

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PointResult:
    """What came of a point.

    Attributes:
        point: as it was planned.
        measures: by name; None where one is not defined.
        values: of each query with references, by id: those of which the objective is the mean; empty where it is no mean.
        threshold: that decides, where one does for all queries.
        cpu: CPU seconds of all tasks that it needs.
        share: the same, each task's divided by the number of points that need it.
        failed: what was wrong, if it could not be done.
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
        notices: warnings about what was read and made, each once.
        tasks_done: tasks that were done now.
        wall: seconds that they took.
    """

    results: list[PointResult] = field(default_factory=list)
    searches: dict[str, ChainRun] = field(default_factory=dict)
    rescorings: dict[str, ChainRun] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    tasks_done: int = 0
    wall: float = 0.0


#: Errors that are of one point; what a lock or a file system says is of all.
_OF_A_POINT = (UserError, DataError)
_OF_ALL = (LockedError, StorageError)


def run_sweep(plans: Plans, objective: str, progress: Progress) -> SweepRun:
    """Run what is left of a sweep.

    Args:
        plans: to run.
        objective: a measure, of which values of queries are gathered too, where it is a mean of them.
        progress: is told what happens.

    Raises:
        LockedError: another process works in the run folder.
        StorageError: a file system or server fails.
    """
    swept, failed = SweepRun(), dict[str, str]()
    searches = _run_all(
        {name: group.config for name, group in plans.groups.items()}, "align.train", progress, swept, failed
    )
    scored = {
        f"{name}.points": _rescoring(group, searches[name]) for name, group in plans.groups.items() if name in searches
    }
    rescored = _run_all(scored, None, progress, swept, failed)
    own = _run_all({name: point.config for name, point in plans.single.items()}, None, progress, swept, failed)
    swept.searches = searches
    swept.rescorings = {name: rescored[f"{name}.points"] for name in plans.groups if f"{name}.points" in rescored}
    uses = _task_uses([*own.values()], swept)
    found: dict[int, PointResult] = {}
    for name, point in plans.single.items():
        if name in own:
            found[point.number] = _own_plan_result(point, own[name], objective, uses)
        else:
            found[point.number] = PointResult(point, failed=failed[name])
    for name, group in plans.groups.items():
        why = failed.get(name) or failed.get(f"{name}.points")
        if why is not None:
            found |= {point.number: PointResult(point, failed=why) for point in group.points}
        else:
            found |= _group_results(group, swept.searches[name], swept.rescorings[name], objective, uses)
    swept.results = [found[point.number] for point in plans.points]
    swept.notices = _notices([*searches.values(), *own.values()])
    return swept


def _notices(chain_runs: Sequence[ChainRun]) -> list[str]:
    """What runs of these would warn of, and how many inputs were rejected."""
    found: dict[str, None] = {}
    for chain_run in {id(chain_run.chain.inputs): chain_run for chain_run in chain_runs}.values():
        found |= dict.fromkeys(chain_run.notices())
        rejected: dict[tuple[str, str], list[Values]] = {}
        for row in chain_run.rejected().to_pylist():
            if row["kind"] != "task":
                rejected.setdefault((row["kind"], row["reason"]), []).append(row)
        for (kind, reason), rows in sorted(rejected.items()):
            first = rows[0]
            said = f"{len(rows)} {kind}(s) rejected, {reason}; the first: {first['path'] or first['id']}: {first['message']}"
            found[said] = None
    return list(found)


def _run_all(
    configs: Mapping[str, Config], until: str | None, progress: Progress, swept: SweepRun, failed: dict[str, str]
) -> dict[str, ChainRun]:
    """Run plans side by side, or one after the other where one fails; gives those that are done to the end."""
    if not configs:
        return {}
    try:
        outcome = _run(configs, until, progress, swept)
        done = {name: chain_run for name, chain_run in outcome.chain_runs.items() if _is_complete(chain_run)}
        if len(done) == len(configs):
            return done
    except _OF_ALL:
        raise
    except _OF_A_POINT:
        done = {}
    for name, config in configs.items():
        if name in done:
            continue
        try:
            outcome = _run({name: config}, until, progress, swept)
        except _OF_ALL:
            raise
        except _OF_A_POINT as error:
            failed[name] = str(error).replace("\n  remedy:", "; remedy:")  # who tells of it adds one
            continue
        if _is_complete(outcome.chain_run):
            done[name] = outcome.chain_run
        else:
            first = outcome.failures[0]
            failed[name] = f"{first.task.stage}, {first.task.label}: {first.message}"
    return done


def _run(configs: Mapping[str, Config], until: str | None, progress: Progress, swept: SweepRun) -> Outcome:
    outcome = run_plans(configs, StepSelection(until=until, shared=True), progress)
    swept.tasks_done += outcome.tasks_done
    swept.wall += outcome.wall
    return outcome


def _is_complete(chain_run: ChainRun) -> bool:
    ended = [chain_run.outcomes.get(step.name) for step in chain_run.steps]
    return all(one is not None and not one.failures for one in ended)


def point_at(config: Config, chain_run: ChainRun) -> OperatingPoint:
    """The operating point of a point's config, given the run of its search."""
    inputs = chain_run.inputs(chain_run.chain.step("align.train"))
    inputs.config = config
    return point_of(inputs)


def _rescoring(group: PointGroup, search: ChainRun) -> Config:
    """The config of the plan that scores a group."""
    rules = protocol_of(group.config.score)
    options = {
        "searched": group.name,
        "tolerance": rules.tolerance if group.by_term else None,
        "conventions": rules.conventions,
        "rejects_all": rules.rules.rejects_all,
        "points": [values_of(point, search) for point in group.points],
    }
    return group.config.model_copy(update={"chain": "sweep", "options": options})


def values_of(point: PlannedPoint, search: ChainRun) -> Values:
    """A point as the chain `sweep` takes it."""
    at = point_at(point.config, search)
    if point.method == "fitted":
        settings = point.config.calibrate
        folds = 1 if settings.fit == "oracle" else settings.folds
        return {"method": point.method, "folds": folds, "beta": at.beta, "trials": at.trials}
    alpha = 1.0 if point.method == "oracle-kst" else alpha_of(point.config.calibrate)
    return {"method": point.method, "alpha": alpha, "beta": at.beta, "trials": at.trials}


# -- results --------------------------------------------------------------------------------------------------------


def _task_uses(own: list[ChainRun], swept: SweepRun) -> dict[tuple[str, str], int]:
    """How many points need a task."""
    found: dict[tuple[str, str], int] = {}

    def count(chain_run: ChainRun, many: int) -> None:
        for receipt in _receipts(chain_run):
            key = receipt.stage, receipt.fingerprint
            found[key] = found.get(key, 0) + many

    for chain_run in own:
        count(chain_run, 1)
    for name, chain_run in swept.rescorings.items():
        many = len(chain_run.config.options["points"])  # type: ignore[arg-type]
        for one in (swept.searches[name], chain_run):
            count(one, many)
    return found


def _receipts(chain_run: ChainRun) -> Iterator[Receipt]:
    """Of all that a plan needs; a store's are all that it has, for what it held before is planned no more."""
    for step in chain_run.steps:
        place = chain_run.place(step)
        if place:
            yield from chain_run.ledger.receipts(step.stage.name, place).values()
        elif step.name in chain_run.outcomes:
            yield from chain_run.outcomes[step.name].receipts


def _cost(receipts: list[Receipt], uses: Mapping[tuple[str, str], int]) -> tuple[float, float]:
    cpu = sum(receipt.cost.cpu for receipt in receipts)
    share = sum(one.cost.cpu / max(1, uses.get((one.stage, one.fingerprint), 1)) for one in receipts)
    return round(cpu, 3), round(share, 3)


def _own_plan_result(
    point: PlannedPoint, chain_run: ChainRun, objective: str, uses: Mapping[tuple[str, str], int]
) -> PointResult:
    scored = chain_run.results("score", Measured)
    cpu, share = _cost(list(_receipts(chain_run)), uses)
    if any(told.fit == "oracle" for told in chain_run.results("fit", Fitted)):
        point = replace(point, oracle=True)  # a file may have been fitted on what is scored
    if not scored:
        return PointResult(point, cpu=cpu, share=share, failed="nothing was scored: there are no references")
    measures = scored[0].measures
    return PointResult(point, measures, _values(chain_run, objective, scored[0]), cpu, share)


def _values(chain_run: ChainRun, objective: str, scored: Measured) -> dict[str, float]:
    """Of each query with references, where the objective is the mean of such values."""
    at = OperatingPoint(**scored.point)
    if objective == "otwv":  # of a query's row alone it is not known whether it may reject everything
        lists = chain_run.read("align.final", "trials")
        rows = [optimum_rows(Ranking.of(table), trials=at.trials, beta=at.beta) for table in lists]
        best = optimum(pa.concat_tables(rows), beta=at.beta)
        return dict(sorted(zip(best.names.to_pylist(), best.twv.tolist(), strict=True)))
    column = quantities()[objective].by_query
    if not column:
        return {}
    if f"{objective}_threshold" in quantities():
        threshold = threshold_of(*(scored.measures[f"{objective}_{name}"] for name in ("threshold", "pmiss", "pfa")))
        tables = [
            per_term(decided_at(table, threshold), trials=at.trials, beta=at.beta, best=False)
            for table in chain_run.read("align.final", "trials")
        ]
    else:
        tables = list(chain_run.read("measure", "terms"))
    found: dict[str, float] = {}
    for table in tables:
        for query, ntrue, value in zip(
            *(table[name].to_pylist() for name in ("query_id", "ntrue", column)), strict=True
        ):
            if ntrue and value is not None:
                found[query] = value
    return dict(sorted(found.items()))


def _group_results(
    group: PointGroup, search: ChainRun, chain_run: ChainRun, objective: str, uses: Mapping[tuple[str, str], int]
) -> dict[int, PointResult]:
    ids = {point.number: values_of(point, search) for point in group.points}
    rows: dict[str, Values] = {}
    shares: dict[str, float] = {}
    whole: dict[str, float] = {}
    for receipt in chain_run.receipts("score_points"):
        points = receipt.result["points"]
        for one in points:
            whole[point_id(one)] = receipt.cost.cpu
            shares[point_id(one)] = receipt.cost.cpu / len(points)
    for table in chain_run.read("score_points", "rescored"):
        for row in table.to_pylist():
            rows[row["point"]] = row
    (queries, *_) = list(chain_run.read("score_points", "queries"))
    names, ntrue = queries["query_id"].to_pylist(), queries["ntrue"].to_numpy()
    fitted = group.config.calibrate.fit in ("crossfit", "oracle")
    of_scored = not fitted and named_calibration(group.config, search.chain.inputs)[1]
    before = [one for one in (*_receipts(search), *_receipts(chain_run)) if one.stage != "score_points"]
    cpu, share = _cost(before, uses)
    found: dict[int, PointResult] = {}
    for point in group.points:
        at = ids[point.number]
        row = rows[point_id(at)]
        kept = ("best_hits", "best_false_alarms") if objective.startswith("mtwv") else ("hits", "false_alarms")
        counts = ntrue, *(np.array(row[name], np.int64) for name in kept)
        values = values_by_query(objective, names, counts, beta=at["beta"], trials=at["trials"])
        found[point.number] = PointResult(
            replace(point, oracle=True) if of_scored else point,
            {name: row[name] for name in (RESCORED if group.by_term else FITTED)},
            values,
            round(cpu + whole[point_id(at)], 3),
            round(share + shares[point_id(at)], 6),
        )
    return found


def values_by_query(
    objective: str, names: Sequence[str], counts: tuple[Ints, Ints, Ints], *, beta: float, trials: int
) -> dict[str, float]:
    """Values of queries whose mean the objective is.

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
        found = query_values(ntrue, hits, false_alarms, beta=beta, trials=trials)
    else:
        found = (ntrue - hits) / ntrue if objective.endswith("_pmiss") else false_alarms / (trials - ntrue)
    return dict(zip(names, found.tolist(), strict=True))
