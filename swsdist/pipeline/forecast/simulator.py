"""A simulator of a run: its clock goes from event to event, and the policy is the one that real workers follow.

Steps come one after the other, each when the last task of the one before has ended. A worker works on the oldest task that it
was handed. The driver deals with one answer at a time. Nodes fail at exponentially distributed times; their workers are then
replaced, as the policy says, when another node has taken their place.

A transfer has the bandwidth that it finds when it begins: that of its node, or its part of the storage's, whichever is less,
shared equally by the transfers under way.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from math import inf

from swsdist.core.codes import pipeline as codes
from swsdist.core.needs import LEAST, Needs
from swsdist.pipeline.execution.placement import at_least, fit_on, kind_on
from swsdist.pipeline.execution.policy import Policy
from swsdist.pipeline.forecast.cluster import Cluster, Job, Kind, Load, Rules


@dataclass
class StepTime:
    """Of a step, in s.

    Attributes:
        wall: all of it.
        driver: in which only the driver worked.
        ideal: what its tasks would take if all workers that fit were busy all the time.
        longest: its longest task.
    """

    name: str
    tasks: int
    wall: float = 0.0
    driver: float = 0.0
    ideal: float = 0.0
    longest: float = 0.0

    @property
    def waiting(self) -> float:
        """In which some workers waited: for the last tasks, for others to start, for the driver."""
        return max(0.0, self.wall - self.driver - self.ideal)

    @property
    def bound(self) -> str:
        """What half of its wall or more is taken by: the driver, the work, the longest task, or none of them."""
        for name, seconds in (("driver", self.driver), ("work", self.ideal), ("longest task", self.longest)):
            if seconds >= self.wall / 2:
                return name
        return "waiting"


@dataclass
class SimulatedRun:
    """How a simulated run went.

    Attributes:
        wall: s.
        steps: in their order.
        busy: s of workers at tasks, those that were lost included.
        workers: that there were at most.
        failures: of nodes.
        lost: s of work that failures undid, and of second attempts where the first was quicker, or the other way round.
        again: tasks that got a second attempt, since a worker took long.
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


@dataclass
class _Node:
    kind: Kind
    room: int = 0
    used: int = 0
    transfers: int = 0
    back: float = 0.0
    has: Needs = LEAST[0]  # each of its workers

    @property
    def left(self) -> dict[str, float]:
        """What its workers leave of it."""
        taken = {"CPU": self.has.cpus, "memory": self.has.memory_gb * 1e9, "GPU": self.has.gpus}
        return {name: had - self.used * taken[name] for name, had in self.kind.resources.items()}

    @property
    def speed(self) -> float:
        """Of its workers."""
        return self.kind.gpu_speed if self.has.gpus else self.kind.speed


@dataclass
class _Worker:
    node: _Node
    queue: list[Job] = field(default_factory=list)
    began: float | None = None  # when it began the first of them
    transferring: bool = False
    ended: set[str] = field(default_factory=set)  # tasks whose answers are on the way to the driver
    gone: bool = False


