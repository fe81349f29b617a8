"""The forecast of a run: its steps as they were, with more hours, queries and machines, simulated several times over."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from statistics import median
from typing import Literal

from swsdist.config.model import Executor
from swsdist.config.search import Keep
from swsdist.core.codes import pipeline as codes
from swsdist.pipeline.forecast.cluster import Cluster, Load, Rules
from swsdist.pipeline.forecast.costs import StepCost
from swsdist.pipeline.forecast.simulator import SimulatedRun, Simulator, StepTime

#: Seconds that the driver takes for the answer of a task, unless said otherwise.
DRIVER_TASK_S = 0.001


@dataclass(frozen=True)
class Forecast:
    """What several simulated runs came to.

    Attributes:
        cluster: the machines.
        hours: of documents.
        queries: examples.
        wall_s: median.
        low_s, high_s: least and greatest.
        steps: of the run whose wall is the median.
        run: that run.
        seconds: of all tasks, on one worker of speed 1.
        took: hours, wall seconds and workers of the run that it is told from.
    """

    cluster: Cluster
    hours: float
    queries: float
    wall_s: float
    low_s: float
    high_s: float
    run: SimulatedRun
    seconds: float
    took: tuple[float, float, int] | None = None

    @property
    def steps(self) -> Sequence[StepTime]:
        """In their order."""
        return self.run.steps

    @property
    def node_hours(self) -> float:
        """All nodes, from the first task to the last, with the start of the workers."""
        return self.cluster.nodes * self.wall_s / 3600

    @property
    def price(self) -> float:
        """Of those hours."""
        return self.cluster.price * self.wall_s / 3600

    @property
    def efficiency(self) -> float:
        """Part of the workers' time that went into tasks that count."""
        whole = self.run.workers * self.run.wall
        return (self.run.busy - self.run.lost) / whole if whole else 0.0

    def share(self, what: Literal["driver", "ideal", "waiting"]) -> float:
        """Part of the wall: the driver alone, workers all busy, or some waiting."""
        return sum(getattr(step, what) for step in self.steps) / self.run.wall if self.run.wall else 0.0


def rules_of(executor: Executor) -> Rules:
    """The keys of a config that the simulator heeds."""
    return Rules(executor.in_flight, executor.attempts, executor.actor_restarts, executor.worker)


def run_size(costs: Sequence[StepCost]) -> tuple[float, float]:
    """Hours of documents and query examples that a run's receipts are of.

    Raises:
        UserError: no step tells its hours.
    """
    heard = [float(cost.work.sum()) for cost in costs if cost.unit == "s" and cost.with_hours == "more"]
    asked = [float(cost.work.sum()) for cost in costs if cost.unit == "examples" and cost.with_queries == "more"]
    if not heard or max(heard) <= 0:
        raise codes.UNKNOWN_HOURS()
    return max(heard) / 3600, max(asked, default=0.0)


def loads_of(
    costs: Sequence[StepCost],
    hours: float,
    queries: float,
    kept: float,
    seed: int,
    driver_task_s: float = DRIVER_TASK_S,
) -> list[Load]:
    """The steps with so many times the hours and queries.

    Args:
        costs: of the steps of a run.
        hours, queries, kept: factors, 1 for as many hours, queries, and detections kept of a query as in that run.
        seed: of the draws.
        driver_task_s: that the driver takes before a step for each task more than in that run.
    """
    draw = random.Random(seed)
    loads = []
    for cost in costs:
        more, larger = 1.0, 1.0
        for growth, factor in ((cost.with_hours, hours), (cost.with_queries, queries)):
            if growth == "more":
                more *= factor
            elif growth != "same":
                larger *= kept if growth == "kept" else factor
        works = _works(cost, more, larger)
        jobs = [cost.job(f"{cost.name}-{k}", work, draw) for k, work in enumerate(works)]
        # In a step of its own, the driver plans, commits and packs by the task.
        driver_s = cost.driver_s + driver_task_s * max(0, len(jobs) - len(cost.work))
        loads.append(Load(cost.name, jobs, cost.in_driver, driver_s, cost.gap_s, cost.needs))
    return loads


def _works(cost: StepCost, more: float, larger: float) -> list[float]:
    """The work of each task: that of the receipts over and over, then so much more that the sum is right."""
    known = [float(work) for work in cost.work]
    tasks = max(1, ceil(more * len(known) - 1e-9))
    works = [known[k % len(known)] for k in range(tasks)]
    total, wanted = sum(works), sum(known) * more * larger
    return [work * wanted / total for work in works] if total > 0 else works


def forecast(
    costs: Sequence[StepCost],
    cluster: Cluster,
    rules: Rules,
    *,
    keep: Keep | None = None,
    hours: float | None = None,
    queries: float | None = None,
    repeats: int = 5,
    seed: int = 0,
    driver_task_s: float = DRIVER_TASK_S,
) -> Forecast:
    """Simulate a run several times.

    Args:
        costs: of the steps of a run (`costs_of`).
        cluster, rules: see there.
        keep: detections kept of a query (`reduce.nbest`); None: as many as there are hours.
        hours: of documents; None: as many as in that run.
        queries: examples; None: as many.
        repeats: simulated runs, each with other draws and failures.
        seed: of the first.
        driver_task_s: that the driver takes for the answer of each task, and before a step for each task more.

    Raises:
        UserError: no worker fits into a node; the run had no hours or no queries, or those wanted are none.
    """
    had_hours, had_queries = run_size(costs)
    if min(hours or 1.0, queries or 1.0) < 0 or 0 in (hours, queries):
        raise codes.INVALID_FORECAST_SIZE(where="forecast")
    if queries is not None and not had_queries:
        raise codes.RUN_WITHOUT_QUERIES(where="--queries")
    by_hours = 1.0 if hours is None else hours / had_hours
    by_queries = 1.0 if queries is None else queries / had_queries
    kept = by_hours if keep is None else keep.count(3600 * had_hours * by_hours) / keep.count(3600 * had_hours)
    several = [loads_of(costs, by_hours, by_queries, kept, seed + k, driver_task_s) for k in range(max(1, repeats))]
    told = simulate(several, cluster, rules, had_hours * by_hours, had_queries * by_queries, seed, driver_task_s)
    took = sum(cost.driver_s + cost.span_s for cost in costs)
    return replace(told, took=(had_hours, took, max(cost.processes for cost in costs)))


def simulate(
    several: Sequence[Sequence[Load]],
    cluster: Cluster,
    rules: Rules,
    hours: float = 0.0,
    queries: float = 0.0,
    seed: int = 0,
    driver_task_s: float = DRIVER_TASK_S,
) -> Forecast:
    """Simulate steps, drawn several times."""
    runs = [Simulator(cluster, rules, seed + k, driver_task_s).run(loads) for k, loads in enumerate(several)]
    runs.sort(key=lambda item: item.wall)
    middle = runs[(len(runs) - 1) // 2]
    seconds = median(sum(load.seconds for load in loads) for loads in several)
    return Forecast(cluster, hours, queries, middle.wall, runs[0].wall, runs[-1].wall, middle, seconds)
