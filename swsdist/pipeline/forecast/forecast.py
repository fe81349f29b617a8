"""Forecasts: the steps of a measured run, scaled to other hours, queries and machines, and simulated several times.

The simulator handles discrete events, with the policy that real workers follow. Steps, and the rounds of a step, run
one after the other; each starts when the last task of the previous one has ended. A worker works on its oldest task.
The driver handles one answer at a time. Nodes fail at exponentially distributed times; their workers are replaced, as
the policy decides, when the node is replaced.

The bandwidth of a transfer is fixed when it begins: the smaller of the node's and the storage's bandwidth, each shared
equally by the transfers under way.
"""

from __future__ import annotations

import heapq
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.metadata import version
from itertools import count
from math import ceil, inf
from statistics import median
from typing import Literal

from swsdist.config.model import Executor
from swsdist.config.search import Keep
from swsdist.core.codes import families
from swsdist.core.errors import UserError
from swsdist.core.fingerprint import plain
from swsdist.core.needs import LEAST, Needs
from swsdist.pipeline.execution.policy import Policy, at_least, fit_on, kind_on
from swsdist.pipeline.forecast.costs import Cluster, Job, Kind, Load, StepCost


@dataclass
class StepTime:
    """Times of a simulated step, in s, with all its rounds.

    Attributes:
        wall: duration.
        driver: time in which only the driver works.
        ideal: duration of its tasks if all workers that fit were always busy.
        longest: duration of its longest task, or of the longest of each round together: with any number of workers it takes so
            long.
        answers: time that the driver spends on its workers' answers.
    """

    name: str
    tasks: int
    wall: float = 0.0
    driver: float = 0.0
    ideal: float = 0.0
    longest: float = 0.0
    answers: float = 0.0

    def add(self, other: StepTime) -> None:
        """Add what came after it."""
        for name in ("tasks", "wall", "driver", "ideal", "longest", "answers"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def waiting(self) -> float:
        """Time in which some workers wait: for the last tasks, for workers to start, for the driver."""
        return max(0.0, self.wall - self.driver - self.ideal)

    @property
    def bound(self) -> str:
        """The part that takes at least half of the duration: driver, work or longest task; otherwise `waiting`."""
        several = {"driver": self.driver + self.answers, "work": self.ideal, "longest task": self.longest}
        most = max(several, key=lambda name: several[name])
        return most if several[most] >= self.wall / 2 else "waiting"


@dataclass
class SimulatedRun:
    """The result of a simulated run.

    Attributes:
        wall: duration, s.
        steps: times of the steps, in order.
        busy: s of workers in tasks, including lost ones.
        workers: most workers at a time.
        failures: failures of nodes.
        lost: s of work lost to failures, and to the slower of two attempts.
        again: tasks with a second attempt.
        failed: tasks that failed for good.
    """

    wall: float = 0.0
    steps: list[StepTime] = field(default_factory=list)
    busy: float = 0.0
    workers: int = 0
    failures: int = 0
    lost: float = 0.0
    failed: int = 0
    again: int = 0

    @property
    def total(self) -> StepTime:
        """All steps together."""
        total = StepTime("all", 0)
        for step in self.steps:
            total.add(step)
        return total


@dataclass
class _Node:
    kind: Kind
    room: int = 0
    used: int = 0
    transfers: int = 0
    back: float = 0.0
    has: Needs = LEAST[0]  # resources of each of its workers

    @property
    def left(self) -> dict[str, float]:
        """Its free resources."""
        taken = {"CPU": self.has.cpus, "memory": self.has.memory_gb * 1e9, "GPU": self.has.gpus}
        return {name: had - self.used * taken[name] for name, had in self.kind.resources.items()}

    @property
    def speed(self) -> float:
        """Speed of its workers."""
        return self.kind.gpu_speed if self.has.gpus else self.kind.speed


@dataclass
class _Worker:
    node: _Node
    queue: list[Job] = field(default_factory=list)
    began: float | None = None  # start of the first of them
    transferring: bool = False
    ended: set[str] = field(default_factory=set)  # finished tasks whose answers have not reached the driver
    gone: bool = False


class Simulator:
    """Simulates one run.

    Args:
        cluster: the machines.
        settings: section `executor` of the config.
        seed: seed of the nodes' failures.
        driver_task_s: seconds of the driver for each finished task.
    """

    def __init__(self, cluster: Cluster, settings: Executor, seed: int = 0, driver_task_s: float = 0.0) -> None:
        self._cluster = cluster
        self._random = random.Random(seed)
        self._driver_task_s = driver_task_s
        self._policy: Policy[Job] = Policy(settings.in_flight, settings.attempts, settings.actor_restarts)
        self._settings = settings
        self._nodes = [_Node(kind) for kind in cluster.kinds for _ in range(kind.nodes)]
        self._workers: dict[int, _Worker] = {}
        self._room, self._speed = 0, 0.0
        self._place(LEAST)
        self._numbers = count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._now = 0.0
        self._driver_free = 0.0
        self._transfers = 0
        self._gap = 0.0
        self._end = 0.0
        self._look = inf  # time when a task may be late
        self.result = SimulatedRun()

    def run(self, loads: Sequence[Load]) -> SimulatedRun:
        """Simulate all steps."""
        for node in self._nodes:
            self._fail_later(node)
        for load in loads:
            if load.jobs:
                self._step(load)
        self.result.wall = self._now
        return self.result

    def _step(self, load: Load) -> None:
        begun = self._now
        step = StepTime(load.name, len(load.jobs), driver=load.driver_s)
        self._now += load.driver_s
        if load.in_driver:
            self._now += load.seconds
            step.driver += load.seconds
        else:
            self._place(load.needs)
            step.ideal, step.answers = load.seconds / self._speed, self._driver_task_s * len(load.jobs)
            step.longest = max(job.seconds for job in load.jobs) / max(node.speed for node in self._nodes if node.room)
            self._gap, self._end = load.gap_s, self._now
            self._provide(len(load.jobs))
            self._policy.begin(load.jobs)
            self._hand_out()
            self._go()
        self._driver_free = self._now
        step.wall = self._now - begun
        if self.result.steps and self.result.steps[-1].name == load.name:
            self.result.steps[-1].add(step)  # a further round
        else:
            self.result.steps.append(step)

    def _go(self) -> None:
        """Process events until every task has ended."""
        while self._policy.left:
            at, _, happens = heapq.heappop(self._events)
            self._now = max(self._now, at)  # events during the driver's work are processed now
            happens()
        self._now = max(self._now, self._end)

    def _at(self, when: float, happens: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when, next(self._order), happens))

    # -- workers --------------------------------------------------------------------------------------------------

    def _place(self, needs: Sequence[Needs]) -> None:
        """Place workers on nodes as Ray's executor does.

        If no node has a GPU, workers get none, and run at the speed of the receipts' machine.

        Raises:
            UserError: no worker fits any node.
        """
        if not any(node.kind.gpus for node in self._nodes):
            needs = [item for item in needs if not item.gpus] or [replace(needs[0], gpus=0.0)]
        enlarged = [at_least(item, self._settings.worker) for item in needs]
        for node in self._nodes:
            taken = kind_on(node.kind.resources, enlarged)
            if taken is None or not node.has.satisfies(enlarged[taken[0]]):
                for number in [number for number, item in self._workers.items() if item.node is node]:
                    self._leave(number)
                    self._policy.end(number)
                node.has = node.has if taken is None else enlarged[taken[0]]
            # Workers that are kept may have more resources than new ones.
            node.room = 0 if taken is None else min(taken[1], node.used + fit_on(node.left, enlarged[taken[0]]))
        room = sum(node.room for node in self._nodes)
        if not room:
            raise families.NO_WORKER(
                "no worker fits a node: it needs {cpus} CPUs and {memory_gb:g} GB",
                "give the nodes more, or lower executor.cpus_per_worker or executor.memory_per_worker_gb",
                where="cluster",
                cpus=enlarged[-1].cpus,
                memory_gb=enlarged[-1].memory_gb,
            )
        self._room = room if self._cluster.workers is None else min(room, self._cluster.workers)
        # Total speed of the fastest workers that fit.
        speeds = sorted((node.speed for node in self._nodes for _ in range(node.room)), reverse=True)
        self._speed = sum(speeds[: self._room])

    def _provide(self, tasks: int) -> None:
        """Start as many workers as fit, at most one per task, spread over the nodes; existing ones are kept."""
        for number in [number for number in self._workers if self._policy.lagging(number)]:
            self._leave(number)
            self._policy.end(number)
        target = max(1, min(self._room, tasks))
        while len(self._workers) < target:
            free = (node for node in self._nodes if node.used < node.room)
            node = min(free, key=lambda item: (not item.has.gpus, item.used / item.room))
            self._start(node)
        self.result.workers = max(self.result.workers, len(self._workers))

    def _start(self, node: _Node) -> None:
        number, worker = next(self._numbers), _Worker(node)
        node.used += 1
        self._workers[number] = worker
        self._policy.add(number)
        self._at(max(self._now, node.back) + self._cluster.start_s, partial(self._ready, number, worker))

    def _ready(self, number: int, worker: _Worker) -> None:
        if not worker.gone:
            self._policy.ready(number)
            self._hand_out()

    def _fail_later(self, node: _Node) -> None:
        if node.kind.mtbf_hours < inf:
            life = self._random.expovariate(1 / (3600 * node.kind.mtbf_hours))
            self._at(max(self._now, node.back) + life, partial(self._fail, node))

    def _fail(self, node: _Node) -> None:
        """A node fails, with all its workers."""
        self.result.failures += 1
        node.back = self._now + self._cluster.repair_s
        for number, worker in [(number, item) for number, item in self._workers.items() if item.node is node]:
            self._leave(number)
            # Finished tasks have receipts, and the deaths do not count, as in Ray's executor.
            death = self._policy.died(number, worker.ended, counts=False)
            self.result.failed += len(death.failed)
            if death.replace:
                self._start(node)
        self._fail_later(node)
        self._hand_out()

    def _leave(self, number: int) -> None:
        """Remove a worker; its unfinished work is lost."""
        worker = self._workers.pop(number)
        worker.gone = True
        worker.node.used -= 1
        if worker.began is not None:
            self.result.busy += self._now - worker.began
            self.result.lost += self._now - worker.began
        if worker.transferring:
            self._transfers -= 1
            worker.node.transfers -= 1

    # -- tasks ----------------------------------------------------------------------------------------------------

    def _hand_out(self) -> None:
        for number, job in self._policy.hand_out(self._now):
            self.result.again += job.fingerprint in self._policy.again
            worker = self._workers[number]
            worker.queue.append(job)
            if len(worker.queue) == 1:
                self._begin(number, worker)
        if self._now < self._policy.look_at < inf and self._policy.look_at != self._look:
            self._look = self._policy.look_at
            self._at(self._look, self._hand_out)

    def _begin(self, number: int, worker: _Worker) -> None:
        """A worker begins its oldest task."""
        worker.began = self._now
        job, node, cluster = worker.queue[0], worker.node, self._cluster
        if job.bytes and min(cluster.node_mb_s, cluster.storage_mb_s) < inf:
            self._transfers += 1
            node.transfers += 1
            worker.transferring = True
            rate = min(cluster.node_mb_s / node.transfers, cluster.storage_mb_s / self._transfers)
            self._at(self._now + job.bytes / (1e6 * rate), partial(self._compute, number, worker))
        else:
            self._compute(number, worker)

    def _compute(self, number: int, worker: _Worker) -> None:
        if worker.gone:
            return
        if worker.transferring:
            self._transfers -= 1
            worker.node.transfers -= 1
            worker.transferring = False
        seconds = worker.queue[0].seconds / worker.node.speed
        self._at(self._now + seconds, partial(self._ended, number, worker))

    def _ended(self, number: int, worker: _Worker) -> None:
        """A worker finishes a task and goes on to its next, while the answer travels to the driver."""
        if worker.gone:
            return
        job = worker.queue.pop(0)
        assert worker.began is not None
        took = self._now - worker.began
        self.result.busy += took
        worker.began = None
        worker.ended.add(job.fingerprint)
        self._driver_free = max(self._now, self._driver_free) + self._driver_task_s
        self._end = self._driver_free
        self._at(self._driver_free, partial(self._answered, number, worker, job, took))
        if worker.queue:
            self._at(self._now + self._gap, partial(self._next, number, worker))

    def _next(self, number: int, worker: _Worker) -> None:
        if not worker.gone and worker.queue and worker.began is None:
            self._begin(number, worker)

    def _answered(self, number: int, worker: _Worker, job: Job, took: float) -> None:
        if not worker.gone:
            worker.ended.remove(job.fingerprint)
            if not self._policy.done(number, job, self._now, took):
                self.result.lost += took  # another worker was quicker
            self._hand_out()


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
        raise families.MISSING_INPUT(
            "the hours of the documents are not known: index was not finished, or the chain has no documents",
            "finish the run (swsdist run CONFIG), or forecast from a run that did",
            where="forecast",
        )
    had_queries = examples_of(costs)
    if min(hours or 1.0, queries or 1.0) < 0 or 0 in (hours, queries):
        raise families.INVALID_VALUE.of(UserError)(
            "hours and queries must be above 0", "give numbers such as --hours 100 --queries 50", where="forecast"
        )
    if queries is not None and not had_queries:
        raise families.EMPTY_INPUT("the run had no queries", "forecast from a run that searched", where="--queries")
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
