"""Which nodes of a cluster are used: those with the driver's versions, on which workers start, and whose disks work.

- A worker with another version of swsdist, or of a library that determines the bytes of results, is not used
  (`version_mismatches`).
- A worker that fails to start is tried again after a minute; meanwhile its slot is kept, or the next worker would be started in
  the same place. If its process died, its node is unknown: from then on Ray is asked to spread workers over nodes.
- If consecutive tasks fail on a node because its disk is full or gone, its worker gets no tasks for a minute, and a task that
  failed there is tried on another node next, if there is one.
- A node that leaves takes its workers with it, which does not count against them; a node that joins is used at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from swsdist.core.needs import LEAST, Needs
from swsdist.io.failures import NODE_FAULTS, explain
from swsdist.pipeline.task import Task

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
_LEAST, _MOST = 3, 10


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
        return all(slot.reason_unused for slot in slots) and self.failed >= max(_LEAST, min(_MOST, nodes))


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
    """Libraries of `RESULT_LIBRARIES` whose versions differ between a node and the driver, as text."""
    return [
        f"{name} {node.get(name, '(none)')} (driver: {driver.get(name, '(none)')})"
        for name in RESULT_LIBRARIES
        if node.get(name) != driver.get(name)
    ]


def one_line(error: BaseException) -> str:
    """An error as one line; of tracebacks and of Ray's long messages the end."""
    storage_error = explain(error)
    end = str(error).rpartition("Traceback (most recent call last):")[2]
    return (
        storage_error.message
        if storage_error is not None
        else " ".join(word for word in end.split() if word.strip("^~"))[-300:]
    )