class Simulator:
    """One run.

    Args:
        cluster: the machines.
        rules: of handing out.
        seed: of the nodes' failures.
        driver_task_s: that the driver takes for the answer of each task.
    """

    def __init__(self, cluster: Cluster, rules: Rules, seed: int = 0, driver_task_s: float = 0.0) -> None:
        self._cluster = cluster
        self._random = random.Random(seed)
        self._driver_task_s = driver_task_s
        self._policy: Policy[Job] = Policy(rules.in_flight, rules.attempts, rules.actor_restarts)
        self._rules = rules
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
        self._look = inf  # when a task may be late
        self.found = SimulatedRun()

    def run(self, loads: Sequence[Load]) -> SimulatedRun:
        """Go through all steps."""
        for node in self._nodes:
            self._fail_later(node)
        for load in loads:
            if load.jobs:
                self._step(load)
        self.found.wall = self._now
        return self.found

    def _step(self, load: Load) -> None:
        begun, longest = self._now, max(job.seconds for job in load.jobs)
        step = StepTime(load.name, len(load.jobs), driver=load.driver_s, longest=longest)
        self._now += load.driver_s
        if load.in_driver:
            self._now += load.seconds
            step.driver += load.seconds
        else:
            self._place(load.needs)
            step.ideal = load.seconds / self._speed
            self._gap, self._end = load.gap_s, self._now
            self._provide(len(load.jobs))
            self._policy.begin(load.jobs)
            self._hand_out()
            self._go()
        self._driver_free = self._now
        step.wall = self._now - begun
        self.found.steps.append(step)

    def _go(self) -> None:
        """From event to event, until every task has come to its end."""
        while self._policy.left:
            at, _, happens = heapq.heappop(self._events)
            self._now = max(self._now, at)  # what was to happen while the driver worked alone happens now
            happens()
        self._now = max(self._now, self._end)

    def _at(self, when: float, happens: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when, next(self._order), happens))

    # -- workers --------------------------------------------------------------------------------------------------

    def _place(self, needs: Sequence[Needs]) -> None:
        """How many workers fit on each node, and of what kind, as Ray's executor has it.

        Where no node has a GPU, it is as if the receipts' machine stood for one.

        Raises:
            UserError: none fits anywhere.
        """
        if not any(node.kind.gpus for node in self._nodes):
            needs = [item for item in needs if not item.gpus] or [replace(needs[0], gpus=0.0)]
        asked = [at_least(item, self._rules.worker) for item in needs]
        for node in self._nodes:
            taken = kind_on(node.kind.resources, asked)
            if taken is None or not node.has.cover(asked[taken[0]]):
                for number in [number for number, item in self._workers.items() if item.node is node]:
                    self._leave(number)
                    self._policy.end(number)
                node.has = node.has if taken is None else asked[taken[0]]
            # Workers that are kept may hold more than the new ones would.
            node.room = 0 if taken is None else min(taken[1], node.used + fit_on(node.left, asked[taken[0]]))
        room = sum(node.room for node in self._nodes)
        if not room:
            raise codes.WORKER_TOO_LARGE(where="cluster", cpus=asked[-1].cpus, memory_gb=asked[-1].memory_gb)
        self._room = room if self._cluster.workers is None else min(room, self._cluster.workers)
        # What the fastest workers that fit get done in a second.
        speeds = sorted((node.speed for node in self._nodes for _ in range(node.room)), reverse=True)
        self._speed = sum(speeds[: self._room])

    def _provide(self, tasks: int) -> None:
        """As many workers as fit, no more than tasks, spread over the nodes; those that are there are kept."""
        for number in [number for number in self._workers if self._policy.lagging(number)]:
            self._leave(number)
            self._policy.end(number)
        wanted = max(1, min(self._room, tasks))
        while len(self._workers) < wanted:
            free = (node for node in self._nodes if node.used < node.room)
            node = min(free, key=lambda item: (not item.has.gpus, item.used / item.room))
            self._start(node)
        self.found.workers = max(self.found.workers, len(self._workers))

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
        """A node is gone, with all its workers."""
        self.found.failures += 1
        node.back = self._now + self._cluster.repair_s
        for number, worker in [(number, item) for number, item in self._workers.items() if item.node is node]:
            self._leave(number)
            # Their receipts are there; that their node is gone is no fault of workers, as in Ray's executor.
            death = self._policy.died(number, worker.ended, counts=False)
            self.found.failed += len(death.failed)
            if death.replace:
                self._start(node)
        self._fail_later(node)
        self._hand_out()

    def _leave(self, number: int) -> None:
        """A worker is gone, and what it was at undone."""
        worker = self._workers.pop(number)
        worker.gone = True
        worker.node.used -= 1
        if worker.began is not None:
            self.found.busy += self._now - worker.began
            self.found.lost += self._now - worker.began
        if worker.transferring:
            self._transfers -= 1
            worker.node.transfers -= 1

    # -- tasks ----------------------------------------------------------------------------------------------------

    def _hand_out(self) -> None:
        for number, job in self._policy.hand_out(self._now):
            self.found.again += job.fingerprint in self._policy.again
            worker = self._workers[number]
            worker.queue.append(job)
            if len(worker.queue) == 1:
                self._begin(number, worker)
        if self._now < self._policy.look_at < inf and self._policy.look_at != self._look:
            self._look = self._policy.look_at
            self._at(self._look, self._hand_out)

    def _begin(self, number: int, worker: _Worker) -> None:
        """A worker begins the oldest of its tasks."""
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
        """A worker is done with a task: it goes on to its next, while its answer is on the way to the driver."""
        if worker.gone:
            return
        job = worker.queue.pop(0)
        assert worker.began is not None
        took = self._now - worker.began
        self.found.busy += took
        worker.began = None
        worker.ended.add(job.fingerprint)
        self._driver_free = max(self._now, self._driver_free) + self._driver_task_s
        self._end = self._driver_free
        self._at(self._driver_free, partial(self._told, number, worker, job, took))
        if worker.queue:
            self._at(self._now + self._gap, partial(self._next, number, worker))

    def _next(self, number: int, worker: _Worker) -> None:
        if not worker.gone and worker.queue and worker.began is None:
            self._begin(number, worker)

    def _told(self, number: int, worker: _Worker, job: Job, took: float) -> None:
        if not worker.gone:
            worker.ended.remove(job.fingerprint)
            if not self._policy.done(number, job, self._now, took):
                self.found.lost += took  # another worker was quicker
            self._hand_out()
