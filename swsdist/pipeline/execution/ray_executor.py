"""The Ray executor runs tasks in long-lived actors, here or on a cluster.

By default it starts a private local instance with its own temporary folder, and always shuts it down; a bare
`ray.init()` could join another user's cluster. With an address (config, or RAY_ADDRESS) it uses that cluster, and ends
only its actors. A private instance outlives a killed driver by a second or two, until
`swsdist.pipeline.execution.ray_instance` ends it.

An actor reserves CPUs and memory, and limits its libraries' threads to its CPUs (Ray sets OMP_NUM_THREADS, which numba
ignores). `swsdist.pipeline.execution.policy` places actors on nodes, which may join and leave during a stage, assigns
tasks to actors, and handles tasks that did not finish. When a process dies, its finished tasks are known by their
receipts: an answer may be lost, or arrive after the news of the death.

Accounts are kept by node. A node's name is its host name; if several nodes share one (identical containers, network
namespaces), it is the host name and Ray's address of the node.

Caches: the driver estimates which store files are in which node's cache, so that tasks run near their inputs. A worker
reports the content of its node's cache when it starts. Files that its tasks read and write are added since, and the
least recently used are dropped when a cache would be full. Other runs use the caches too; a wrong entry costs one
transfer.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

import ray
from ray.exceptions import ActorUnschedulableError, RayError, RayTaskError

from swsdist.accounts.hardware import node_versions
from swsdist.accounts.journal import DriverJournal, last_part
from swsdist.config.model import Executor as Settings
from swsdist.core.codes import families
from swsdist.core.codes import pipeline as codes
from swsdist.core.errors import StorageError, UserError
from swsdist.core.needs import Needs
from swsdist.pipeline.chain import Context
from swsdist.pipeline.execution.executor import KILLED, Outcomes, PartListener, error_action, failure_of, note_retry
from swsdist.pipeline.execution.policy import (
    CHECK_INTERVAL,
    NEAREST,
    REST,
    AvoidedHosts,
    FailedStarts,
    Policy,
    Slot,
    at_least,
    lacking,
    matched,
    nothing_fits,
    one_line,
    pause,
    usable_slots,
    version_mismatches,
    workers_for,
)
from swsdist.pipeline.execution.ray_instance import (
    Actor,
    Head,
    Instance,
    Ready,
    alive_nodes,
    ask_for,
    await_end,
    await_nodes,
    connect,
    create_actor,
    disconnect,
    node_name,
    node_resources,
    ready_calls,
)
from swsdist.pipeline.ledger import written_receipt
from swsdist.pipeline.task import Failure, Receipt, Task


class NodeCaches:
    """The caches of all nodes; falsy without caches.

    Args:
        context: of the tasks.
    """

    def __init__(self, context: Context) -> None:
        self._stages = context.stages
        self._most = 0 if context.cache is None else context.cache[1]
        self._nodes: dict[str, OrderedDict[str, int]] = {}
        self._bytes: Counter[str] = Counter()  # by node
        self._holders: Counter[str] = Counter()  # nodes, by file

    def __bool__(self) -> bool:
        return self._most > 0

    def add(self, node: str, files: Iterable[tuple[str, int]]) -> None:
        """Record that files (SHA-256, bytes) were added to or used from a node's cache."""
        cached = self._nodes.setdefault(node, OrderedDict())
        for name, size in files:
            if size > self._most:
                continue
            if name in cached:
                cached.move_to_end(name)
                continue
            cached[name] = size
            self._bytes[node] += size
            self._holders[name] += 1
            while self._bytes[node] > self._most:
                oldest, its = cached.popitem(last=False)
                self._bytes[node] -= its
                self._holders[oldest] -= 1

    def gone(self, node: str) -> None:
        """Forget a node that left."""
        self._bytes.pop(node, None)
        for name in self._nodes.pop(node, ()):
            self._holders[name] -= 1

    def done(self, node: str, task: Task, receipt: Receipt) -> None:
        """Record the store files that a task read and wrote on a node."""
        if self:
            self.add(node, self._stages[task.stage].reads(task))
            self.add(node, [(part.sha256, part.size) for part in receipt.outputs if task.place])

    def near(self, node: str, task: Task) -> int:
        """Locality of a task on a node.

        Returns:
            `NEAREST` if the node caches at least half of the task's input bytes, or it has none; 1 if no node caches the rest;
            0 if other nodes cache some of it.
        """
        cached, cached_bytes, input_bytes, elsewhere = self._nodes.get(node, OrderedDict()), 0, 0, False
        for name, size in self._stages[task.stage].reads(task):
            input_bytes += size
            if name in cached:
                cached_bytes += size
            else:
                elsewhere = elsewhere or self._holders[name] > 0
        if 2 * cached_bytes >= input_bytes:
            return NEAREST
        return 0 if elsewhere else 1


