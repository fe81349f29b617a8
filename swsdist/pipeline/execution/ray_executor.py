"""The Ray executor runs tasks in long-lived actors, here or on a cluster.

By default a private local instance is started, with its own temporary folder, and always shut down; a bare `ray.init()` could
join somebody else's cluster. With an address (config, or RAY_ADDRESS) the cluster is used and only the actors are ended.

A private instance outlives a driver that is killed by a second or two; then `swsdist.pipeline.execution.guard` has ended it.

An actor owns CPUs and memory explicitly, and sets its libraries' threads to the CPUs it owns (Ray sets OMP_NUM_THREADS, which
numba does not heed). A bounded number of tasks is in flight to each. If a process dies, what it had ended is done, by
its receipts: an answer may be lost, or come later than the news of the death. The task that it worked on is tried again, alone,
on a fresh actor; the others in flight were innocent and go back to the queue. A task that keeps killing its process is recorded
as failed.

Accounts are kept by node. A node's name is its host name, or, where several nodes of the cluster share one (containers made
alike, network namespaces), the host name and Ray's address of the node.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import ray
from ray.exceptions import ActorUnschedulableError, RayError, RayTaskError

from swsdist.accounts.journal import DriverJournal, Journal, last_part
from swsdist.config.model import Executor as Settings
from swsdist.errors import StorageError, UserError
from swsdist.needs import Needs
from swsdist.pipeline.execution.executor import failure, pause, verdict
from swsdist.pipeline.execution.placement import Running, Stragglers, workers_for
from swsdist.pipeline.execution.ray_instance import Instance, connect, disconnect, node_name, node_resources
from swsdist.pipeline.execution.worker import Parts
from swsdist.pipeline.ledger import receipt_name
from swsdist.pipeline.stage import Context
from swsdist.pipeline.task import Failure, Receipt, Task

_READY_WITHIN = 300.0
#: Actors that may fail to start while none is up.
_STARTS = 3


class _Actor:
    """Runs in its own process, for the whole run."""

    def __init__(self, context: Context, threads: int) -> None:
        self._context = context
        self._threads = threads

    def ready(self) -> tuple[str, int, str, str]:
        """Get ready, and tell node, process, version and the name of its journal.

        Not done in `__init__`: what an actor's constructor raises reaches the driver as text only.
        """
        from importlib.metadata import version

        from swsdist.pipeline.execution.worker import Worker

        self._journal = Journal(self._context.run, "worker", node_name())
        self._worker = Worker(self._context, self._journal, self._threads)
        return self._journal.host, os.getpid(), version("swsdist"), self._journal.name

    def run(self, task: Task) -> Receipt:
        """Do a task."""
        return self._worker.run(task)

    def close(self) -> None:
        """End the journal."""
        self._journal.close()


@dataclass
class _Slot:
    """An actor and the tasks in flight to it, oldest first: it works on the oldest."""

    handle: Any
    started: float
    needs: Needs
    up: bool = False
    host: str = ""
    pid: int = 0
    journal: str = ""
    flying: list[tuple[Any, Task]] = field(default_factory=list)
    sent: dict[Any, float] = field(default_factory=dict)  # when each was handed over


class RayExecutor:
    """Actors on a private local instance or a cluster; started when the first task comes.

    Attributes:
        start_seconds: wall seconds from the first task to the first round of actors being ready.
        stop_seconds: wall seconds of the shutdown.
    """

    def __init__(self, context: Context, journal: DriverJournal, settings: Settings) -> None:
        self._context = context
        self._journal = journal
        self._settings = settings
        self._slots: list[_Slot] = []
        self._restarts = 0
        self._told_at = 0.0
        self._unready = 0  # actors that could not get ready
        self._later: list[tuple[float, Task]] = []  # tasks to be tried again, and when
        self._alone: set[str] = set()  # fingerprints of tasks that may have killed a process
        self._instance: Instance | None = None
        self.start_seconds: float | None = None
        self.stop_seconds: float | None = None

    # -- life -----------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        wanted = (self._settings.workers or 0) * self._settings.cpus_per_worker
        self._instance = connect(self._settings.address or os.environ.get("RAY_ADDRESS"), wanted)
        self._journal.move(node_name())

    def _provide(self, alternatives: Sequence[Needs], tasks: int, mixed: bool) -> None:
        """As many actors as are wanted and fit, no more than tasks.

        On each node they are of the first alternative that fits it, or, for a stage that is not `mixed`, on all nodes of the
        first that fits any.

        Actors that have enough are kept; others, which work on nothing between two stages, give way to new ones.
        """
        asked = [self._at_least(one) for one in alternatives]
        nodes = node_resources()
        choices = [asked] if mixed else [[one] for one in asked]
        found_for = (workers_for(nodes, choice, self._settings.workers, tasks) for choice in choices)
        wanted = next((some for some in found_for if some), [])
        if not wanted:
            raise self._nothing_fits(asked[-1])
        missing = []
        kept: list[_Slot] = []
        for needs in wanted:
            found = next((slot for slot in self._slots if slot not in kept and slot.needs.cover(needs)), None)
            if found is None:
                missing.append(needs)
            else:
                kept.append(found)
        if missing:  # those that are left would hold what the new ones need
            self._end_actors([slot for slot in self._slots if slot not in kept])
        for needs in missing:
            self._new_slot(needs)

    def _at_least(self, needs: Needs) -> Needs:
        """What a stage needs, or what the config gives each worker, if that is more; its part of a GPU is the config's."""
        settings = self._settings
        gpus = settings.gpus_per_worker if needs.gpus else 0.0  # Ray hides the GPUs from an actor that asked for none
        return Needs(
            max(needs.cpus, settings.cpus_per_worker), max(needs.memory_gb, settings.memory_per_worker_gb), gpus
        )

    def _nothing_fits(self, needs: Needs) -> UserError:
        # The sum says nothing of what a single node has.
        have = max(node_resources(), key=lambda node: (node.get("CPU", 0), node.get("memory", 0)), default={})
        wants, has = (f"{needs.gpus:g} GPUs, ", f"{have.get('GPU', 0):g} GPUs, ") if needs.gpus else ("", "")
        return UserError(
            f"no worker fits: it needs {wants}{needs.cpus} CPUs and {needs.memory_gb:g} GB, the largest node of Ray has "
            f"{has}{have.get('CPU', 0):g} CPUs and {have.get('memory', 0) / 1e9:.1f} GB",
            where="executor",
            remedy="lower executor.cpus_per_worker or executor.memory_per_worker_gb, "
            f"{'set search.device, or the device of an extractor, to cpu, ' if needs.gpus else ''}or add nodes",
        )

    def _new_slot(self, needs: Needs) -> _Slot:
        made = ray.remote(_Actor).options(
            num_cpus=needs.cpus,
            num_gpus=needs.gpus,
            memory=int(needs.memory_gb * 1e9),
            max_restarts=0,
            max_task_retries=0,
        )
        handle = made.remote(replace(self._context, granted=needs), needs.cpus)
        slot = _Slot(handle, time.monotonic(), needs)
        slot.flying.append((handle.ready.remote(), _READY))
        self._slots.append(slot)
        return slot

    def close(self) -> None:
        """End the actors; shut a private instance down and remove its folder."""
        clock = time.perf_counter()
        if self._instance is None:
            return
        try:
            self._end_actors(self._slots)
        finally:
            disconnect(self._instance)
            self._instance = None
        self.stop_seconds = time.perf_counter() - clock

    def _end_actors(self, slots: Sequence[_Slot]) -> None:
        """End actors; they work on nothing, or on what was done by others."""
        try:
            closing = [slot.handle.close.remote() for slot in slots if slot.up and not slot.flying]
            if closing:
                ray.wait(closing, num_returns=len(closing), timeout=5)
            for slot in slots:
                ray.kill(slot.handle)
        except RayError as error:
            self._journal.write("error", message=f"Ray's actors could not be ended: {error}")
        self._slots = [slot for slot in self._slots if slot not in slots]

    # -- work -----------------------------------------------------------------------------------------------------

    def run(
        self, tasks: Sequence[Task], needs: Sequence[Needs], told: Parts
    ) -> Iterator[tuple[Task, Receipt | Failure]]:
        """Do all tasks, on as many actors as there are, in any order."""
        if not tasks:
            return
        clock = time.perf_counter()
        if self._instance is None:
            self._connect()
        self._provide(needs, len(tasks), self._context.stages[tasks[0].stage].mixed)
        # Largest first: the last to end should be small.
        queue = deque(sorted(tasks, key=lambda task: -task.work))
        suspects: deque[Task] = deque()
        tried: dict[str, int] = {}
        waiting = len(queue)
        mine, late = {task.fingerprint for task in tasks}, Stragglers()
        while waiting:
            now = time.monotonic()
            queue.extend(task for at, task in self._later if at <= now)
            self._later = [(at, task) for at, task in self._later if at > now]
            self._hand_out(queue, suspects)
            if not (queue or suspects or self._later):
                self._try_again(late, mine, tried)
            refs = {ref: (slot, task) for slot in self._slots for ref, task in slot.flying}
            if not refs:
                time.sleep(0.1)
                continue
            ready, _ = ray.wait(list(refs), num_returns=1, timeout=1.0)
            self._tell(told)
            if not ready:
                self._check_starting()
            for ref in ready:
                slot, task = refs[ref]
                if slot not in self._slots:
                    continue  # died meanwhile
                try:
                    value = ray.get(ref, timeout=10)
                except RayTaskError as error:
                    if task is _READY:
                        self._not_ready(error)
                        for lost, outcome in self._died(slot, error, queue, suspects, tried, mine):
                            waiting -= 1
                            yield lost, outcome
                        continue
                    slot.flying.remove((ref, task))
                    slot.sent.pop(ref, None)
                    if task.fingerprint not in mine:
                        continue
                    if task.fingerprint in late.again and self._elsewhere(task):
                        continue  # the other attempt may do it
                    outcome_or_none = self._raised(task, error, tried)
                    if outcome_or_none is not None:
                        mine.remove(task.fingerprint)
                        waiting -= 1
                        yield task, outcome_or_none
                    continue
                except RayError as error:  # its process or its node is gone, or its answer was lost with it
                    for lost, outcome in self._died(slot, error, queue, suspects, tried, mine):
                        waiting -= 1
                        yield lost, outcome
                    continue
                slot.flying.remove((ref, task))
                slot.sent.pop(ref, None)
                if task is _READY:
                    self._came_up(slot, value, clock)
                    continue
                if task.fingerprint not in mine:
                    continue  # another attempt has answered before
                mine.remove(task.fingerprint)
                late.ended(task, value.cost.wall)
                waiting -= 1
                yield task, value

    def _try_again(self, late: Stragglers, mine: set[str], tried: Mapping[str, int]) -> None:
        """Give actors that have nothing to do a second attempt at what takes others too long."""
        for slot in self._slots:
            if not slot.up or slot.flying:
                continue
            running = [
                Running(task, other.sent[ref], place)
                for other in self._slots
                for place, (ref, task) in enumerate(other.flying)
                if task.fingerprint in mine and task.fingerprint not in tried and ref in other.sent
            ]
            task = late.next(running, time.monotonic())
            if task is None:
                return
            self._journal.write("again", stage=task.stage, fingerprint=task.fingerprint, host=slot.host)
            self._send(slot, task)

    def _hand_out(self, queue: deque[Task], suspects: deque[Task]) -> None:
        up = [slot for slot in self._slots if slot.up]
        for slot in up:
            if suspects and not slot.flying:  # alone, so that it is known who was at work
                self._send(slot, suspects.popleft())
        depth = self._settings.in_flight
        for level in range(depth):
            for slot in up:
                alone = len(slot.flying) == 1 and slot.flying[0][1].fingerprint in self._alone
                if queue and len(slot.flying) == level and not alone:
                    self._send(slot, queue.popleft())

    def _tell(self, told: Parts) -> None:
        """Pass on what the workers' journals say of the tasks that they work on; they are written once a second."""
        if (now := time.monotonic()) - self._told_at < 1.0:
            return
        self._told_at = now
        for slot in self._slots:
            said = last_part(self._context.run, slot.journal) if slot.journal and slot.flying else None
            if said is not None and said[0] == slot.flying[0][1].fingerprint:
                told(slot.flying[0][1], said[1])

    def _send(self, slot: _Slot, task: Task) -> None:
        ref = slot.handle.run.remote(task)
        slot.flying.append((ref, task))
        slot.sent[ref] = time.monotonic()

    def _elsewhere(self, task: Task) -> bool:
        """Whether another attempt at a task is under way."""
        return any(one.fingerprint == task.fingerprint for slot in self._slots for _, one in slot.flying)

    def _came_up(self, slot: _Slot, value: tuple[str, int, str, str], clock: float) -> None:
        from importlib.metadata import version

        host, pid, there, journal = value
        if there != version("swsdist"):
            raise UserError(
                f"{host} has swsdist {there}, this is {version('swsdist')}",
                where="executor.address",
                remedy="install the same version on all nodes",
            )
        slot.up, slot.host, slot.pid, slot.journal = True, host, pid, journal
        if host == self._journal.host:
            self._journal.others.add(slot.pid)
        if self.start_seconds is None and all(other.up for other in self._slots):
            self.start_seconds = time.perf_counter() - clock

    def _check_starting(self) -> None:
        late = [slot for slot in self._slots if not slot.up and time.monotonic() - slot.started > _READY_WITHIN]
        if late and not any(slot.up for slot in self._slots):
            raise UserError(
                f"no worker came up within {_READY_WITHIN:.0f} s",
                where="executor",
                remedy="look at `ray status`: the cluster may be full",
            )

    def _raised(self, task: Task, error: RayTaskError, tried: dict[str, int]) -> Failure | None:
        cause = error.cause if isinstance(error.cause, Exception) else error
        what = verdict(cause)
        if what == "stop":
            raise cause
        with suppress(StorageError):  # the disk may be full
            self._journal.write("error", fingerprint=task.fingerprint, traceback=str(error))
        attempts = tried[task.fingerprint] = tried.get(task.fingerprint, 0) + 1
        if what == "fail" or attempts >= self._settings.attempts:
            return failure(task, cause, attempts, str(error))
        self._later.append((time.monotonic() + pause(attempts), task))
        return None

    def _not_ready(self, error: RayTaskError) -> None:
        """An actor could not get ready: the others go on; but if none ever could, the reason is that of all."""
        cause = error.cause if isinstance(error.cause, Exception) else error
        self._unready += 1
        self._journal.write("error", message="a worker could not start", traceback=str(error))
        if isinstance(cause, UserError) or (self._unready >= _STARTS and not any(slot.up for slot in self._slots)):
            raise cause

    def _died(
        self,
        slot: _Slot,
        error: Exception,
        queue: deque[Task],
        suspects: deque[Task],
        tried: dict[str, int],
        mine: set[str],
    ) -> list[tuple[Task, Receipt | Failure]]:
        """An actor's process is gone. Put its tasks back, and an actor in its place; returns those that came to their end."""
        self._slots.remove(slot)
        ray.kill(slot.handle)  # where only its answer was lost, it must not hold its CPUs
        if isinstance(error, ActorUnschedulableError):
            raise UserError(str(error), where="executor", remedy="lower what a worker asks for, or add nodes")
        # What another attempt has done, or works on, is not lost with this one.
        flying = [task for _, task in slot.flying if task.fingerprint in mine and not self._elsewhere(task)]
        ended = {task.fingerprint: receipt for task in flying if (receipt := self._left_by(slot, task)) is not None}
        outcomes: list[tuple[Task, Receipt | Failure]] = []
        outcomes += [(task, ended[task.fingerprint]) for task in flying if task.fingerprint in ended]
        lost = [task for task in flying if task.fingerprint not in ended]
        self._journal.write("died", pid=slot.pid, lost=[task.fingerprint for task in lost], message=str(error)[:500])
        queue.extendleft(reversed(lost[1:]))
        if lost:
            task = lost[0]
            attempts = tried[task.fingerprint] = tried.get(task.fingerprint, 0) + 1
            if attempts >= self._settings.attempts:
                message = f"the process that worked on it died {attempts} times (out of memory, or native code crashed)"
                outcomes.append((task, Failure(task, "killed", message, attempts)))
            else:
                self._alone.add(task.fingerprint)
                suspects.append(task)
        self._restarts += 1
        if self._restarts <= self._settings.actor_restarts:
            self._new_slot(slot.needs)
        elif not self._slots:
            message = f"no worker is left after {self._restarts} died"
            for task in [*suspects, *queue, *(task for _, task in self._later)]:
                outcomes.append((task, Failure(task, "killed", message, tried.get(task.fingerprint, 0))))
            suspects.clear()
            queue.clear()
            self._later.clear()
        mine -= {task.fingerprint for task, _ in outcomes}
        return outcomes

    def _left_by(self, slot: _Slot, task: Task) -> Receipt | None:
        """The receipt that this very process wrote of a task: one of an earlier run may be there whose outputs are gone."""
        folder = self._context.folder(task)
        try:
            receipt = Receipt.from_json(folder.read_bytes(receipt_name(task.stage, task.fingerprint)))
            whole = all(folder.identity(part.name).startswith(f"{part.size}:") for part in receipt.outputs)
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None
        return receipt if whole and (receipt.host, receipt.pid) == (slot.host, slot.pid) else None


#: Stands for an actor's first answer in its list of calls.
_READY = Task("", "", "ready", 0.0, {})
