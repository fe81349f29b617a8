"""The Ray executor runs tasks in long-lived actors, here or on a cluster.

By default a private local instance is started, with its own temporary folder, and always shut down; a bare `ray.init()` could
join somebody else's cluster. With an address (config, or RAY_ADDRESS) the cluster is used and only the actors are ended.

A private instance outlives a driver that is killed by a second or two; then `swsdist.pipeline.execution.guard` has ended it.

An actor owns CPUs and memory explicitly, and sets its libraries' threads to the CPUs it owns (Ray sets OMP_NUM_THREADS, which
numba does not heed). `swsdist.pipeline.execution.policy` says which task goes to which actor, and what becomes of one that was
not done, `swsdist.pipeline.execution.placement` where actors stand. If a process dies, what it had ended is done, by its
receipts: an answer may be lost, or come later than the news of the death. Nodes come and go while a stage goes on:
`swsdist.pipeline.execution.nodes`.

Accounts are kept by node. A node's name is its host name, or, where several nodes of the cluster share one (containers made
alike, network namespaces), the host name and Ray's address of the node.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import ray
from ray.exceptions import ActorUnschedulableError, RayError, RayTaskError

from swsdist.accounts.hardware import versions
from swsdist.accounts.journal import DriverJournal, last_part
from swsdist.config.model import Executor as Settings
from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import StorageError, UserError
from swsdist.core.needs import Needs
from swsdist.pipeline.execution.actor import Actor, Ready
from swsdist.pipeline.execution.executor import error_action, failure_of, note_retry
from swsdist.pipeline.execution.node_caches import NodeCaches
from swsdist.pipeline.execution.nodes import (
    LOOK_EVERY,
    REST,
    AvoidedHosts,
    FailedStarts,
    Slot,
    one_line,
    usable_slots,
    version_mismatches,
)
from swsdist.pipeline.execution.placement import at_least, matched, nothing_fits, workers_for
from swsdist.pipeline.execution.policy import Policy, pause
from swsdist.pipeline.execution.ray_instance import (
    Head,
    Instance,
    alive_nodes,
    ask_for,
    await_end,
    await_nodes,
    connect,
    disconnect,
    node_name,
    node_resources,
    ready_calls,
)
from swsdist.pipeline.execution.worker import Parts
from swsdist.pipeline.ledger import receipt_name
from swsdist.pipeline.stage import Context
from swsdist.pipeline.task import Failure, Receipt, Task

_READY_WITHIN = 300.0


class RayExecutor:
    """Actors on a private local instance or a cluster; started when the first task comes. `note` is told of nodes.

    Attributes:
        start_seconds: wall seconds from the first task to the first round of actors being ready.
        stop_seconds: wall seconds of the shutdown.
    """

    def __init__(
        self, context: Context, journal: DriverJournal, settings: Settings, note: Callable[[str], None] = lambda _: None
    ) -> None:
        self._context = context
        self._journal = journal
        self._settings = settings
        self._note = note
        self._kinds: list[Needs] = []  # of actors at the present stage, the best first
        self._slots: list[Slot] = []
        self._policy: Policy[Task] = Policy(settings.in_flight, settings.attempts, settings.actor_restarts)
        self._begun = 0  # actors so far
        self._told_at = 0.0
        self._starts = FailedStarts()
        self._noted: set[str] = set()  # what was told of nodes
        self._avoided = AvoidedHosts()
        self._held = NodeCaches(context)
        self._look_at = 0.0  # when to look at the nodes again
        self._bare_since: float | None = None  # no node with room for a worker
        self._instance: Instance | None = None
        self._head: Head | None = None
        self.start_seconds: float | None = None
        self.stop_seconds: float | None = None

    # -- life -----------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        wanted = (self._settings.workers or 0) * self._settings.cpus_per_worker
        self._instance = connect(self._settings.address or os.environ.get("RAY_ADDRESS"), wanted)
        self._head = Head()
        self._journal.move(node_name())
        self._ask(self._settings.workers or 0)

    def _ask(self, workers: int) -> None:
        """Where a cluster may grow, let it have room for as many workers as the config wants."""
        if self._instance is not None and self._instance.guard is None and self._settings.workers is not None:
            ask_for(workers, self._settings.worker)

    def _provide(self, alternatives: Sequence[Needs], tasks: int, mixed: bool) -> None:
        """As many actors as are wanted and fit, no more than tasks.

        On each node they are of the first alternative that fits it, or, for a stage that is not `mixed`, on all nodes of the
        first that fits any.

        Actors that have enough are kept; others, which work on nothing between two stages, give way to new ones. So do those
        that still work at what others have done.
        """
        asked = [at_least(one, self._settings.worker) for one in alternatives]
        nodes = await_nodes(_READY_WITHIN, self._tell_once)
        choices = [asked] if mixed else [[one] for one in asked]
        self._kinds = next((some for some in choices if workers_for(nodes, some, None, 1)), [])
        if not self._kinds:
            raise nothing_fits(nodes, asked[-1])
        self._end_actors([slot for slot in self._slots if not slot.held and self._lags(slot)])
        missing, kept = self._missing(tasks)
        if missing:  # those that are left would hold what the new ones need
            self._end_actors([slot for slot in self._slots if not slot.held and slot not in kept])
        for needs in missing:
            self._new_slot(needs)

    def _missing(self, tasks: int) -> tuple[list[Needs], list[Slot]]:
        """What each actor is to have that is wanted for so many tasks and not there, and the actors that are wanted."""
        held, used = ([slot for slot in self._slots if bool(slot.held) is unused] for unused in (True, False))
        room = workers_for(node_resources(), self._kinds, None, 1 << 62)
        _, room = matched([slot.needs for slot in held], room)  # they keep their places
        kept, missing = matched([slot.needs for slot in used], room[: min(self._settings.workers or len(room), tasks)])
        return missing, [used[k] for k in kept]

    def _lags(self, slot: Slot) -> bool:
        """Whether an actor works at what another one has done; its answer may have come meanwhile."""
        for ref, task in list(slot.flying) if self._policy.lagging(slot.number) else []:
            if ray.wait([ref], timeout=0)[0]:
                slot.flying.remove((ref, task))
                self._policy.drop(slot.number, task, time.monotonic())
        return self._policy.lagging(slot.number)

    def _look_at_nodes(self, tasks: int) -> None:
        """Use nodes that came, try again where a worker could not start, and do not wait for ever if there is no node left.

        Raises:
            UserError: no worker can be had, or the head is gone.
        """
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_EVERY
        if self._head is None or not self._head.answers():
            return
        alive = alive_nodes() if any(slot.held for slot in self._slots) else set()
        for slot in [slot for slot in self._slots if slot.held]:
            if slot.again <= now or (slot.node and slot.node not in alive):
                self._slots.remove(slot)
                ray.kill(slot.handle)
        if self._policy.deaths <= self._settings.actor_restarts:
            missing, kept = self._missing(tasks)
            others = sum(not slot.held for slot in self._slots) - len(kept)  # of another kind than is best now
            for needs in missing[others:]:
                self._new_slot(needs)
        if any(not slot.held for slot in self._slots):
            self._bare_since = None
            return
        if self._slots and self.start_seconds is None:
            raise codes.UNUSABLE_WORKERS(where="executor.address", reason=self._slots[0].held)
        self._bare_since = self._bare_since or now
        self._tell_once(f"no node is left: waiting {_READY_WITHIN:.0f} s for one")
        if now - self._bare_since > _READY_WITHIN:
            raise codes.NO_NODE_LEFT(where="executor")

    def _tell_once(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self._journal.write("note", message=text)
            self._note(text)

    def _new_slot(self, needs: Needs) -> Slot:
        made = ray.remote(Actor).options(
            num_cpus=needs.cpus,
            num_gpus=needs.gpus,
            memory=int(needs.memory_gb * 1e9),
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy="SPREAD" if self._starts.spread else "DEFAULT",
        )
        handle = made.remote(replace(self._context, granted=needs), needs.cpus)
        self._begun += 1
        slot = Slot(handle, time.monotonic(), self._begun, needs)
        slot.flying.append((handle.ready.remote(), _READY))
        self._slots.append(slot)
        self._policy.add(slot.number)
        return slot

    def close(self) -> None:
        """End the actors; shut a private instance down and remove its folder."""
        clock = time.perf_counter()
        if self._instance is None:
            return
        if self._head is not None and self._instance.guard is None and self._head.gone:
            self._instance = None  # there is nobody to take leave of: it would be waited for
            return
        try:
            handles = [slot.handle for slot in self._slots if slot.up]
            self._end_actors(list(self._slots))
            await_end(handles)
            self._ask(0)
        finally:
            disconnect(self._instance)
            self._instance = None
        self.stop_seconds = time.perf_counter() - clock

    def _end_actors(self, slots: Sequence[Slot]) -> None:
        """End actors; they work on nothing, or on what others have done."""
        try:
            for ref, _ in [waiting for slot in slots for waiting in slot.flying[1:]]:
                ray.cancel(ref)  # the run is broken off
            closing = [
                slot.handle.close.remote() for slot in slots if slot.up and not self._policy.lagging(slot.number)
            ]
            if closing:
                ray.wait(closing, num_returns=len(closing), timeout=5)  # one that is at work closes after its task
            for slot in slots:
                ray.kill(slot.handle)
        except RayError as error:
            self._journal.write("error", message=f"Ray's actors could not be ended: {error}")
        for slot in slots:
            if not slot.held:
                self._policy.end(slot.number)
            self._slots.remove(slot)

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
        if self._head is not None:
            self._head.wait()
        self._provide(needs, len(tasks), self._context.stages[tasks[0].stage].any_device)
        self._policy.begin(tasks)
        waiting = len(tasks)
        while waiting:
            self._look_at_nodes(waiting)
            self._hand_out()
            refs = {ref: (slot, task) for slot in self._slots for ref, task in slot.flying}
            if not refs:
                time.sleep(0.1)
                continue
            late_in = self._policy.look_at - time.monotonic()
            ready = ready_calls(list(refs), late_in if 0 < late_in < 1.0 else 1.0)
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
                        self._not_ready(slot, error)
                        continue
                    if not isinstance(error.cause, MemoryError):
                        slot.flying.remove((ref, task))
                        outcome_or_none = self._raised(slot, task, error)
                        if outcome_or_none is not None:
                            waiting -= 1
                            yield task, outcome_or_none
                        continue
                    for lost, outcome in self._died(slot, error):  # what it holds is not given back
                        waiting -= 1
                        yield lost, outcome
                    continue
                except RayError as error:  # its process or its node is gone, or its answer was lost with it
                    for lost, outcome in self._died(slot, error):
                        waiting -= 1
                        yield lost, outcome
                    continue
                slot.flying.remove((ref, task))
                if task is _READY:
                    self._came_up(slot, value, clock)
                    continue
                slot.misses = 0
                self._held.done(slot.node, task, value)
                if self._policy.done(slot.number, task, time.monotonic(), value.cost.wall):
                    waiting -= 1
                    yield task, value

    def _hand_out(self) -> None:
        up = usable_slots(self._slots)
        slots = {slot.number: slot for slot in up}
        given = self._policy.hand_out(
            time.monotonic(),
            slots,
            lambda number, task: self._avoided.may(task, slots[number], up),
            (lambda number, task: self._held.near(slots[number].node, task)) if self._held else None,
        )
        for number, task in given:
            if task.fingerprint in self._policy.again:
                self._journal.write("again", stage=task.stage, fingerprint=task.fingerprint, host=slots[number].host)
            slots[number].flying.append((slots[number].handle.run.remote(task), task))

    def _tell(self, told: Parts) -> None:
        """Pass on what the workers' journals say of the tasks that they work on; they are written once a second."""
        if (now := time.monotonic()) - self._told_at < 1.0:
            return
        self._told_at = now
        for slot in self._slots:
            said = last_part(self._context.run, slot.journal) if slot.journal and slot.flying else None
            if said is not None and said[0] == slot.flying[0][1].fingerprint:
                told(slot.flying[0][1], said[1])

    def _came_up(self, slot: Slot, value: Ready, clock: float) -> None:
        slot.host, slot.pid, slot.journal, slot.node = value.host, value.pid, value.journal, value.node
        self._held.add(slot.node, value.cached)
        other = version_mismatches(value.versions, versions())
        if other:
            self._hold(slot, f"{slot.host} has {', '.join(other)}", float("inf"))
            self._tell_once(f"{slot.host} is not used: it has {', '.join(other)}")
        else:
            slot.up, self._starts.failed = True, 0
            self._policy.ready(slot.number)
            self._journal.write("up", host=slot.host, pid=slot.pid, journal=slot.journal, gpus=slot.needs.gpus)
            if slot.host == self._journal.host:
                self._journal.others.add(slot.pid)
        whole = all(one.up or one.held for one in self._slots) and any(one.up for one in self._slots)
        if self.start_seconds is None and whole:
            self.start_seconds = time.perf_counter() - clock

    def _check_starting(self) -> None:
        late = [
            slot
            for slot in self._slots
            if not slot.up and not slot.held and time.monotonic() - slot.started > _READY_WITHIN
        ]
        if late and not any(slot.up for slot in self._slots):
            raise codes.WORKER_START_TIMEOUT(where="executor", seconds=_READY_WITHIN)

    def _hold(self, slot: Slot, why: str, seconds: float) -> None:
        """Do not use an actor, for so long."""
        slot.hold(why, seconds)
        self._policy.end(slot.number)

    def _raised(self, slot: Slot, task: Task, error: RayTaskError) -> Failure | None:
        if self._policy.elsewhere(slot.number, task):  # what comes of it there counts
            self._policy.drop(slot.number, task, time.monotonic())
            return None
        cause = error.cause if isinstance(error.cause, Exception) else error
        self._avoided.add(task, slot, cause)
        what = "retry" if self._avoided.elsewhere(task, self._slots) else error_action(cause)
        if what == "stop":
            raise cause
        with suppress(StorageError):  # the disk may be full
            self._journal.write("error", fingerprint=task.fingerprint, traceback=str(error))
        if slot.failed(cause) and len({one.host for one in self._slots if one.up}) > 1:
            self._tell_once(f"{slot.host} gets no tasks for a minute: {one_line(cause)}")
        tried = self._policy.raised(slot.number, task, what == "retry", time.monotonic())
        if tried is not None:
            return failure_of(task, cause, tried, str(error))
        note_retry(self._journal, task, self._policy.tried(task), cause)
        return None

    def _not_ready(self, slot: Slot, error: RayTaskError) -> None:
        """An actor could not get ready: the others go on; but if none ever could, the reason is that of all."""
        cause = error.cause if isinstance(error.cause, Exception) else error
        self._starts.fail()
        self._journal.write("error", message="a worker could not start", traceback=str(error))
        self._hold(slot, f"a worker could not start: {one_line(cause)}", REST)
        self._tell_once(f"{slot.held}; the others go on")
        alone = all(one.held for one in self._slots)
        ends = alone and (isinstance(cause, UserError) or not self._missing(1)[0])
        if ends or self._starts.hopeless(self._slots, len(alive_nodes())):
            raise cause

    def _died(self, slot: Slot, error: Exception) -> list[tuple[Task, Receipt | Failure]]:
        """An actor's process is gone. Put its tasks back, and an actor in its place; returns those that came to their end."""
        self._slots.remove(slot)
        if self._head is not None:
            self._head.wait()
        ray.kill(slot.handle)  # where only its answer was lost, it must not hold its CPUs
        if isinstance(error, ActorUnschedulableError):
            raise codes.UNSCHEDULABLE_WORKER(where="executor", detail=error)
        taken = bool(getattr(error, "preempted", False))  # its node was drained: no task's fault
        if gone := taken or (bool(slot.node) and slot.node not in alive_nodes()):
            self._held.gone(slot.node)
        if slot.up:
            self._look_at = 0.0
        else:  # its process died before it was ready: where it was is not known
            self._starts.fail()
            self._look_at = time.monotonic() + min(REST, pause(self._starts.failed))
            self._tell_once(f"a worker could not start: {one_line(error)}")
            if self._starts.hopeless(self._slots, len(alive_nodes())):
                raise codes.WORKERS_CANNOT_START(where="executor", detail=one_line(error))
        flying = [
            task for _, task in slot.flying if task is not _READY and not self._policy.elsewhere(slot.number, task)
        ]
        ended = {task.fingerprint: receipt for task in flying if (receipt := self._left_by(slot, task)) is not None}
        outcomes: list[tuple[Task, Receipt | Failure]] = []
        outcomes += [(task, ended[task.fingerprint]) for task in flying if task.fingerprint in ended]
        death = self._policy.died(slot.number, ended, counts=slot.up and not gone, guilty=not taken)
        lost = [task.fingerprint for task in death.lost]
        with suppress(StorageError):  # what the policy was told must be heard by who waits for the tasks
            self._journal.write("died", pid=slot.pid, journal=slot.journal, lost=lost, message=str(error)[:500])
        for k, (task, tried) in enumerate(death.failed):
            message = f"no worker is left after {self._policy.deaths} died"
            if death.poisoned and k == 0:
                message = f"the process that worked on it died {tried} times (out of memory, or native code crashed)"
            outcomes.append((task, Failure(task, "killed", message, tried)))
        return outcomes

    def _left_by(self, slot: Slot, task: Task) -> Receipt | None:
        """The receipt that this very process wrote of a task: one of an earlier run may be there whose outputs are gone."""
        folder = self._context.folder(task)
        try:
            receipt = Receipt.from_json(folder.read_bytes(receipt_name(task.stage, task.fingerprint)))
            whole = all(folder.identity(part.name).startswith(f"{part.size}:") for part in receipt.outputs)
        except (FileNotFoundError, StorageError, ValueError, TypeError, KeyError):
            return None  # it is done again
        return receipt if whole and (receipt.host, receipt.pid) == (slot.host, slot.pid) else None


#: Stands for an actor's first answer in its list of calls.
_READY: Task = Task("", "", "ready", 0.0, None)
