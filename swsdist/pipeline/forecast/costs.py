"""What a run's steps cost, from their receipts, and so what tasks of other sizes would.

The seconds of a task are those of a line in its work, a + b work, times a factor drawn from how the receipts lie about it.
The line goes through the origin (a = 0) where works differ too little to tell a from b.

Only wall seconds of tasks are looked at. They hold what tasks waited for disks and for each other: a run of as many workers
on a node as the forecast is for tells it best, and one on a machine that others use tells it badly.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.core.needs import LEAST, Needs
from swsdist.pipeline.chain import Step
from swsdist.pipeline.chain_run import ChainRun
from swsdist.pipeline.forecast.cluster import Job
from swsdist.pipeline.stage import Growth

#: A step that begins so many seconds after the one before it was not of the same run.
_SAME_RUN = 600.0
#: Receipts, and ratio of the greatest work to the least, from which on a line is fitted.
_FITTED_FROM, _APART = 8, 2.0


#: Of RECEIPTS, what costs are told from.
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


@dataclass(frozen=True)
class StepCost:
    """Of one step of a run.

    Attributes:
        name: of the step.
        unit: of its tasks' work.
        work: of each task, float64 (n,).
        fixed, per_work: s of a task, and s a unit of work.
        factors: by how much tasks took longer or shorter, float64; about 1.
        walls: wall seconds of each task, float64 (n,).
        bytes_per_work: read and written.
        driver_s: between the last task of the step before and its first.
        gap_s: between two tasks of a worker.
        cpu_s: of all tasks.
        in_driver, with_hours, with_queries: as of its stage.
        span_s: from its first task's beginning to its last one's end.
        processes: that did its tasks.
        needs: of its workers: alternatives, the best first.
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
    with_hours: Growth
    with_queries: Growth
    span_s: float = 0.0
    processes: int = 1
    needs: tuple[Needs, ...] = LEAST

    def job(self, name: str, work: float, draw: random.Random) -> Job:
        """A task of so much work."""
        seconds = (self.fixed + self.per_work * work) * float(self.factors[draw.randrange(len(self.factors))])
        return Job(name, work, seconds, round(self.bytes_per_work * work))


def costs_of(chain_run: ChainRun) -> list[StepCost]:
    """Of all steps of a run that came to their ends, in their order."""
    found = []
    before: float | None = None
    for step in chain_run.chain.steps:
        known = chain_run.receipts(step.name)
        if not known:
            continue
        receipts = pa.table({name: known.column(name) for name in _COLUMNS})
        between = 0.0 if before is None else pc.min(receipts["started"]).as_py() - before
        cost = cost_of(step, receipts, between if 0 <= between < _SAME_RUN else 0.0)
        found.append(replace(cost, needs=step.stage.needs(chain_run.config)))
        before = pc.max(receipts["finished"]).as_py()
    return found


def cost_of(step: Step, receipts: pa.Table, driver_s: float = 0.0) -> StepCost:
    """Of a step's receipts, RECEIPTS, which are some."""
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
        with_hours=step.stage.with_hours,
        with_queries=step.stage.with_queries,
        span_s=pc.max(receipts["finished"]).as_py() - pc.min(receipts["started"]).as_py(),
        processes=receipts.group_by(["host", "pid"]).aggregate([]).num_rows,
    )


def pooled_costs(costs: Sequence[StepCost], *others: Sequence[StepCost]) -> list[StepCost]:
    """Steps of a run, whose lines go through the receipts of other runs of the same config too, with more or less data.

    One run alone can hardly tell what of a task's time grows with its work: its tasks are much of one size.
    """
    found = []
    for cost in costs:
        same = [cost, *(item for steps in others for item in steps if item.name == cost.name)]
        work = np.concatenate([item.work for item in same])
        wall = np.concatenate([item.walls for item in same])
        fixed, per_work = line_of(work, wall, 2 if len(same) > 1 else _FITTED_FROM)
        found.append(replace(cost, fixed=fixed, per_work=per_work, factors=_factors(work, wall, fixed, per_work)))
    return found


def _factors(
    work: NDArray[np.float64], wall: NDArray[np.float64], fixed: float, per_work: float
) -> NDArray[np.float64]:
    told = fixed + per_work * work
    return np.divide(wall, told, out=np.ones_like(wall), where=told > 0)


def line_of(work: NDArray[np.float64], seconds: NDArray[np.float64], least: int = _FITTED_FROM) -> tuple[float, float]:
    """a and b of a + b work, neither negative, by least squares; a is 0 where works differ too little.

    Args:
        work, seconds: of tasks, (n,).
        least: tasks that it takes.
    """
    total = float(work.sum())
    if total <= 0:
        return float(seconds.mean()), 0.0
    through = float(seconds.sum()) / total
    if len(work) < least or work.max() < _APART * max(work.min(), 1e-9):
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
