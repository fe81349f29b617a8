"""Scheduling policy: which worker gets which task, what happens to unfinished tasks, and which nodes hold workers.

The policy has no processes and no clock, so Ray's executor and the simulator of forecasts share it.

**Tasks**:

- The largest task goes first, so that the last to end is small. Among tasks of similar size, prefer one whose inputs
  are cached on the worker's node.
- A worker has a limited number of tasks in flight; every worker gets one task before any gets a second.
- A task with a transient error returns to the queue after a pause.
- When a worker dies, the oldest of its tasks in flight is suspected: it is tried again alone, on a worker without other
  tasks. Its other tasks return to the front of the queue. A task that was suspected on all its attempts fails.
- Dead workers are replaced, up to a number for each run. When no worker is left, all waiting tasks fail.
- When the queue is empty, an idle worker gets a second attempt at a task that takes another worker much longer than
  expected from its work, and at the tasks behind it. The first answer counts, and the other attempt is not awaited.
  Both write the same bytes under the same names.

**Placement**: a stage lists alternative resource needs of a worker, the best first. For a stage with
`Stage.any_device`, each node takes the first alternative that fits it: GPU workers on nodes with a GPU, CPU workers on
the others. Workers are counted node by node: two nodes with 3 GB each hold no worker of 4 GB.

**Nodes** are used if they have the driver's versions, workers start on them, and their disks work:

- A worker with another version of swsdist, of a library that determines the bytes of results, or of a plug-in that both
  have, is not used (`version_mismatches`).
- A worker that fails to start is tried again after a minute; meanwhile its slot is kept, or the next worker would be
  started in the same place. If its process died, its node is unknown: from then on Ray is asked to spread workers over
  nodes.
- If consecutive tasks fail on a node because its disk is full or gone, its worker gets no tasks for a minute, and a
  task that failed there is tried on another node next, if there is one.
- A node that leaves takes its workers with it, which does not count against them; a node that joins is used at once.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import median
from typing import Any, Generic

from swsdist.accounts.hardware import PLUG_IN
from swsdist.core.codes import families
from swsdist.core.errors import UserError
from swsdist.core.needs import LEAST, Needs
from swsdist.io.failures import NODE_FAULTS, explain
from swsdist.pipeline.receipts import P, Queue
from swsdist.pipeline.task import Task

#: A task is late after this multiple of its expected time, and at least this many seconds.
_TIMES, _LEAST = 2.0, 5.0
#: Locality of a task whose inputs are cached on the worker's node.
NEAREST = 2
#: Number of tasks at the head of the queue that are compared by locality, and their least work relative to the first.
_AHEAD, _ALIKE = 256, 0.5
#: Finished tasks that an expectation needs, and the latest ones that it is based on.
_KNOWN, _HEEDED = 3, 1000


@dataclass(frozen=True)
class WorkerDeath(Generic[P]):
    """The consequences of a worker's death.

    Attributes:
        lost: unfinished tasks in flight, oldest first.
        failed: tasks that fail now, each with its number of attempts.
        poisoned: whether the first of `failed` failed because workers die on it, not for lack of workers.
        replace: whether another worker is started.
    """

    lost: list[P]
    failed: list[tuple[P, int]] = field(default_factory=list)
    poisoned: bool = False
    replace: bool = False


def pause(attempt: int) -> float:
    """Seconds to wait before the next attempt: 0.5, 1, 2, ... up to 8."""
    return float(min(8.0, 0.5 * 2 ** (attempt - 1)))


class Policy(Generic[P]):
    """The tasks of the present stage, and the workers of a run.

    Args:
        in_flight: most tasks in flight to a worker.
        attempts: attempts at a task.
        restarts: workers that are replaced in a run.

    Attributes:
        deaths: workers that died so far.
        again: fingerprints of tasks with a second attempt.
        look_at: time when the next task in flight may be late, on the clock of `hand_out`; in the past if unknown.
    """

    def __init__(self, in_flight: int, attempts: int, restarts: int) -> None:
        self._in_flight = in_flight
        self._attempts = attempts
        self._restarts = restarts
        self._flying: dict[int, list[P]] = {}  # by worker
        self._available: set[int] = set()  # workers that are up and have fewer tasks than they may
        self._begun: dict[int, float] = {}  # when each worker began its oldest task
        self._unfinished = 0  # unfinished tasks
        self._queue: Queue[P] = Queue()
        self._suspects: deque[P] = deque()
        self._later: list[tuple[float, P]] = []
        self._alone: set[str] = set()  # fingerprints of tasks that may have killed a worker
        self._tried: dict[str, int] = {}
        self._pace: deque[float] = deque(maxlen=_HEEDED)  # s per unit of work, of finished tasks
        self._around = 0.0  # longest overhead of a task in s, such as loading before a worker's first one
        self._answered: set[str] = set()  # finished tasks of `again`
        self.again: set[str] = set()
        self.look_at = inf
        self.deaths = 0

    def begin(self, tasks: Sequence[P]) -> None:
        """Start a stage with these tasks; the previous stage has ended."""
        self._queue = Queue(tasks)
        self._unfinished = len(tasks)
        self._suspects.clear()
        self._later.clear()
        self._tried.clear()
        self._pace.clear()
        self._around = 0.0
        self._answered = {task.fingerprint for flying in self._flying.values() for task in flying}
        self.again = set(self._answered)
        self.look_at = 0.0

    @property
    def left(self) -> int:
        """Number of unfinished tasks."""
        return self._unfinished

    # -- workers --------------------------------------------------------------------------------------------------

    def add(self, worker: int) -> None:
        """Add a worker that is being started; numbers increase."""
        self._flying[worker] = []

    def ready(self, worker: int) -> None:
        """The worker is ready for tasks."""
        self._available.add(worker)

    def end(self, worker: int) -> None:
        """Remove a worker that is ended on purpose, without unfinished tasks of its own."""
        del self._flying[worker]
        self._available.discard(worker)

    def lagging(self, worker: int) -> bool:
        """Whether the worker runs a task that another one has finished."""
        return bool(self._answered) and any(item.fingerprint in self._answered for item in self._flying[worker])

    def died(
        self, worker: int, done: Container[str] = (), *, counts: bool = True, guilty: bool = True
    ) -> WorkerDeath[P]:
        """Remove a worker that died.

        Args:
            worker: its number.
            done: fingerprints of tasks in flight that have receipts.
            counts: whether the death counts towards `restarts`; not if its node left.
            guilty: whether its oldest task may have killed it; otherwise that task returns to the queue too.
        """
        left = [task for task in self._flying[worker] if task.fingerprint not in done]
        lost = [task for task in left if not self.elsewhere(worker, task)]
        for task in self._flying[worker]:
            if task.fingerprint in done and not self.elsewhere(worker, task):
                self._end(task)
        del self._flying[worker]
        self._available.discard(worker)
        failed: list[tuple[P, int]] = []
        guilty = guilty and bool(lost) and lost[0] is left[0]  # another worker has finished or runs its oldest task
        self._queue.extendleft(reversed(lost[1:] if guilty else lost))
        if guilty:
            task = lost[0]
            tried = self._try(task)
            if tried >= self._attempts:
                failed.append((task, tried))
            else:
                self._alone.add(task.fingerprint)
                self._suspects.append(task)
        poisoned = bool(failed)
        self.deaths += counts
        replace = self.deaths <= self._restarts
        if not replace and not self._flying:
            waiting = [*self._suspects, *self._queue, *(task for _, task in self._later)]
            failed += [(task, self._tried.get(task.fingerprint, 0)) for task in waiting]
            self._suspects.clear()
            self._queue.clear()
            self._later.clear()
        for task, _ in failed:
            self._end(task)
        return WorkerDeath(lost, failed, poisoned, replace)

    # -- tasks ----------------------------------------------------------------------------------------------------

    def hand_out(
        self,
        now: float,
        among: Container[int] | None = None,
        may: Callable[[int, P], bool] | None = None,
        near: Callable[[int, P], int] | None = None,
    ) -> list[tuple[int, P]]:
        """Assign tasks to workers, in the order of the result.

        Args:
            now: s on a monotonic clock.
            among: workers that may get tasks; None: all.
            may: whether a worker may get a task; None: always.
            near: locality of a task on a worker, 0 to `NEAREST`; a worker never waits for locality.
        """
        if self._later:
            self._queue.extend(task for at, task in self._later if at <= now)
            self._later = [(at, task) for at, task in self._later if at > now]
        # In the order of their start.
        available = sorted(
            worker for worker in self._available if (among is None or worker in among) and not self.lagging(worker)
        )
        if not self._queue and not self._suspects:
            return self._second(now, [worker for worker in available if not self._flying[worker]], may)
        self.look_at = 0.0
        assigned: list[tuple[int, P]] = []
        for worker in available:
            if self._suspects and not self._flying[worker]:  # alone, so that a death can be attributed
                assigned.append((worker, self._give(worker, self._suspects.popleft(), now)))
        for level in range(self._in_flight):
            for worker in available:
                flying = self._flying[worker]
                alone = len(flying) == 1 and flying[0].fingerprint in self._alone
                if len(flying) == level and not alone:
                    task = self._next(worker, may, near)
                    if task is not None:
                        assigned.append((worker, self._give(worker, task, now)))
        return assigned

    def _second(self, now: float, idle: list[int], may: Callable[[int, P], bool] | None) -> list[tuple[int, P]]:
        """Assign second attempts at late tasks to idle workers."""
        assigned: list[tuple[int, P]] = []
        if not idle or self._later or now < self.look_at or len(self._pace) < _KNOWN:
            return assigned
        usual = median(self._pace)
        late: list[tuple[float, str, P]] = []
        for worker, flying in self._flying.items():
            work = 0.0
            for task in flying:
                work += task.work  # including the tasks before it
                if task.fingerprint not in self.again and task.fingerprint not in self._tried:
                    at = self._begun[worker] + self._around + max(_LEAST, _TIMES * usual * work)
                    late.append((at, task.fingerprint, task))
        late.sort(key=lambda item: item[:2])
        self.look_at = next((at for at, _, _ in late if at > now), inf)
        for at, name, task in late:
            if at > now:
                break
            among = [worker for worker in idle if may is None or may(worker, task)]
            if not among:
                self.look_at = now  # as soon as a worker is idle
                continue
            idle.remove(among[0])
            self.again.add(name)
            assigned.append((among[0], self._give(among[0], task, now)))
        return assigned

    def _next(
        self, worker: int, may: Callable[[int, P], bool] | None, near: Callable[[int, P], int] | None
    ) -> P | None:
        """The task with the best locality among the first of the queue that the worker may get; the first of equals."""
        examined: list[P] = []
        best, nearness, least = -1, -1, 0.0
        while self._queue and nearness < NEAREST and (best < 0 or len(examined) < _AHEAD):
            task = self._queue.popleft()
            examined.append(task)
            if may is not None and not may(worker, task):
                continue
            if best >= 0 and task.work < least:
                break
            locality = NEAREST if near is None else near(worker, task)
            if locality > nearness:
                least = least if best >= 0 else _ALIKE * task.work
                best, nearness = len(examined) - 1, locality
        assigned = examined.pop(best) if best >= 0 else None
        self._queue.extendleft(reversed(examined))
        return assigned

    def _give(self, worker: int, task: P, now: float) -> P:
        flying = self._flying[worker]
        if not flying:
            self._begun[worker] = now
        flying.append(task)
        if len(flying) >= self._in_flight:
            self._available.discard(worker)
        return task

    def done(self, worker: int, task: P, now: float, seconds: float) -> bool:
        """Record that a worker finished a task, in `seconds` without overhead.

        Returns:
            Whether this finished the task; False if another worker had finished it before.
        """
        self._around = max(self._around, now - self._begun[worker] - seconds)
        self.drop(worker, task, now)
        if task.fingerprint in self._answered:
            return False
        if task.work > 0:
            self._pace.append(seconds / task.work)
        self._end(task)
        return True

    def drop(self, worker: int, task: P, now: float) -> None:
        """Remove a task from a worker's tasks in flight."""
        flying = self._flying[worker]
        del flying[next(k for k, item in enumerate(flying) if item.fingerprint == task.fingerprint)]
        self._begun[worker] = now
        self._available.add(worker)

    def elsewhere(self, worker: int, task: P) -> bool:
        """Whether another worker has finished or runs a task in flight."""
        name = task.fingerprint
        return name in self._answered or (
            name in self.again
            and any(
                item.fingerprint == name for other, flying in self._flying.items() if other != worker for item in flying
            )
        )

    def _end(self, task: P) -> None:
        """Count a task as finished."""
        self._unfinished -= 1
        if task.fingerprint in self.again:
            self._answered.add(task.fingerprint)

    def raised(self, worker: int, task: P, passing: bool, now: float) -> int | None:
        """Record an error of a task in flight that is not `elsewhere`.

        Args:
            worker: the worker.
            task: the task.
            passing: whether the error is transient.
            now: time on the clock of `hand_out`.

        Returns:
            Number of attempts if the task fails; None if it is tried again.
        """
        self.drop(worker, task, now)
        tried = self._try(task)
        if not passing or tried >= self._attempts:
            self._end(task)
            return tried
        self._later.append((now + pause(tried), task))
        return None

    def tried(self, task: P) -> int:
        """Failed attempts at a task of this stage."""
        return self._tried.get(task.fingerprint, 0)

    def _try(self, task: P) -> int:
        self._tried[task.fingerprint] = self._tried.get(task.fingerprint, 0) + 1
        return self._tried[task.fingerprint]


