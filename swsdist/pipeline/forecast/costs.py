"""What a run's steps cost, from their receipts, and so what tasks of other sizes would.

The seconds of a task are those of a line in its work, a + b work, times a factor drawn from how the receipts lie about it.
The line goes through the origin (a = 0) where works differ too little to tell a from b.

Only wall seconds of tasks are looked at. They hold what tasks waited for disks and for each other: a run of as many workers
on a node as the forecast is for tells it best, and one on a machine that others use tells it badly.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.pipeline.chain import Step
from swsdist.pipeline.course import Course
from swsdist.pipeline.forecast.cluster import Job
from swsdist.pipeline.records.receipts import names_of
from swsdist.pipeline.stage import Growth

#: A step that begins so many seconds after the one before it was not of the same run.
_SAME_RUN = 600.0
#: Receipts, and ratio of the greatest work to the least, from which on a line is fitted.
_FITTED_FROM, _APART = 8, 2.0


@dataclass(frozen=True)
class StepCost:
    """Of one step of a run.

    Attributes:
        name: of the step.
        unit: of its tasks' work.
        work: of each task, float64 (n,).
        fixed, per_work: s of a task, and s a unit of work.
        factors: by how much tasks took longer or shorter, float64 (n,); about 1.
        bytes_per_work: read and written.
        driver_s: between the last task of the step before and its first.
        gap_s: between two tasks of a worker.
        cpu_s: of all tasks.
        in_driver, with_hours, with_queries: as of its stage.
    """

    name: str
    unit: str
    work: NDArray[np.float64]
    fixed: float
    per_work: float
    factors: NDArray[np.float64]
    bytes_per_work: float
    driver_s: float
    gap_s: float
    cpu_s: float
    in_driver: bool
    with_hours: Growth
    with_queries: Growth

    def job(self, name: str, work: float, draw: random.Random) -> Job:
        """A task of so much work."""
        seconds = (self.fixed + self.per_work * work) * float(self.factors[draw.randrange(len(self.factors))])
        return Job(name, work, seconds, round(self.bytes_per_work * work))

    @property
    def seconds(self) -> float:
        """Wall seconds of all its tasks, one after the other."""
        return float(((self.fixed + self.per_work * self.work) * self.factors).sum())


def costs_of(course: Course) -> list[StepCost]:
    """Of all steps of a run that were done, in their order; a step whose receipts are gone is left out."""
    planned = course.plan.steps
    found = []
    before: float | None = None
    for step in (step for step in course.chain.steps if step.name in planned):
        known = course.ledger.receipts(step.stage.name, course.place(step))
        rows = known.find(names_of(planned[step.name].tasks))
        receipts = known.table().take(pa.array(rows[rows >= 0]))
        if not receipts.num_rows:
            continue
        began = pc.min(receipts["started"]).as_py()
        between = 0.0 if before is None else began - before
        found.append(cost_of(step, receipts, between if 0 <= between < _SAME_RUN else 0.0))
        before = pc.max(receipts["finished"]).as_py()
    return found


def cost_of(step: Step, receipts: pa.Table, driver_s: float = 0.0) -> StepCost:
    """Of a step's receipts, RECEIPTS, which are some."""
    work, wall = receipts["work"].to_numpy(), receipts["wall"].to_numpy()
    fixed, per_work = line_of(work, wall)
    told = fixed + per_work * work
    moved = pc.sum(receipts["bytes_read"]).as_py() + pc.sum(receipts["bytes_written"]).as_py()
    return StepCost(
        name=step.name,
        unit=step.stage.unit,
        work=work,
        fixed=fixed,
        per_work=per_work,
        factors=np.divide(wall, told, out=np.ones_like(wall), where=told > 0),
        bytes_per_work=moved / max(1.0, float(work.sum())),
        driver_s=driver_s,
        gap_s=_gap(receipts),
        cpu_s=float(np.sum(receipts["cpu_user"].to_numpy() + receipts["cpu_system"].to_numpy())),
        in_driver=step.stage.in_driver,
        with_hours=step.stage.with_hours,
        with_queries=step.stage.with_queries,
    )


def line_of(work: NDArray[np.float64], seconds: NDArray[np.float64]) -> tuple[float, float]:
    """a and b of a + b work, neither negative, by least squares; a is 0 where works differ too little.

    Args:
        work, seconds: of tasks, (n,).
    """
    total = float(work.sum())
    if total <= 0:
        return float(seconds.mean()), 0.0
    through = float(seconds.sum()) / total
    if len(work) < _FITTED_FROM or work.max() < _APART * max(work.min(), 1e-9):
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
