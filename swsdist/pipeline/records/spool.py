"""Tasks that are left to do wait in a file, not in memory: a million of them are some 20 MB here, whatever they hold.

A task is a pickled record of this process's own temporary file, which has no name and which nobody else can write to. What the
tasks of a stage share (`Task.common`) is kept once.
"""

from __future__ import annotations

import pickle
import tempfile
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any, Generic, Protocol, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from swsdist.pipeline.task import Task

#: Bytes of records that stay in memory before a file is made.
_IN_MEMORY = 1 << 20


class HasWork(Protocol):
    """What a queue looks at."""

    @property
    def work(self) -> float:
        """How much it is."""
        ...


P = TypeVar("P", bound=HasWork)


class Spool(Sequence[Task]):
    """Tasks in the order in which they were put in."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (it lives as long as this does)
        self._offsets = array("q")
        self._works = array("d")
        self._end = 0
        self._common: list[Any] = []

    def put(self, task: Task) -> None:
        """Add one."""
        if not self._common or self._common[-1] is not task.common:
            self._common.append(task.common)
        data = pickle.dumps({**vars(task), "common": len(self._common) - 1}, pickle.HIGHEST_PROTOCOL)
        self._file.seek(self._end)
        self._file.write(data)
        self._offsets.append(self._end)
        self._works.append(task.work)
        self._end += len(data)

    def only(self, places: NDArray[np.int64]) -> Spool:
        """The tasks at some places, in the order of these."""
        chosen = copy(self)
        chosen._offsets = array("q", [self._offsets[place] for place in places])
        chosen._works = array("d", [self._works[place] for place in places])
        return chosen

    @property
    def works(self) -> Sequence[float]:
        """Of each."""
        return self._works

    @property
    def work(self) -> float:
        """Of all together."""
        return float(np.sum(np.frombuffer(self._works, np.float64))) if self._works else 0.0

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[Task]:
        return (self[place] for place in range(len(self)))

    @overload
    def __getitem__(self, place: int) -> Task: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Task]: ...
    def __getitem__(self, place: int | slice) -> Task | Sequence[Task]:
        if isinstance(place, slice):
            return [self[item] for item in range(len(self))[place]]
        self._file.seek(self._offsets[range(len(self))[place]])
        values = pickle.load(self._file)
        return Task(**{**values, "common": self._common[values["common"]]})

    def by_work(self) -> Sequence[int]:
        """Places of the largest first; of equal ones the first first."""
        return np.argsort(-np.frombuffer(self._works, np.float64), kind="stable") if self._works else []  # type: ignore[return-value]


def together(several: Sequence[Spool]) -> Spool:
    """All tasks of several."""
    if len(several) == 1:
        return several[0]
    found = Spool()
    for item in several:
        for task in item:
            found.put(task)
    return found


class Queue(Generic[P]):
    """Tasks, largest first: the last to end should be small. Those that come back go in front or behind.

    Args:
        tasks: all of them.
    """

    def __init__(self, tasks: Sequence[P] = ()) -> None:
        self._tasks = tasks
        order = tasks.by_work() if isinstance(tasks, Spool) else _by_work(tasks)
        self._order = iter(order)
        self._left = len(tasks)  # of the order
        self._front: deque[P] = deque()
        self._back: deque[P] = deque()

    def popleft(self) -> P:
        """The next.

        Raises:
            IndexError: there is none.
        """
        if self._front:
            return self._front.popleft()
        if self._left:
            self._left -= 1
            return self._tasks[int(next(self._order))]
        return self._back.popleft()

    def append(self, task: P) -> None:
        """Behind all others."""
        self._back.append(task)

    def appendleft(self, task: P) -> None:
        """In front of all others."""
        self._front.appendleft(task)

    def extend(self, tasks: Iterable[P]) -> None:
        """Behind all others."""
        self._back.extend(tasks)

    def extendleft(self, tasks: Iterable[P]) -> None:
        """In front of all others, the last first."""
        self._front.extendleft(tasks)

    def clear(self) -> None:
        """Nothing is left."""
        self._front.clear()
        self._back.clear()
        self._left = 0

    def __len__(self) -> int:
        return len(self._front) + self._left + len(self._back)

    def __iter__(self) -> Iterator[P]:
        """Take out all that is left."""
        while len(self):
            yield self.popleft()


def _by_work(tasks: Sequence[HasWork]) -> list[int]:
    return sorted(range(len(tasks)), key=lambda place: -tasks[place].work)
