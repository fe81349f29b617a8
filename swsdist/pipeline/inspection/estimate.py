"""Estimates for `--dry-run`: open tasks, their work, and their cost, extrapolated from earlier receipts.

The simulator of `swsdist.pipeline.forecast` estimates the duration with the configured workers.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from swsdist.accounts.hardware import describe
from swsdist.config import Config
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Step
from swsdist.pipeline.chain_run import ChainRun, StepSelection, plan_rounds, prepare_chain_run
from swsdist.pipeline.chain import ExternalTable
from swsdist.pipeline.forecast.costs import Cluster, Kind, Load
from swsdist.pipeline.forecast.costs import StepCost, cost_of
from swsdist.pipeline.forecast.forecast import Forecast, rules_of, simulate
from swsdist.pipeline.ledger import Ledger, StepOutcome
from swsdist.pipeline.plan import ONLY
from swsdist.pipeline.records.receipts import Receipts

#: Simulated runs, each with other draws.
_DRAWS = 5


@dataclass(frozen=True)
class Estimate:
    """The estimate of one step.

    Attributes:
        stage: name of the step.
        unit: unit of `work`.
        tasks, work: number and work of its tasks; None: depends on open steps.
        done: finished tasks.
        cpu_s: CPU s of the open tasks; None: unknown.
        left: work of each open task, as far as it is known.
        cost: cost of earlier tasks, or None.
    """

    stage: str
    unit: str
    tasks: int | None
    done: int
    work: float | None
    cpu_s: float | None
    left: tuple[float, ...] = ()
    cost: StepCost | None = None


def estimates(config: Config, selection: StepSelection) -> list[Estimate]:
    """Plan without running: exact up to the first step with open tasks, estimated beyond. Prerequisite runs come first."""
    chain_run = prepare_chain_run(ONLY, config, Ledger(Folder(config.run, config.storage)), selection)
    result = []
    exact = True
    for name, before in (chain_run.chain.prerequisites() if chain_run.chain.prerequisites is not None else {}).items():
        rows = estimates(before, StepSelection(keep_going=selection.keep_going))
        result += [replace(row, stage=f"{name}: {row.stage}") for row in rows]
        exact &= all(row.tasks is not None and row.tasks == row.done for row in rows)
    for step in chain_run.steps:
        if not exact and any(isinstance(source, ExternalTable) for word in step.reads for source in step.sources(word)):
            result.append(Estimate(step.name, step.stage.unit, None, 0, None, None))  # its input does not exist yet
            continue
        receipts = chain_run.ledger.receipts(step.stage.name, chain_run.inputs(step).place)
        cost = _cost(step, receipts)
        spent = 0.0 if cost is None else float(cost.work.sum())
        rate = cost.cpu_s / spent if cost is not None and spent > 0 else None  # CPU s per unit of work
        if exact:
            estimate, exact = _planned(chain_run, step, rate)
            estimate = replace(estimate, cost=cost)
        else:
            work = step.stage.expected(chain_run.inputs(step))
            cpu = None if rate is None else work * rate if work is not None else _last_cpu(receipts)
            estimate = Estimate(step.name, step.stage.unit, None, 0, work, cpu, _task_sizes(work, cost), cost)
        result.append(estimate)
    return result


def _cost(step: Step, receipts: Receipts) -> StepCost | None:
    return cost_of(step, receipts.table().take(pa.array(receipts.current_rows()))) if receipts else None


def _planned(chain_run: ChainRun, step: Step, rate: float | None) -> tuple[Estimate, bool]:
    """Estimate a step whose inputs exist.

    Returns:
        The estimate, and whether the step has no open task, so that the next one can be planned exactly.
    """
    outcome = chain_run.outcomes[step.name] = StepOutcome()
    tasks = done = 0
    works: list[float] = []
    left = False
    for plan_round in plan_rounds(chain_run, step):
        outcome.receipts += plan_round.done
        tasks, done = tasks + len(plan_round.names), done + len(plan_round.done)
        works += plan_round.left.works
        if plan_round.left:
            left = True
            break
    work = sum(works)
    cpu = 0.0 if not left else None if rate is None else work * rate
    return Estimate(step.name, step.stage.unit, tasks, done, work, cpu, tuple(works)), not left


def _task_sizes(work: float | None, cost: StepCost | None) -> tuple[float, ...]:
    """Work of each task of a step that cannot be planned yet, assuming the task size of earlier runs."""
    if cost is None or work == 0:
        return ()
    if work is None or not float(cost.work.sum()):
        return tuple(map(float, cost.work))  # as in the last run
    tasks = max(1, round(work / float(cost.work.mean())))
    return (work / tasks,) * tasks


def forecast_remaining(config: Config, rows: Sequence[Estimate]) -> Forecast | None:
    """Forecast of the open tasks with the configured workers; None: a step's cost or the cluster is unknown."""
    settings = config.executor
    if any(row.cost is None and (row.left or row.tasks is None) for row in rows):
        return None
    if not any(row.left for row in rows):
        return None
    in_driver = settings.entry.in_driver
    workers = 1 if in_driver else settings.workers
    if workers is None and settings.cluster is None:
        workers = max(1, describe()["cores"] // settings.cpus_per_worker)
    if workers is None:
        return None
    node = Kind(cpus=workers * settings.cpus_per_worker)
    cluster = Cluster((node,), start_s=0.0) if in_driver else Cluster((node,))
    several = [[_load(row, seed) for row in rows if row.left] for seed in range(_DRAWS)]
    return simulate(several, cluster, rules_of(settings))


def _load(row: Estimate, seed: int) -> Load:
    assert row.cost is not None
    draw = random.Random(seed)
    jobs = [row.cost.job(f"{row.stage}-{k}", work, draw) for k, work in enumerate(row.left)]
    return Load(row.stage, jobs, row.cost.in_driver, row.cost.driver_s, row.cost.gap_s)


def _last_cpu(receipts: Receipts) -> float:
    """CPU s of a step in the last run: the estimate if its work is unknown."""
    table = receipts.table().take(pa.array(receipts.current_rows()))
    user, system, finished = (table[name].to_numpy() for name in ("cpu_user", "cpu_system", "finished"))
    return float((user + system)[finished > finished.max(initial=0.0) - 3600].sum())
