"""Forecasts: the steps of a measured run, scaled to other hours, queries and machines, and simulated several times."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from math import ceil
from statistics import median
from typing import Literal

from swsdist.config.model import Executor
from swsdist.config.search import Keep
from swsdist.core.codes import pipeline as codes
from swsdist.core.fingerprint import plain
from swsdist.pipeline.forecast.costs import Cluster, Load, StepCost
from swsdist.pipeline.forecast.simulator import SimulatedRun, Simulator, StepTime

#: Default seconds of the driver for each finished task.
DRIVER_TASK_S = 0.001


@dataclass(frozen=True)
class Forecast:
    """The result of several simulated runs.

    Attributes:
        cluster: the machines.
        hours: hours of documents.
        queries: number of query examples.
        wall_s: median duration, s.
        low_s, high_s: shortest and longest duration, s.
        run: the run of median duration.
        seconds: of all tasks on one worker of speed 1.
        took: hours, wall seconds and workers of the measured run.
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
        """Steps of the median run."""
        return self.run.steps

    @property
    def node_hours(self) -> float:
        """Node hours of the available cluster, including the start of the workers."""
        return self.cluster.nodes * self.wall_s / 3600

    @property
    def price(self) -> float:
        """Price of the node hours."""
        return self.cluster.price * self.wall_s / 3600

    @property
    def efficiency(self) -> float:
        """Share of the workers' time in useful tasks."""
        available = self.run.workers * self.run.wall
        return (self.run.busy - self.run.lost) / available if available else 0.0

    def share(self, what: Literal["driver", "ideal", "waiting"]) -> float:
        """Share of the duration: driver alone, all workers busy, or some waiting."""
        total: float = getattr(self.run.total, what)
        return total / self.run.wall if self.run.wall else 0.0


def examples_of(costs: Sequence[StepCost]) -> float:
    """Number of query examples of a run."""
    several = [float(cost.work.sum()) for cost in costs if (cost.unit, cost.grows_with_queries) == ("examples", "more")]
    return max(several, default=0.0)


def loads_of(
    costs: Sequence[StepCost],
    hours: float,
    queries: float,
    kept: float,
    seed: int,
    driver_task_s: float = DRIVER_TASK_S,
    had_hours: float = 1.0,
    buckets: tuple[float, float] = (1.0, 16.0),
) -> list[Load]:
    """Scale the steps of a run.

    Args:
        costs: costs of the steps of a run.
        hours, queries, kept: factors on hours, queries, and detections kept for each query; 1: as in the run.
        seed: seed of the draws.
        driver_task_s: seconds of the driver before a step for each additional task.
        had_hours: hours of the run.
        buckets: factor on the number of buckets with queries, and their number.
    """
    draw = random.Random(seed)
    loads = []
    for cost in costs:
        more, larger = 1.0, 1.0
        least = cost.most_hours / had_hours  # times as many hours as the run's
        for growth, factor in (
            (cost.grows_with_hours, min(hours, least) / min(1.0, least)),
            (cost.grows_with_queries, queries),
        ):
            if growth == "more":
                more *= factor
            elif growth != "same":
                larger *= kept if growth == "kept" else factor
        if cost.in_buckets and float(cost.work.sum()) * more * larger > cost.most_work:
            tasks = buckets[1] if len(cost.work) == 1 and cost.most_work else buckets[0]
            more, larger = tasks, more * larger / tasks
        works = _works(cost, more, larger)
        jobs = [cost.job(f"{cost.name}-{cost.round}-{k}", work, draw) for k, work in enumerate(works)]
        # The driver plans, commits and packs each task.
        driver_s = cost.driver_s + driver_task_s * max(0, len(jobs) - len(cost.work))
        loads.append(Load(cost.name, jobs, cost.in_driver, driver_s, cost.gap_s, cost.needs))
    return loads


def _works(cost: StepCost, more: float, larger: float) -> list[float]:
    """Work of each task: the receipts' works repeated, then scaled to the right sum."""
    measured_works = [float(work) for work in cost.work]
    tasks = max(1, ceil(more * len(measured_works) - 1e-9))
    works = [measured_works[k % len(measured_works)] for k in range(tasks)]
    total, target = sum(works), sum(measured_works) * more * larger
    return [work * target / total for work in works] if total > 0 else works


def _buckets(
    costs: Sequence[StepCost], number: Callable[[int], int], factor: float, had: float, queries: float
) -> tuple[float, float]:
    """How many times more buckets with queries there are for `factor` times the candidates and so many examples; how many."""
    rows = max((float(cost.work.sum()) for cost in costs if cost.unit == "candidates"), default=0.0)

    def filled(many: int, examples: float) -> float:
        return many * (1 - float((1 - 1 / many) ** max(1.0, examples)))

    now = filled(number(round(rows * factor)), queries)
    return now / filled(number(round(rows)), had), now