_READY_WITHIN = 300.0

#: s that a cluster may take to add a node with a GPU: a machine, a driver, and an image of some GB.
_GPU_WITHIN = 900.0


class RayExecutor:
    """Actors on a private local instance or a cluster, started with the first task.

    Args:
        context: of the tasks.
        journal: the driver's journal.
        settings: section `executor` of the config.
        note: called with messages about nodes.

    Attributes:
        start_seconds: seconds from the first task until the first actors are ready.
        stop_seconds: seconds of the shutdown.
    """

    def __init__(
        self, context: Context, journal: DriverJournal, settings: Settings, note: Callable[[str], None] = lambda _: None
    ) -> None:
        self._context = context
        self._journal = journal
        self._settings = settings
        self._note = note
        self._alternatives: list[Needs] = []  # of the present stage's actors, the best first
        self._slots: list[Slot] = []
        self._policy: Policy[Task] = Policy(settings.in_flight, settings.attempts, settings.actor_restarts)
        self._begun = 0  # number of actors so far
        self._reported_at = 0.0
        self._starts = FailedStarts()
        self._noted: set[str] = set()  # messages that were shown
        self._avoided = AvoidedHosts()
        self._caches = NodeCaches(context)
        self._next_check = 0.0  # when to check the nodes next
        self._without_node_since: float | None = None  # since when no node has room for a worker
        self._node_within = _READY_WITHIN  # how long to wait for one, s
        self._instance: Instance | None = None
        self._head: Head | None = None
        self._requested: tuple[int, Needs] | None = None  # of an autoscaler
        self.start_seconds: float | None = None
        self.stop_seconds: float | None = None

    # -- life -----------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        cpus = (self._settings.workers or 0) * self._settings.cpus_per_worker
        self._instance = connect(self._settings.cluster, cpus)
        self._head = Head()
        self._journal.rename_node(node_name())

    def _ask(self, workers: int, needs: Needs) -> bool:
        """Ask an autoscaling cluster for room for workers, in place of what was asked for; whether there may be one."""
        if self._instance is None or self._instance.guard is not None or self._settings.workers is None:
            return False
        if self._requested != (workers, needs):
            self._requested = workers, needs
            ask_for(workers, needs)
        return True

    def _provide(self, alternatives: Sequence[Needs], tasks: int, any_device: bool) -> None:
        """Start as many actors as are configured and fit, at most one for each task.

        Each node gets actors of the first alternative that fits it; without `any_device`, all nodes use the first alternative
        that fits any node. Actors with enough resources are kept; idle ones with too little, and those that still run tasks
        which others have finished, are replaced.
        """
        enlarged = [at_least(alternative, self._settings.worker) for alternative in alternatives]
        # Where CPUs do as well, no node is started for its GPU; where they do not, no more GPUs than there are tasks.
        needs, workers = min(enlarged, key=lambda item: item.gpus), self._settings.workers or 0
        if needs.gpus:
            growing, self._node_within = self._ask(min(workers, tasks), needs), _GPU_WITHIN
        else:
            growing, self._node_within = self._ask(workers, replace(self._settings.worker, gpus=0.0)), _READY_WITHIN
        nodes = await_nodes(self._node_within, self._note_once, lambda nodes: lacking(nodes, needs, growing))
        choices = [enlarged] if any_device else [[alternative] for alternative in enlarged]
        self._alternatives = next((some for some in choices if workers_for(nodes, some, None, 1)), [])
        if not self._alternatives:
            raise nothing_fits(nodes, enlarged[-1])
        self._end_actors([slot for slot in self._slots if not slot.reason_unused and self._is_lagging(slot)])
        missing, kept = self._plan_actors(tasks)
        if missing:  # the remaining actors would hold the resources of the new ones
            self._end_actors([slot for slot in self._slots if not slot.reason_unused and slot not in kept])
        for needs in missing:
            self._new_slot(needs)

    def _plan_actors(self, tasks: int) -> tuple[list[Needs], list[Slot]]:
        """Resources of each missing actor for this number of tasks, and the actors to keep."""
        used = [slot for slot in self._slots if not slot.reason_unused]
        room = workers_for(node_resources(), self._alternatives, None, 1 << 62)
        _, room = matched([slot.needs for slot in self._slots if slot.reason_unused], room)  # they keep their room
        kept, missing = matched([slot.needs for slot in used], room[: min(self._settings.workers or len(room), tasks)])
        return missing, [used[k] for k in kept]

    def _is_lagging(self, slot: Slot) -> bool:
        """Whether an actor still runs a task that another one has finished; its answer may have arrived."""
        for ref, task in list(slot.flying) if self._policy.lagging(slot.number) else []:
            if ray.wait([ref], timeout=0)[0]:
                slot.flying.remove((ref, task))
                self._policy.drop(slot.number, task, time.monotonic())
        return self._policy.lagging(slot.number)

    def _check_nodes(self, tasks: int) -> None:
        """Use new nodes, retry failed starts, and limit the wait if no node is left.

        Raises:
            UserError: no worker can be started, or the head is gone.
        """
        now = time.monotonic()
        if now < self._next_check:
            return
        self._next_check = now + CHECK_INTERVAL
        if self._head is None or not self._head.answers():
            return
        alive = alive_nodes() if any(slot.reason_unused for slot in self._slots) else set()
        for slot in [slot for slot in self._slots if slot.reason_unused]:
            if slot.again <= now or (slot.node and slot.node not in alive):
                self._slots.remove(slot)
                ray.kill(slot.handle)
        if self._policy.deaths <= self._settings.actor_restarts:
            missing, kept = self._plan_actors(tasks)
            # Actors with other resources than the best alternative count as well.
            others = sum(not slot.reason_unused for slot in self._slots) - len(kept)
            for needs in missing[others:]:
                self._new_slot(needs)
        if any(not slot.reason_unused for slot in self._slots):
            self._without_node_since = None
            return
        if self._slots and self.start_seconds is None:
            raise codes.UNUSABLE_WORKERS(where="executor.address", reason=self._slots[0].reason_unused)
        self._without_node_since = self._without_node_since or now
        self._note_once(f"no node is left: waiting {self._node_within:.0f} s for one")
        if now - self._without_node_since > self._node_within:
            raise codes.NO_NODE_LEFT(where="executor")

    def _note_once(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self._journal.write("note", message=text)
            self._note(text)

    def _new_slot(self, needs: Needs) -> Slot:
        strategy = {"scheduling_strategy": "SPREAD" if self._starts.spread else "DEFAULT"}
        context = replace(self._context, granted=needs)
        handle = create_actor(Actor, needs, context, needs.cpus, max_restarts=0, max_task_retries=0, **strategy)
        self._begun += 1
        slot = Slot(handle, time.monotonic(), self._begun, needs)
        slot.flying.append((handle.ready.remote(), _READY))
        self._slots.append(slot)
        self._policy.add(slot.number)
        return slot

    def close(self) -> None:
        """End the actors; shut down a private instance and remove its folder."""
        clock = time.perf_counter()
        if self._instance is None:
            return
        if self._head is not None and self._instance.guard is None and self._head.gone:
            self._instance = None  # disconnecting would wait for the dead head
            return
        try:
            handles = [slot.handle for slot in self._slots if slot.up]
            self._end_actors(list(self._slots))
            await_end(handles)
            self._ask(0, self._settings.worker)
        finally:
            disconnect(self._instance)
            self._instance = None
        self.stop_seconds = time.perf_counter() - clock

    def _end_actors(self, slots: Sequence[Slot]) -> None:
        """End actors that are idle, or whose tasks others have finished."""
        try:
            for ref, _ in [waiting for slot in slots for waiting in slot.flying[1:]]:
                ray.cancel(ref)  # the run is interrupted
            closing = [
                slot.handle.close.remote() for slot in slots if slot.up and not self._policy.lagging(slot.number)
            ]
            if closing:
                ray.wait(closing, num_returns=len(closing), timeout=5)  # a busy actor closes after its task
            for slot in slots:
                ray.kill(slot.handle)
        except RayError as error:
            self._journal.write("error", message=f"Ray's actors could not be ended: {error}")
        for slot in slots:
            if not slot.reason_unused:
                self._policy.end(slot.number)
            self._slots.remove(slot)

    # -- work -----------------------------------------------------------------------------------------------------

    def run(self, tasks: Sequence[Task], needs: Sequence[Needs], on_part: PartListener) -> Outcomes:
        """Run all tasks on the available actors, in any order."""
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
            self._check_nodes(waiting)
            self._hand_out()
            refs = {ref: (slot, task) for slot in self._slots for ref, task in slot.flying}
            if not refs:
                time.sleep(0.1)
                continue
            late_in = self._policy.look_at - time.monotonic()
            ready = ready_calls(list(refs), late_in if 0 < late_in < 1.0 else 1.0)
            self._report_parts(on_part)
            if not ready:
                self._check_starting()
            for ref in ready:
                slot, task = refs[ref]
                if slot not in self._slots:
                    continue  # the actor died meanwhile
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
                    for lost, outcome in self._died(slot, error):  # its memory is not released
                        waiting -= 1
                        yield lost, outcome
                    continue
                except RayError as error:  # its process or node is gone, or its answer was lost
                    for lost, outcome in self._died(slot, error):
                        waiting -= 1
                        yield lost, outcome
                    continue
                slot.flying.remove((ref, task))
                if task is _READY:
                    self._came_up(slot, value, clock)
                    continue
                slot.misses = 0
                self._caches.done(slot.node, task, value)
                if self._policy.done(slot.number, task, time.monotonic(), value.cost.wall):
                    waiting -= 1
                    yield task, value

    def _hand_out(self) -> None:
        up = usable_slots(self._slots)
        slots = {slot.number: slot for slot in up}
        assignments = self._policy.hand_out(
            time.monotonic(),
            slots,
            lambda number, task: self._avoided.may(task, slots[number], up),
            (lambda number, task: self._caches.near(slots[number].node, task)) if self._caches else None,
        )
        for number, task in assignments:
            if task.fingerprint in self._policy.again:
                self._journal.write("again", stage=task.stage, fingerprint=task.fingerprint, host=slots[number].host)
            slots[number].flying.append((slots[number].handle.run.remote(task), task))

    def _report_parts(self, on_part: PartListener) -> None:
        """Pass on what the workers' journals say of the tasks that they work on; they are written once a second."""
        if (now := time.monotonic()) - self._reported_at < 1.0:
            return
        self._reported_at = now
        for slot in self._slots:
            reported = last_part(self._context.run, slot.journal) if slot.journal and slot.flying else None
            if reported is not None and reported[0] == slot.flying[0][1].fingerprint:
                on_part(slot.flying[0][1], reported[1])

    def _came_up(self, slot: Slot, value: Ready, clock: float) -> None:
        slot.host, slot.pid, slot.journal, slot.node = value.host, value.pid, value.journal, value.node
        self._caches.add(slot.node, value.cached)
        other = version_mismatches(value.versions, node_versions())
        if other:
            self._hold(slot, f"{slot.host} has {', '.join(other)}", float("inf"))
            self._note_once(f"{slot.host} is not used: it has {', '.join(other)}")
        else:
            slot.up, self._starts.failed = True, 0
            self._policy.ready(slot.number)
            self._journal.write("up", host=slot.host, pid=slot.pid, journal=slot.journal, gpus=slot.needs.gpus)
            if slot.host == self._journal.host:
                self._journal.others.add(slot.pid)
        all_up = all(slot.up or slot.reason_unused for slot in self._slots) and any(slot.up for slot in self._slots)
        if self.start_seconds is None and all_up:
            self.start_seconds = time.perf_counter() - clock

    def _check_starting(self) -> None:
        late = [
            slot
            for slot in self._slots
            if not slot.up and not slot.reason_unused and time.monotonic() - slot.started > _READY_WITHIN
        ]
        if late and not any(slot.up for slot in self._slots):
            raise families.NO_WORKER(
                "no worker started within {seconds:.0f} s",
                "see `ray status`: the cluster may be full",
                where="executor",
                seconds=_READY_WITHIN,
            )

    def _hold(self, slot: Slot, why: str, seconds: float) -> None:
        """Do not use an actor for some seconds."""
        slot.hold(why, seconds)
        self._policy.end(slot.number)

    def _raised(self, slot: Slot, task: Task, error: RayTaskError) -> Failure | None:
        if self._policy.elsewhere(slot.number, task):  # the other attempt counts
            self._policy.drop(slot.number, task, time.monotonic())
            return None
        cause = error.cause if isinstance(error.cause, Exception) else error
        self._avoided.add(task, slot, cause)
        what = "retry" if self._avoided.elsewhere(task, self._slots) else error_action(cause)
        if what == "stop":
            raise cause
        with suppress(StorageError):  # the disk may be full
            self._journal.write("error", fingerprint=task.fingerprint, traceback=str(error))
        if slot.failed(cause) and len({slot.host for slot in self._slots if slot.up}) > 1:
            self._note_once(f"{slot.host} gets no tasks for a minute: {one_line(cause)}")
        tried = self._policy.raised(slot.number, task, what == "retry", time.monotonic())
        if tried is not None:
            return failure_of(task, cause, tried, str(error))
        note_retry(self._journal, task, self._policy.tried(task), cause)
        return None

    def _not_ready(self, slot: Slot, error: RayTaskError) -> None:
        """An actor failed to start. The others go on; if none can start, raise the error."""
        cause = error.cause if isinstance(error.cause, Exception) else error
        self._starts.fail()
        self._journal.write("error", message="a worker could not start", traceback=str(error))
        self._hold(slot, f"a worker could not start: {one_line(cause)}", REST)
        self._note_once(f"{slot.reason_unused}; the others go on")
        alone = all(slot.reason_unused for slot in self._slots)
        ends = alone and (isinstance(cause, UserError) or not self._plan_actors(1)[0])
        if ends or self._starts.hopeless(self._slots, len(alive_nodes())):
            raise cause

    def _died(self, slot: Slot, error: Exception) -> list[tuple[Task, Receipt | Failure]]:
        """Handle the death of an actor: requeue its tasks and replace it; returns the tasks that ended."""
        self._slots.remove(slot)
        if self._head is not None:
            self._head.wait()
        ray.kill(slot.handle)  # if only its answer was lost, it must release its CPUs
        if isinstance(error, ActorUnschedulableError):
            raise families.NO_WORKER(
                "Ray cannot place a worker: {detail}",
                "lower the resources of a worker, or add nodes",
                where="executor",
                detail=error,
            )
        taken = bool(getattr(error, "preempted", False))  # its node was drained
        if gone := taken or (bool(slot.node) and slot.node not in alive_nodes()):
            self._caches.gone(slot.node)
        if slot.up:
            self._next_check = 0.0
        else:  # it died before it was ready: its node is unknown
            self._starts.fail()
            self._next_check = time.monotonic() + min(REST, pause(self._starts.failed))
            self._note_once(f"a worker could not start: {one_line(error)}")
            if self._starts.hopeless(self._slots, len(alive_nodes())):
                raise codes.WORKERS_CANNOT_START(where="executor", detail=one_line(error))
        flying = [
            task for _, task in slot.flying if task is not _READY and not self._policy.elsewhere(slot.number, task)
        ]
        ended = {task.fingerprint: receipt for task in flying if (receipt := self._receipt_by(slot, task)) is not None}
        outcomes: list[tuple[Task, Receipt | Failure]] = []
        outcomes += [(task, ended[task.fingerprint]) for task in flying if task.fingerprint in ended]
        death = self._policy.died(slot.number, ended, counts=slot.up and not gone, guilty=not taken)
        lost = [task.fingerprint for task in death.lost]
        with suppress(StorageError):  # the policy has already recorded the death, so the outcomes must be returned
            self._journal.write("died", pid=slot.pid, journal=slot.journal, lost=lost, message=str(error)[:500])
        for k, (task, tried) in enumerate(death.failed):
            message = f"no worker is left after {self._policy.deaths} died"
            if death.poisoned and k == 0:
                message = KILLED.format(tried)
            outcomes.append((task, Failure(task, "killed", message, tried)))
        return outcomes

    def _receipt_by(self, slot: Slot, task: Task) -> Receipt | None:
        """The receipt that this process wrote of a task; an earlier run's receipt may remain without its outputs."""
        receipt = written_receipt(self._context.folder(task), task)
        return receipt if receipt and (receipt.host, receipt.pid) == (slot.host, slot.pid) else None


#: Placeholder task of an actor's first call, `ready`.
_READY: Task = Task("", "", "ready", 0.0, None)
