"""Which nodes of a cluster work: those with the same versions, on which workers can start, and whose disks are in order.

- A worker with another version of swsdist, or of a library on which the bytes of results rest, is not used (`differing`).
- A worker that cannot start is tried again a minute later; meanwhile it holds its place, or the next would land there again.
  Where its process died, nobody knows where that was: from then on Ray is asked to start none on the same node twice in a row.
- A worker on whose node tasks fail one after the other since its disk is full, or gone, gets none for a minute, and a task that
  failed there goes to another node next, if there is one.
- A node that leaves takes its workers with it, and is no fault of theirs; one that comes is used, while a stage goes on.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from swsdist.core.needs import LEAST, Needs
from swsdist.io.failures import explain
from swsdist.pipeline.task import Task

#: Distributions, and libsndfile, whose versions must be the driver's: what they compute is in the bytes of results.
MATTER = ("swsdist", "numpy", "scipy", "numba", "librosa", "soundfile", "libsndfile", "soxr")

#: Seconds between two looks at what nodes there are.
LOOK_EVERY = 2.0
#: Seconds after which a worker that could not start is tried again, and one that rests gets tasks again.
REST = 60.0
#: Failures in a row, for what is wrong with a node, after which its worker rests.
_IN_A_ROW = 2

#: Causes of failure that may be of one node alone: its disk, its mounts.
_OF_A_NODE = ("full", "quota", "read-only", "input-output", "gone", "stale", "too-many-files")


@dataclass
class Slot:
    """An actor and the tasks in flight to it, oldest first: it works on the oldest.

    Attributes:
        handle: Ray's.
        started: when it was asked for, on the monotonic clock.
        number: of the worker, for the policy.
        needs: what it has.
        up: it can work.
        host, pid, journal: where it is, as it told.
        node: Ray's name of its node.
        held: why it is not used; empty where it is. It keeps its place, so that none is started in it.
        again: when it may be tried again.
        misses: failures in a row for what may be wrong with its node.
        rests: until when it gets no tasks.
        flying: calls and tasks.
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
    held: str = ""
    again: float = float("inf")
    misses: int = 0
    rests: float = 0.0
    flying: list[tuple[Any, Task]] = field(default_factory=list)

    def hold(self, why: str, seconds: float) -> None:
        """Do not use it, for so long."""
        self.up, self.held, self.again = False, why, time.monotonic() + seconds
        self.flying.clear()

    def failed(self, error: BaseException) -> bool:
        """A task raised this there; whether the worker is to rest now."""
        told = explain(error)
        self.misses = self.misses + 1 if told is not None and told.cause in _OF_A_NODE else 0
        if self.misses < _IN_A_ROW:
            return False
        self.misses, self.rests = 0, time.monotonic() + REST
        return True


#: Starts that may fail one after the other while no worker is up: as many as there are nodes, between these two.
_LEAST, _MOST = 3, 10


@dataclass
class FailedStarts:
    """Workers that could not start.

    Attributes:
        failed: one after the other.
        spread: whether there was one ever.
    """

    failed: int = 0
    spread: bool = False

    def fail(self) -> None:
        """One could not start."""
        self.failed, self.spread = self.failed + 1, True

    def hopeless(self, slots: Iterable[Slot], nodes: int) -> bool:
        """Whether no worker is up, or on its way, and so many could not start that none will."""
        return all(slot.held for slot in slots) and self.failed >= max(_LEAST, min(_MOST, nodes))


class AvoidedHosts:
    """Where tasks failed for what may be wrong with the node: they go elsewhere next, if there is an elsewhere."""

    def __init__(self) -> None:
        self._hosts: dict[str, set[str]] = {}

    def add(self, task: Task, slot: Slot, error: BaseException) -> None:
        """A task raised this on a slot's host."""
        told = explain(error)
        if told is not None and told.cause in _OF_A_NODE:
            self._hosts.setdefault(task.fingerprint, set()).add(slot.host)

    def elsewhere(self, task: Task, slots: Iterable[Slot]) -> bool:
        """Whether a task that failed for what may be wrong with nodes can be tried on another one."""
        failed = self._hosts.get(task.fingerprint)
        return failed is not None and any(slot.up and slot.host not in failed for slot in slots)

    def may(self, task: Task, slot: Slot, others: Iterable[Slot]) -> bool:
        """Whether a slot may have a task: it did not fail there, or it failed everywhere."""
        failed = self._hosts.get(task.fingerprint)
        return failed is None or slot.host not in failed or all(one.host in failed for one in others)


def usable_slots(slots: Iterable[Slot]) -> list[Slot]:
    """Slots that are up and do not rest; those that rest, where all do."""
    up = [slot for slot in slots if slot.up]
    awake = [slot for slot in up if slot.rests <= time.monotonic()]
    return awake or up


def version_mismatches(there: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """What has another version there than here, and matters; words for people."""
    return [
        f"{name} {there.get(name, '(none)')} (here {here.get(name, '(none)')})"
        for name in MATTER
        if there.get(name) != here.get(name)
    ]


def one_line(error: BaseException) -> str:
    """What an error says, on one line: the end of it, where Ray tells what happened on a node; of a traceback the end, too."""
    told = explain(error)
    end = str(error).rpartition("Traceback (most recent call last):")[2]
    return told.message if told is not None else " ".join(word for word in end.split() if word.strip("^~"))[-300:]
