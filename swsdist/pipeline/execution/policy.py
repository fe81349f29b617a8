"""The policy says which task goes next to which worker, and what becomes of tasks that were not done.

It knows neither processes nor clocks of its own, so an executor that runs tasks and a simulator that only counts their time
follow the same one:

- the largest task goes first: the last to end should be small. Among some of much its size, a worker gets what lies near it;
- so many tasks at most are handed to a worker at once, one to each worker before a second to any;
- a task that met what may pass comes back to the queue after a pause;
- of a worker that died, the oldest task in flight is suspected: it is tried again alone, on a worker with nothing else. The
  others were innocent and go back to the front of the queue. A task that was suspected as often as it may be tried fails;
- a dead worker is replaced, so many times a run. When none is left, all that waits fails;
- when nothing is left to hand out, a worker without work gets a second attempt at a task that takes another one much longer
  than its work lets expect, and at what waits behind it. The first answer counts, and the other attempt is not waited for.
  Both write the same bytes under the same names, so neither does harm.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import median
from typing import Generic, Protocol, TypeVar

from swsdist.pipeline.records.spool import Queue

#: A task is late when it takes so many times what its work lets expect, and so many seconds at least.
_TIMES, _LEAST = 2.0, 5.0
#: What a task reads is on the worker's own node.
NEAREST = 2
#: Tasks at the head of the queue of which a worker gets the nearest, and their work, as a part of the first's at least.
_AHEAD, _ALIKE = 256, 0.5
#: Tasks that must have ended before anything is expected, and the last ones of which it is told.
_KNOWN, _HEEDED = 3, 1000


class PolicyTask(Protocol):
    """The parts of a task that the policy looks at."""

    @property
    def fingerprint(self) -> str:
        """Names it."""
        ...

    @property
    def work(self) -> float:
        """How much it is."""
        ...


P = TypeVar("P", bound=PolicyTask)


@dataclass(frozen=True)
class WorkerDeath(Generic[P]):
    """What follows from the death of a worker.

    Attributes:
        lost: its tasks in flight that are not done, oldest first.
        failed: tasks that fail now, each with the times it was tried.
        poisoned: the first of these failed since workers keep dying at it, not for want of workers.
        replace: whether another worker is to be started.
    """

    lost: list[P]
    failed: list[tuple[P, int]] = field(default_factory=list)
    poisoned: bool = False
    replace: bool = False


def pause(attempt: int) -> float:
    """Seconds to wait before the next attempt: 0.5, 1, 2, ... up to 8."""
    return float(min(8.0, 0.5 * 2 ** (attempt - 1)))


class Policy(Generic[P]):
    """The tasks of one stage after the other, and the workers of a run.

    Args:
        in_flight: tasks handed to a worker at once.
        attempts: times a task is tried.
        restarts: workers replaced, over the run.

    Attributes:
        deaths: of workers so far.
        again: fingerprints of tasks that got a second attempt.
        look_at: when the next task in flight may be late, on the clock of `hand_out`; past where that is not known.
    """

    def __init__(self, in_flight: int, attempts: int, restarts: int) -> None:
        self._in_flight = in_flight
        self._attempts = attempts
        self._restarts = restarts
        self._flying: dict[int, list[P]] = {}  # by worker
        self._hungry: set[int] = set()  # workers that are up and have fewer tasks than they may
        self._begun: dict[int, float] = {}  # when each worker began with the oldest of its tasks
        self._open = 0  # tasks that have not come to their ends
        self._queue: Queue[P] = Queue()
        self._suspects: deque[P] = deque()
        self._later: list[tuple[float, P]] = []
        self._alone: set[str] = set()  # fingerprints of tasks that may have killed a worker
        self._tried: dict[str, int] = {}
        self._pace: deque[float] = deque(maxlen=_HEEDED)  # s a unit of work, of tasks that ended
        self._around = 0.0  # s that a task took most beside its work: what a worker loads before its first one, say
        self._answered: set[str] = set()  # those of `again` that have come to their ends
        self.again: set[str] = set()
        self.look_at = inf
        self.deaths = 0

    def begin(self, tasks: Sequence[P]) -> None:
        """The tasks of a stage; those of the stage before have come to their ends."""
        self._queue = Queue(tasks)
        self._open = len(tasks)
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
        """Tasks that have not come to their ends."""
        return self._open

    # -- workers --------------------------------------------------------------------------------------------------

    def add(self, worker: int) -> None:
        """A worker is being started; its number is above those before."""
        self._flying[worker] = []

    def ready(self, worker: int) -> None:
        """It is up: it may be given tasks."""
        self._hungry.add(worker)

    def end(self, worker: int) -> None:
        """It is ended on purpose; nothing is in flight to it, or what others have done."""
        del self._flying[worker]
        self._hungry.discard(worker)

    def lagging(self, worker: int) -> bool:
        """Whether it works at what another one has done, and so for nothing."""
        return bool(self._answered) and any(one.fingerprint in self._answered for one in self._flying[worker])

    def died(
        self, worker: int, done: Container[str] = (), *, counts: bool = True, guilty: bool = True
    ) -> WorkerDeath[P]:
        """It is gone.

        Args:
            done: fingerprints of its tasks in flight that are done all the same, by their receipts.
            counts: whether it is one of those that are replaced so many times a run; where its node left, it is not.
            guilty: whether the task that it worked on may have killed it; else that goes back to the queue too.
        """
        left = [task for task in self._flying[worker] if task.fingerprint not in done]
        lost = [task for task in left if not self.elsewhere(worker, task)]
        for task in self._flying[worker]:
            if task.fingerprint in done and not self.elsewhere(worker, task):
                self._end(task)
        del self._flying[worker]
        self._hungry.discard(worker)
        failed: list[tuple[P, int]] = []
        guilty = guilty and bool(lost) and lost[0] is left[0]  # another worker has done what it worked on, or is at it
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
        """The tasks that go out now, each with its worker, in this order.

        Args:
            now: s on any clock that does not go back.
            among: workers that may be given something; all by default.
            may: whether a worker may have a task; it may have any by default.
            near: how near what a task reads is to a worker, 0 to `NEAREST`; nobody waits for what is near.
        """
        if self._later:
            self._queue.extend(task for at, task in self._later if at <= now)
            self._later = [(at, task) for at, task in self._later if at > now]
        # In the order in which they were started.
        hungry = sorted(
            worker for worker in self._hungry if (among is None or worker in among) and not self.lagging(worker)
        )
        if not self._queue and not self._suspects:
            return self._second(now, [worker for worker in hungry if not self._flying[worker]], may)
        self.look_at = 0.0
        given: list[tuple[int, P]] = []
        for worker in hungry:
            if self._suspects and not self._flying[worker]:  # alone, so that it is known who was at work
                given.append((worker, self._give(worker, self._suspects.popleft(), now)))
        for level in range(self._in_flight):
            for worker in hungry:
                flying = self._flying[worker]
                alone = len(flying) == 1 and flying[0].fingerprint in self._alone
                if len(flying) == level and not alone:
                    task = self._next(worker, may, near)
                    if task is not None:
                        given.append((worker, self._give(worker, task, now)))
        return given

    def _second(self, now: float, idle: list[int], may: Callable[[int, P], bool] | None) -> list[tuple[int, P]]:
        """Second attempts at what is late; `idle` are workers without work."""
        given: list[tuple[int, P]] = []
        if not idle or self._later or now < self.look_at or len(self._pace) < _KNOWN:
            return given
        usual = median(self._pace)
        late: list[tuple[float, str, P]] = []
        for worker, flying in self._flying.items():
            work = 0.0
            for task in flying:
                work += task.work  # of what is before it, too
                if task.fingerprint not in self.again and task.fingerprint not in self._tried:
                    at = self._begun[worker] + self._around + max(_LEAST, _TIMES * usual * work)
                    late.append((at, task.fingerprint, task))
        late.sort(key=lambda one: one[:2])
        self.look_at = next((at for at, _, _ in late if at > now), inf)
        for at, name, task in late:
            if at > now:
                break
            among = [worker for worker in idle if may is None or may(worker, task)]
            if not among:
                self.look_at = now  # as soon as one has nothing to do
                continue
            idle.remove(among[0])
            self.again.add(name)
            given.append((among[0], self._give(among[0], task, now)))
        return given

    def _next(
        self, worker: int, may: Callable[[int, P], bool] | None, near: Callable[[int, P], int] | None
    ) -> P | None:
        """Of the first tasks of the queue that a worker may have the nearest to it; of those as near the first."""
        looked: list[P] = []
        best, nearness, least = -1, -1, 0.0
        while self._queue and nearness < NEAREST and (best < 0 or len(looked) < _AHEAD):
            task = self._queue.popleft()
            looked.append(task)
            if may is not None and not may(worker, task):
                continue
            if best >= 0 and task.work < least:
                break
            found = NEAREST if near is None else near(worker, task)
            if found > nearness:
                least = least if best >= 0 else _ALIKE * task.work
                best, nearness = len(looked) - 1, found
        given = looked.pop(best) if best >= 0 else None
        self._queue.extendleft(reversed(looked))
        return given

    def _give(self, worker: int, task: P, now: float) -> P:
        flying = self._flying[worker]
        if not flying:
            self._begun[worker] = now
        flying.append(task)
        if len(flying) >= self._in_flight:
            self._hungry.discard(worker)
        return task

    def done(self, worker: int, task: P, now: float, seconds: float) -> bool:
        """A task in flight was done, in so many seconds, without what its worker had to get ready for it.

        Returns:
            Whether it has come to its end by that: it has not if another worker did it before.
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
        """A task is no more in flight to a worker, whatever came of it."""
        flying = self._flying[worker]
        del flying[next(k for k, one in enumerate(flying) if one.fingerprint == task.fingerprint)]
        self._begun[worker] = now
        self._hungry.add(worker)

    def elsewhere(self, worker: int, task: P) -> bool:
        """Whether another worker has done a task in flight, or is at it."""
        name = task.fingerprint
        return name in self._answered or (
            name in self.again
            and any(
                one.fingerprint == name for other, flying in self._flying.items() if other != worker for one in flying
            )
        )

    def _end(self, task: P) -> None:
        """A task has come to its end."""
        self._open -= 1
        if task.fingerprint in self.again:
            self._answered.add(task.fingerprint)

    def raised(self, worker: int, task: P, passing: bool, now: float) -> int | None:
        """A task in flight met an error, and is not `elsewhere`.

        Args:
            passing: whether the error may pass.
            now: on the clock of `hand_out`.

        Returns:
            How often it was tried, if it fails; None if it is to be tried again.
        """
        self.drop(worker, task, now)
        tried = self._try(task)
        if not passing or tried >= self._attempts:
            self._end(task)
            return tried
        self._later.append((now + pause(tried), task))
        return None

    def tried(self, task: P) -> int:
        """How often a task of this stage was tried in vain."""
        return self._tried.get(task.fingerprint, 0)

    def _try(self, task: P) -> int:
        self._tried[task.fingerprint] = self._tried.get(task.fingerprint, 0) + 1
        return self._tried[task.fingerprint]
