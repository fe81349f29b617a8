"""CPU time of the processes that this one started, and of their descendants.

The kernel adds a process's CPU time to its parent's account when the parent waits for its end: not before, and never if
nobody waits; Ray's raylet, for one, does not wait for its workers. So the whole tree is sampled regularly. For a live
process its last sample counts. For its dead children, the larger value counts: its own account of waited children, or the
sum of their last samples. Children that this process has waited for are in its own account.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

import psutil


@dataclass
class _Seen:
    """A sample of a process: its CPU s, and those of the children it has waited for."""

    pid: int
    parent: int
    cpu: float
    waited: float
    alive: bool = True


class ChildProcesses:
    """The descendants of this process."""

    def __init__(self) -> None:
        self._me = psutil.Process()
        self._seen: dict[tuple[int, float], _Seen] = {}  # by pid and start time: pids are reused
        self._lock = threading.Lock()

    def look(self) -> list[int]:
        """Sample all; returns the pids of live ones."""
        with self._lock:
            return self._look()

    def _look(self) -> list[int]:
        for seen in self._seen.values():
            seen.alive = False
        pids = []
        for child in self._me.children(recursive=True):
            with suppress(psutil.Error), child.oneshot():
                times = child.cpu_times()
                cpu, waited = times.user + times.system, times.children_user + times.children_system
                self._seen[child.pid, child.create_time()] = _Seen(child.pid, child.ppid(), cpu, waited)
                pids.append(child.pid)
        return pids

    def seconds(self, excluded: Collection[int] = ()) -> float:
        """CPU s of all by the last sample, without those in the account of this process (`journal.cpu_seconds`).

        Args:
            excluded: pids that are counted elsewhere.
        """
        with self._lock:
            return self._seconds(excluded)

    def _seconds(self, excluded: Collection[int]) -> float:
        children: defaultdict[int, list[_Seen]] = defaultdict(list)
        for seen in self._seen.values():
            children[seen.parent].append(seen)

        def beyond(seen: _Seen) -> float:
            """CPU s that are not in its cpu account."""
            kin = children[seen.pid]
            ended = sum(total_of(item) for item in kin if not (item.alive and seen.alive))
            return max(0.0, ended - seen.waited) + sum(total_of(item) for item in kin if item.alive and seen.alive)

        def total_of(seen: _Seen) -> float:
            return seen.cpu + seen.waited + beyond(seen)

        total = sum(total_of(child) if child.alive else beyond(child) for child in children[self._me.pid])
        return total - sum(seen.cpu + seen.waited for seen in self._seen.values() if seen.pid in excluded)
