"""Discrete-event simulator of a run, with the policy that real workers follow.

Steps, and the rounds of a step, run one after the other; each starts when the last task of the previous one has ended. A
worker works on its oldest task. The driver handles one answer at a time. Nodes fail at exponentially distributed times; their
workers are replaced, as the policy decides, when the node is replaced.

The bandwidth of a transfer is fixed when it begins: the smaller of the node's and the storage's bandwidth, each shared
equally by the transfers under way.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from math import inf

from swsdist.config.model import Executor
from swsdist.core.codes import pipeline as codes
from swsdist.core.needs import LEAST, Needs
from swsdist.pipeline.execution.policy import Policy, at_least, fit_on, kind_on
from swsdist.pipeline.forecast.costs import Cluster, Job, Kind, Load


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
        """What takes most, and at least half of the duration: driver, work, longest task; otherwise `waiting`."""
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
            raise codes.WORKER_TOO_LARGE(where="cluster", cpus=enlarged[-1].cpus, memory_gb=enlarged[-1].memory_gb)
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
