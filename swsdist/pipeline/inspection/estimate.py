"""`--dry-run` tells what is left to do, how much work it is, and what it may cost, judged by earlier receipts.

The simulator of `swsdist.pipeline.forecast` says how long it may take with the workers that the config asks for.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from swsdist.accounts.hardware import describe
from swsdist.config import Config
from swsdist.io.filesystem import Folder
from swsdist.pipeline.chain import Step
from swsdist.pipeline.chain_run import ChainRun, StepSelection, plan_rounds, prepare_chain_run
from swsdist.pipeline.external_table import ExternalTable
from swsdist.pipeline.forecast.cluster import Cluster, Kind, Load
from swsdist.pipeline.forecast.costs import StepCost, cost_of
from swsdist.pipeline.forecast.forecast import Forecast, rules_of, simulate
from swsdist.pipeline.ledger import Ledger, StepOutcome
from swsdist.pipeline.plan import ONLY
from swsdist.pipeline.records.receipts import Receipts

#: Times that the seconds of tasks are drawn.
_DRAWS = 5


@dataclass(frozen=True)
class Estimate:
    """The estimate of one step. `tasks` and `work` are None where they depend on steps that have not ended.

    `left` is the work of each task that is left, as far as it is known, and `cost` what earlier ones took, if there are any.
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
    """Plan without doing: exact as far as what is planned stands, estimated beyond; first of the runs that come first."""
    chain_run = prepare_chain_run(ONLY, config, Ledger(Folder(config.run, config.storage)), selection)
    result = []
    exact = True
    for name, before in (chain_run.chain.prerequisites() if chain_run.chain.prerequisites is not None else {}).items():
        rows = estimates(before, StepSelection(keep_going=selection.keep_going))
        result += [replace(row, stage=f"{name}: {row.stage}") for row in rows]
        exact &= all(row.tasks is not None and row.tasks == row.done for row in rows)
    for step in chain_run.steps:
        if not exact and any(isinstance(source, ExternalTable) for word in step.reads for source in step.sources(word)):
            result.append(Estimate(step.name, step.stage.unit, None, 0, None, None))  # what it reads is not there yet
            continue
        known = chain_run.ledger.receipts(step.stage.name, chain_run.inputs(step).place)
        cost = _cost(step, known)
        spent = 0.0 if cost is None else float(cost.work.sum())
        rate = cost.cpu_s / spent if cost is not None and spent > 0 else None  # CPU seconds a unit of work
        if exact:
            estimate, exact = _planned(chain_run, step, rate)
            estimate = replace(estimate, cost=cost)
        else:
            work = step.stage.expected(chain_run.inputs(step))
            cpu = None if rate is None else work * rate if work is not None else _before(known)
            estimate = Estimate(step.name, step.stage.unit, None, 0, work, cpu, _cut(work, cost), cost)
        result.append(estimate)
    return result


def _cost(step: Step, known: Receipts) -> StepCost | None:
    return cost_of(step, known.table().take(pa.array(known.current_rows()))) if known else None


def _planned(chain_run: ChainRun, step: Step, rate: float | None) -> tuple[Estimate, bool]:
    """A step whose inputs stand, and whether it leaves its own: nothing is written here, so what follows can be planned only
    where nothing is left to do."""
    ended = chain_run.outcomes[step.name] = StepOutcome()
    tasks = done = 0
    works: list[float] = []
    left = False
    for plan_round in plan_rounds(chain_run, step):
        ended.receipts += plan_round.done
        tasks, done = tasks + len(plan_round.names), done + len(plan_round.done)
        works += plan_round.left.works
        if plan_round.left:
            left = True
            break
    work = sum(works)
    cpu = 0.0 if not left else None if rate is None else work * rate
    return Estimate(step.name, step.stage.unit, tasks, done, work, cpu, tuple(works)), not left


def _cut(work: float | None, cost: StepCost | None) -> tuple[float, ...]:
    """The work of each task of a step that cannot be planned yet: they are taken to be of the size of earlier ones."""
    if cost is None or work == 0:
        return ()
    if work is None or not float(cost.work.sum()):
        return tuple(map(float, cost.work))  # as the last time
    tasks = max(1, round(work / float(cost.work.mean())))
    return (work / tasks,) * tasks


def forecast_remaining(config: Config, rows: Sequence[Estimate]) -> Forecast | None:
    """How long what is left may take with the config's workers; None where a step is unknown, or the cluster is."""
    settings = config.executor
    if any(row.cost is None and (row.left or row.tasks is None) for row in rows):
        return None
    if not any(row.left for row in rows):
        return None
    if settings.kind == "serial":
        workers: int | None = 1
    else:
        here = None if settings.address or os.environ.get("RAY_ADDRESS") else describe()["cores"]
        workers = settings.workers or (here and max(1, here // settings.cpus_per_worker))
    if workers is None:
        return None
    node = Kind(cpus=workers * settings.cpus_per_worker)
    cluster = Cluster((node,), start_s=0.0) if settings.kind == "serial" else Cluster((node,))
    several = [[_load(row, seed) for row in rows if row.left] for seed in range(_DRAWS)]
    return simulate(several, cluster, rules_of(settings))


def _load(row: Estimate, seed: int) -> Load:
    assert row.cost is not None
    draw = random.Random(seed)
    jobs = [row.cost.job(f"{row.stage}-{k}", work, draw) for k, work in enumerate(row.left)]
    return Load(row.stage, jobs, row.cost.in_driver, row.cost.driver_s, row.cost.gap_s)


def _before(receipts: Receipts) -> float:
    """CPU seconds of a step the last time: the best guess where its work is not known yet."""
    table = receipts.table().take(pa.array(receipts.current_rows()))
    user, system, finished = (table[name].to_numpy() for name in ("cpu_user", "cpu_system", "finished"))
    return float((user + system)[finished > finished.max(initial=0.0) - 3600].sum())