def forecast(
    costs: Sequence[StepCost],
    cluster: Cluster,
    settings: Executor,
    had_hours: float,
    *,
    keep: Keep | None = None,
    buckets: Callable[[int], int] | None = None,
    hours: float | None = None,
    queries: float | None = None,
    repeats: int = 5,
    seed: int = 0,
    driver_task_s: float = DRIVER_TASK_S,
) -> Forecast:
    """Simulate a run several times.

    Args:
        costs: costs of the steps of a run (`costs_of`).
        cluster: the machines.
        settings: section `executor` of the config.
        had_hours: hours of documents of the run (`ChainInputs.hours`).
        buckets: number of buckets for a number of candidates (`Reduce.buckets_for`); None: as in the run.
        keep: detections kept for each query (`reduce.nbest`); None: proportional to the hours.
        hours: hours of documents; None: as in the run.
        queries: number of query examples; None: as in the run.
        repeats: number of simulated runs, with different draws and failures.
        seed: seed of the first run.
        driver_task_s: seconds of the driver for each finished task, and before a step for each additional task.

    Raises:
        UserError: no worker fits a node, the run had no known hours or no queries, or a number is not above 0.
    """
    if had_hours <= 0:
        raise codes.UNKNOWN_HOURS(where="forecast")
    had_queries = examples_of(costs)
    if min(hours or 1.0, queries or 1.0) < 0 or 0 in (hours, queries):
        raise codes.INVALID_FORECAST_SIZE(where="forecast")
    if queries is not None and not had_queries:
        raise codes.RUN_WITHOUT_QUERIES(where="--queries")
    by_hours = 1.0 if hours is None else hours / had_hours
    by_queries = 1.0 if queries is None else queries / had_queries
    kept = by_hours if keep is None else keep.count(3600 * had_hours * by_hours) / keep.count(3600 * had_hours)
    more = 1.0, float(max((len(cost.work) for cost in costs if cost.in_buckets), default=1))
    if buckets is not None:
        more = _buckets(costs, buckets, by_hours * by_queries, had_queries, had_queries * by_queries)
    several = [
        loads_of(costs, by_hours, by_queries, kept, seed + k, driver_task_s, had_hours, more)
        for k in range(max(1, repeats))
    ]
    result = simulate(several, cluster, settings, had_hours * by_hours, had_queries * by_queries, seed, driver_task_s)
    took = sum(cost.driver_s + cost.span_s for cost in costs)
    return replace(result, took=(had_hours, took, max(cost.processes for cost in costs)))


def simulate(
    several: Sequence[Sequence[Load]],
    cluster: Cluster,
    settings: Executor,
    hours: float = 0.0,
    queries: float = 0.0,
    seed: int = 0,
    driver_task_s: float = DRIVER_TASK_S,
) -> Forecast:
    """Simulate each list of loads, and summarise."""
    runs = [Simulator(cluster, settings, seed + k, driver_task_s).run(loads) for k, loads in enumerate(several)]
    runs.sort(key=lambda item: item.wall)
    middle = runs[(len(runs) - 1) // 2]
    seconds = median(sum(load.seconds for load in loads) for loads in several)
    return Forecast(cluster, hours, queries, middle.wall, runs[0].wall, runs[-1].wall, middle, seconds)


SCHEMA = "swsdist-forecast/1"


def as_json(forecast: Forecast, left_out: Sequence[str] = ()) -> str:
    """All numbers of a forecast, null for infinite ones, and what it lacks."""
    values = {
        "schema": SCHEMA,
        "version": version("swsdist"),
        "cluster": asdict(forecast.cluster),
        "hours": forecast.hours,
        "query_examples": forecast.queries,
        "left_out": list(left_out),
        "took": forecast.took and dict(zip(("hours", "wall_s", "workers"), forecast.took, strict=True)),
        "wall_s": forecast.wall_s,
        "low_s": forecast.low_s,
        "high_s": forecast.high_s,
        "workers": forecast.run.workers,
        "node_hours": forecast.node_hours,
        "price": forecast.price,
        "efficiency": forecast.efficiency,
        "shares": {name: forecast.share(name) for name in ("driver", "ideal", "waiting")},
        "bound": forecast.run.total.bound,
        "task_s": forecast.seconds,
        "node_failures": forecast.run.failures,
        "lost_s": forecast.run.lost,
        "failed_tasks": forecast.run.failed,
        "second_attempts": forecast.run.again,
        "steps": [{**asdict(step), "waiting": step.waiting, "bound": step.bound} for step in forecast.steps],
    }
    return json.dumps(plain(values), indent=1, allow_nan=False)
