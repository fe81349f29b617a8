"""CPU time of the processes that this one started, and of those that they started.

The kernel adds what a process took to the account of its parent when the parent waits for its end, not before, and never if
nobody waits: Ray's raylet, for one, does not wait for its workers. So all are looked at now and then, as a tree. Of one that
lives its own last word counts. What its children took that are gone is what it says of those that it waited for, or the
sum of their own last words, if that is more. What this process has waited for is in its own account.
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
    """A process when it was last looked at: its own CPU s, and those of children that it waited for."""

    pid: int
    parent: int
    own: float
    waited: float
    there: bool = True


class ChildProcesses:
    """What this process started, directly or not."""

    def __init__(self) -> None:
        self._me = psutil.Process()
        self._seen: dict[tuple[int, float], _Seen] = {}  # by number and birth: numbers come again
        self._lock = threading.Lock()

    def look(self) -> list[int]:
        """Look at all; the numbers of those that are there."""
        with self._lock:
            return self._look()

    def _look(self) -> list[int]:
        for seen in self._seen.values():
            seen.there = False
        found = []
        for child in self._me.children(recursive=True):
            with suppress(psutil.Error), child.oneshot():
                times = child.cpu_times()
                own, waited = times.user + times.system, times.children_user + times.children_system
                self._seen[child.pid, child.create_time()] = _Seen(child.pid, child.ppid(), own, waited)
                found.append(child.pid)
        return found

    def seconds(self, apart: Collection[int] = ()) -> float:
        """CPU s of all by the last look, but for what is in the account of this process (`journal.cpu_seconds`).

        Args:
            apart: numbers of those that are counted elsewhere.
        """
        with self._lock:
            return self._seconds(apart)

    def _seconds(self, apart: Collection[int]) -> float:
        children: defaultdict[int, list[_Seen]] = defaultdict(list)
        for seen in self._seen.values():
            children[seen.parent].append(seen)

        def beyond(seen: _Seen) -> float:
            """What is not in its own account."""
            kin = children[seen.pid]
            gone = sum(whole(item) for item in kin if not (item.there and seen.there))
            return max(0.0, gone - seen.waited) + sum(whole(item) for item in kin if item.there and seen.there)

        def whole(seen: _Seen) -> float:
            return seen.own + seen.waited + beyond(seen)

        mine = sum(whole(child) if child.there else beyond(child) for child in children[self._me.pid])
        return mine - sum(seen.own + seen.waited for seen in self._seen.values() if seen.pid in apart)