def at_least(needs: Needs, configured: Needs) -> Needs:
    """The larger of a stage's needs and the configured resources of a worker; the share of a GPU is the config's."""
    gpus = configured.gpus if needs.gpus else 0.0  # Ray hides GPUs from an actor that requests none
    return Needs(max(needs.cpus, configured.cpus), max(needs.memory_gb, configured.memory_gb), gpus)


def fit_on(node: Mapping[str, float], needs: Needs) -> int:
    """Number of workers that fit on a node.

    Args:
        node: resources by Ray's names: CPU, memory in bytes, GPU.
        needs: resources of a worker.
    """
    fit = int(node.get("CPU", 0) // needs.cpus)
    if needs.memory_gb:
        fit = int(min(fit, node.get("memory", 0) / (needs.memory_gb * 1e9)))
    return min(fit, int(node.get("GPU", 0) / needs.gpus + 1e-9)) if needs.gpus else fit


def kind_on(node: Mapping[str, float], alternatives: Sequence[Needs]) -> tuple[int, int] | None:
    """Index of the first alternative that fits a node, and the number of such workers; None if none fits."""
    fits = ((k, fit_on(node, needs)) for k, needs in enumerate(alternatives))
    return next((fit for fit in fits if fit[1] > 0), None)


def workers_for(
    nodes: Iterable[Mapping[str, float]], alternatives: Sequence[Needs], most: int | None, tasks: int
) -> list[Needs]:
    """Resources of each worker of a stage, the best alternatives first; empty if none fits any node.

    Args:
        nodes: resources of each node.
        alternatives: alternative resources of a worker, the best first.
        most: most workers; None: all that fit.
        tasks: number of tasks, which bounds the workers.
    """
    counts: dict[int, int] = {}
    for node in nodes:
        if (taken := kind_on(node, alternatives)) is not None:
            counts[taken[0]] = counts.get(taken[0], 0) + taken[1]
    every = [alternatives[k] for k in sorted(counts) for _ in range(counts[k])]
    return every[: min(len(every) if most is None else most, tasks)]


def matched(existing: Sequence[Needs], required: Sequence[Needs]) -> tuple[list[int], list[Needs]]:
    """Match existing workers to the required ones.

    Returns:
        Indices of the existing workers to keep, each for the first requirement that it covers, and unmatched requirements.
    """
    kept, missing = [], list(required)
    for k, has in enumerate(existing):
        for needs in missing:
            if has.satisfies(needs):
                missing.remove(needs)
                kept.append(k)
                break
    return kept, missing


def lacking(nodes: Iterable[Mapping[str, float]], needs: Needs, growing: bool) -> str | None:
    """What no node has, and an autoscaler may still add: CPUs, or a GPU that it was asked for (`growing`); None: nothing."""
    nodes = list(nodes)
    if not any(node.get("CPU") for node in nodes):
        return "CPUs for workers"
    return "a GPU for workers" if growing and needs.gpus and not any(fit_on(node, needs) for node in nodes) else None


def nothing_fits(nodes: Iterable[Mapping[str, float]], needs: Needs) -> UserError:
    """The error if no worker fits any node."""
    # The resources of a single node count, not their sum.
    have = max(nodes, key=lambda node: (node.get("CPU", 0), node.get("memory", 0)), default={})
    wants, has = (f"{needs.gpus:g} GPUs, ", f"{have.get('GPU', 0):g} GPUs, ") if needs.gpus else ("", "")
    return families.NO_WORKER(
        "no worker fits: it needs {needs}, the largest node has {node}",
        (
            "lower executor.cpus_per_worker or executor.memory_per_worker_gb, {gpu}or add nodes (of "
            "Dask: workers with a GPU say `--resources GPU=1`)"
        ),
        where="executor",
        needs=f"{wants}{needs.cpus} CPUs and {needs.memory_gb:g} GB",
        node=f"{has}{have.get('CPU', 0):g} CPUs and {have.get('memory', 0) / 1e9:.1f} GB",
        gpu="set search.backend, or the device of an extractor, to cpu, " if needs.gpus else "",
    )


#: Distributions, and libsndfile, that determine the bytes of results: their versions must be the driver's.
RESULT_LIBRARIES = ("swsdist", "numpy", "scipy", "numba", "soundfile", "libsndfile", "soxr")

#: Seconds between two checks of the nodes.
CHECK_INTERVAL = 2.0
#: Seconds until a failed start is tried again, and until a resting worker gets tasks again.
REST = 60.0
#: Consecutive failures with causes of `NODE_FAULTS` after which a worker rests.
_IN_A_ROW = 2


@dataclass
class Slot:
    """An actor and its tasks in flight, oldest first; it works on the oldest.

    Attributes:
        handle: Ray's handle.
        started: time of its request, on the monotonic clock.
        number: number of the worker in the policy.
        needs: its resources.
        up: whether it is ready.
        host, pid, journal: its node, process and journal.
        node: Ray's id of its node.
        reason_unused: why it is not used; empty: it is used. An unused actor keeps its room, so that no other is started there.
        again: time of the next attempt to start it.
        misses: consecutive failures that may be the node's.
        rests: time until which it gets no tasks.
        flying: calls and their tasks.
    """

    handle: Any
    started: float
    number: int
    needs: Needs = LEAST[0]
    up: bool = False
    host: str = ""
    pid: int = 0
    journal: str = ""
    node: str = ""
    reason_unused: str = ""
    again: float = float("inf")
    misses: int = 0
    rests: float = 0.0
    flying: list[tuple[Any, Task]] = field(default_factory=list)

    def hold(self, why: str, seconds: float) -> None:
        """Do not use the actor for some seconds."""
        self.up, self.reason_unused, self.again = False, why, time.monotonic() + seconds
        self.flying.clear()

    def failed(self, error: BaseException) -> bool:
        """Record an error of a task; returns whether the worker rests now."""
        storage_error = explain(error)
        self.misses = self.misses + 1 if storage_error is not None and storage_error.code in NODE_FAULTS else 0
        if self.misses < _IN_A_ROW:
            return False
        self.misses, self.rests = 0, time.monotonic() + REST
        return True


#: Consecutive failed starts that are allowed while no worker is up: the number of nodes, within these bounds.
_FEWEST_FAILED, _MOST = 3, 10


@dataclass
class FailedStarts:
    """Failed starts of workers.

    Attributes:
        failed: consecutive failures.
        spread: whether any start failed so far.
    """

    failed: int = 0
    spread: bool = False

    def fail(self) -> None:
        """Record a failed start."""
        self.failed, self.spread = self.failed + 1, True

    def hopeless(self, slots: Iterable[Slot], nodes: int) -> bool:
        """Whether no worker is up or starting, and enough starts failed to give up."""
        return all(slot.reason_unused for slot in slots) and self.failed >= max(_FEWEST_FAILED, min(_MOST, nodes))


class AvoidedHosts:
    """Hosts on which tasks failed for causes of the node; such tasks are tried on other hosts next."""

    def __init__(self) -> None:
        self._hosts: dict[str, set[str]] = {}

    def add(self, task: Task, slot: Slot, error: BaseException) -> None:
        """Record an error of a task on a slot's host."""
        storage_error = explain(error)
        if storage_error is not None and storage_error.code in NODE_FAULTS:
            self._hosts.setdefault(task.fingerprint, set()).add(slot.host)

    def elsewhere(self, task: Task, slots: Iterable[Slot]) -> bool:
        """Whether a task that failed for a cause of the node can be tried on another host."""
        failed = self._hosts.get(task.fingerprint)
        return failed is not None and any(slot.up and slot.host not in failed for slot in slots)

    def may(self, task: Task, slot: Slot, others: Iterable[Slot]) -> bool:
        """Whether a slot may get a task: the task did not fail on its host, or failed on all hosts."""
        failed = self._hosts.get(task.fingerprint)
        return failed is None or slot.host not in failed or all(other.host in failed for other in others)


def usable_slots(slots: Iterable[Slot]) -> list[Slot]:
    """Slots that are up and not resting; if all rest, all that are up."""
    up = [slot for slot in slots if slot.up]
    awake = [slot for slot in up if slot.rests <= time.monotonic()]
    return awake or up


def version_mismatches(node: Mapping[str, str], driver: Mapping[str, str]) -> list[str]:
    """Libraries of `RESULT_LIBRARIES`, and plug-ins that both have, whose versions differ on a node and the driver, as text."""
    # A plug-in that only one has may have nothing to do with the run; otherwise its name is unknown there.
    plug_ins = [name for name in driver if name.startswith(PLUG_IN) and name in node]
    return [
        f"{name} {node.get(name, '(none)')} (driver: {driver.get(name, '(none)')})"
        for name in (*RESULT_LIBRARIES, *plug_ins)
        if node.get(name) != driver.get(name)
    ]


def one_line(error: BaseException) -> str:
    """An error as one line; of tracebacks and of Ray's long messages the end."""
    if (storage_error := explain(error)) is not None:
        return storage_error.message
    end = str(error).rpartition("Traceback (most recent call last):")[2]
    return " ".join(word for word in end.split() if word.strip("^~"))[-300:]
