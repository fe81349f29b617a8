"""Costs of a run's steps, from their receipts, and of tasks of other sizes.

The duration of a task is modelled by a line in its work, a + b work, times a factor drawn from the residuals of the
receipts. The line passes through the origin (a = 0) if the works differ too little to separate a from b.

The model uses only the wall time of tasks, which includes waiting for disks and for other tasks. It is best measured on a
run with as many workers on a node as in the forecast, and is unreliable from a machine with other load.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.core.needs import LEAST, Needs
from swsdist.pipeline.chain import Step
from swsdist.pipeline.chain_run import ChainRun
from swsdist.pipeline.forecast.cluster import Job
from swsdist.pipeline.stage import Growth

#: A step that begins later than this many seconds after the previous one is of another run.
_SAME_RUN = 600.0
#: Least number of receipts, and least ratio of largest to smallest work, for the fit of a line.
_LEAST_RECEIPTS, _LEAST_RATIO = 8, 2.0


#: Columns of RECEIPTS that costs are computed from.
_COLUMNS = (
    "work",
    "wall",
    "cpu_user",
    "cpu_system",
    "bytes_read",
    "bytes_written",
    "host",
    "pid",
    "started",
    "finished",
)


class _Audio(NamedTuple):
    """Of the result of a task whose work is bytes of files."""

    seconds: float


@dataclass(frozen=True)
class StepCost:
    """The cost of one step of a run.

    Attributes:
        name: name of the step.
        unit: unit of its tasks' work.
        work: float64 (n,), work of each task.
        fixed, per_work: s per task, and s per unit of work.
        factors: float64 (n,), measured over modelled duration of each task; about 1.
        walls: float64 (n,), wall seconds of each task.
        bytes_per_work: bytes read and written per unit of work.
        driver_s: seconds between the last task of the previous step and the first of this one.
        gap_s: seconds between two tasks of a worker.
        cpu_s: CPU seconds of all tasks.
        in_driver, grows_with_hours, grows_with_queries: attributes of the stage.
        span_s: seconds from the start of the first task to the end of the last.
        processes: number of processes that ran tasks.
        needs: alternative resources of a worker, the best first.
        audio_s: seconds of audio of its tasks, where their work is bytes of files; else 0.
    """

    name: str
    unit: str
    work: NDArray[np.float64]
    fixed: float
    per_work: float
    factors: NDArray[np.float64]
    walls: NDArray[np.float64]
    bytes_per_work: float
    driver_s: float
    gap_s: float
    cpu_s: float
    in_driver: bool
    grows_with_hours: Growth
    grows_with_queries: Growth
    span_s: float = 0.0
    processes: int = 1
    needs: tuple[Needs, ...] = LEAST
    audio_s: float = 0.0

    def job(self, name: str, work: float, draw: random.Random) -> Job:
        """A simulated task with this work."""
        seconds = (self.fixed + self.per_work * work) * float(self.factors[draw.randrange(len(self.factors))])
        return Job(name, work, seconds, round(self.bytes_per_work * work))


def costs_of(chain_run: ChainRun) -> list[StepCost]:
    """Costs of all finished steps of a run, in order."""
    costs = []
    previous_end: float | None = None
    for step in chain_run.chain.steps:
        receipts_of_step = chain_run.receipts(step.name)
        if not receipts_of_step:
            continue
        receipts = pa.table({name: receipts_of_step.column(name) for name in _COLUMNS})
        between = 0.0 if previous_end is None else pc.min(receipts["started"]).as_py() - previous_end
        cost = cost_of(step, receipts, between if 0 <= between < _SAME_RUN else 0.0)
        audio_s = 0.0
        if cost.unit == "bytes":
            audio_s = sum(item.seconds for item in receipts_of_step.results(_Audio))
        costs.append(replace(cost, needs=step.stage.needs(chain_run.config), audio_s=audio_s))
        previous_end = pc.max(receipts["finished"]).as_py()
    return costs


def cost_of(step: Step, receipts: pa.Table, driver_s: float = 0.0) -> StepCost:
    """Cost of a step from its receipts, a non-empty table RECEIPTS."""
    work, wall = receipts["work"].to_numpy(), receipts["wall"].to_numpy()
    fixed, per_work = line_of(work, wall)
    moved = pc.sum(receipts["bytes_read"]).as_py() + pc.sum(receipts["bytes_written"]).as_py()
    return StepCost(
        name=step.name,
        unit=step.stage.unit,
        work=work,
        fixed=fixed,
        per_work=per_work,
        factors=_factors(work, wall, fixed, per_work),
        walls=wall,
        bytes_per_work=moved / max(1.0, float(work.sum())),
        driver_s=driver_s,
        gap_s=_gap(receipts),
        cpu_s=float(np.sum(receipts["cpu_user"].to_numpy() + receipts["cpu_system"].to_numpy())),
        in_driver=step.stage.in_driver,
        grows_with_hours=step.stage.grows_with_hours,
        grows_with_queries=step.stage.grows_with_queries,
        span_s=pc.max(receipts["finished"]).as_py() - pc.min(receipts["started"]).as_py(),
        processes=receipts.group_by(["host", "pid"]).aggregate([]).num_rows,
    )


def pooled_costs(costs: Sequence[StepCost], *others: Sequence[StepCost]) -> list[StepCost]:
    """Costs of a run's steps, with lines fitted to the receipts of further runs of the same config with more or less data.

    A single run hardly separates fixed from proportional time, because its tasks have similar sizes.
    """
    pooled = []
    for cost in costs:
        same = [cost, *(item for steps in others for item in steps if item.name == cost.name)]
        work = np.concatenate([item.work for item in same])
        wall = np.concatenate([item.walls for item in same])
        fixed, per_work = line_of(work, wall, 2 if len(same) > 1 else _LEAST_RECEIPTS)
        pooled.append(replace(cost, fixed=fixed, per_work=per_work, factors=_factors(work, wall, fixed, per_work)))
    return pooled


def _factors(
    work: NDArray[np.float64], wall: NDArray[np.float64], fixed: float, per_work: float
) -> NDArray[np.float64]:
    modelled = fixed + per_work * work
    return np.divide(wall, modelled, out=np.ones_like(wall), where=modelled > 0)


def line_of(
    work: NDArray[np.float64], seconds: NDArray[np.float64], least: int = _LEAST_RECEIPTS
) -> tuple[float, float]:
    """a and b of a + b work, neither negative, by least squares; a is 0 where works differ too little.

    Args:
        work, seconds: float64 (n,), of each task.
        least: least number of tasks for a fit.
    """
    total = float(work.sum())
    if total <= 0:
        return float(seconds.mean()), 0.0
    through = float(seconds.sum()) / total
    if len(work) < least or work.max() < _LEAST_RATIO * max(work.min(), 1e-9):
        return 0.0, through
    slope, level = np.polyfit(work, seconds, 1)
    if level < 0:
        return 0.0, through
    if slope < 0:
        return float(seconds.mean()), 0.0
    return float(level), float(slope)


def _gap(receipts: pa.Table) -> float:
    """Median of the seconds between two tasks of a process."""
    order = [(name, "ascending") for name in ("host", "pid", "started", "finished")]
    spans = receipts.select([name for name, _ in order]).sort_by(order)
    host, pid = spans["host"].to_numpy(), spans["pid"].to_numpy()
    same = (host[1:] == host[:-1]) & (pid[1:] == pid[:-1])
    gaps = np.maximum(0.0, spans["started"].to_numpy()[1:] - spans["finished"].to_numpy()[:-1])[same]
    return float(np.median(gaps)) if len(gaps) else 0.0
