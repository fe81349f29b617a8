"""Open tasks wait in a file: a million take about 20 MB of memory, whatever their payload.

Each task is a pickled record in an anonymous temporary file of this process, which nobody else can write to. The common part of
a stage's tasks (`Task.common`) is stored once.
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

#: Bytes of records in memory before a file is used.
_IN_MEMORY = 1 << 20


class HasWork(Protocol):
    """The attribute of a task that a queue uses."""

    @property
    def work(self) -> float:
        """Size of the task."""
        ...


P = TypeVar("P", bound=HasWork)


class Spool(Sequence[Task]):
    """Tasks in the order of insertion."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (open as long as the object)
        self._offsets = array("q")
        self._works = array("d")
        self._end = 0
        self._common: list[Any] = []

    def put(self, task: Task) -> None:
        """Add a task."""
        if not self._common or self._common[-1] is not task.common:
            self._common.append(task.common)
        data = pickle.dumps({**vars(task), "common": len(self._common) - 1}, pickle.HIGHEST_PROTOCOL)
        self._file.seek(self._end)
        self._file.write(data)
        self._offsets.append(self._end)
        self._works.append(task.work)
        self._end += len(data)

    def take(self, places: NDArray[np.int64]) -> Spool:
        """The tasks at some indices, in that order."""
        chosen = copy(self)
        chosen._offsets = array("q", [self._offsets[place] for place in places])
        chosen._works = array("d", [self._works[place] for place in places])
        return chosen

    @property
    def works(self) -> Sequence[float]:
        """Work of each task."""
        return self._works

    @property
    def work(self) -> float:
        """Work of all tasks."""
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
        """Indices by descending work; stable."""
        return np.argsort(-np.frombuffer(self._works, np.float64), kind="stable") if self._works else []  # type: ignore[return-value]


def together(several: Sequence[Spool]) -> Spool:
    """Concatenate."""
    if len(several) == 1:
        return several[0]
    spool = Spool()
    for item in several:
        for task in item:
            spool.put(task)
    return spool


class Queue(Generic[P]):
    """A queue of tasks, largest first; returned tasks go to the front or the back.

    Args:
        tasks: all tasks.
    """

    def __init__(self, tasks: Sequence[P] = ()) -> None:
        self._tasks = tasks
        order = tasks.by_work() if isinstance(tasks, Spool) else _by_work(tasks)
        self._order = iter(order)
        self._left = len(tasks)  # of the order
        self._front: deque[P] = deque()
        self._back: deque[P] = deque()

    def popleft(self) -> P:
        """Remove and return the next task.

        Raises:
            IndexError: the queue is empty.
        """
        if self._front:
            return self._front.popleft()
        if self._left:
            self._left -= 1
            return self._tasks[int(next(self._order))]
        return self._back.popleft()

    def append(self, task: P) -> None:
        """Add to the back."""
        self._back.append(task)

    def appendleft(self, task: P) -> None:
        """Add to the front."""
        self._front.appendleft(task)

    def extend(self, tasks: Iterable[P]) -> None:
        """Add several to the back."""
        self._back.extend(tasks)

    def extendleft(self, tasks: Iterable[P]) -> None:
        """Add several to the front, each before the previous one."""
        self._front.extendleft(tasks)

    def clear(self) -> None:
        """Remove all tasks."""
        self._front.clear()
        self._back.clear()
        self._left = 0

    def __len__(self) -> int:
        return len(self._front) + self._left + len(self._back)

    def __iter__(self) -> Iterator[P]:
        """Remove and yield all tasks."""
        while len(self):
            yield self.popleft()


def _by_work(tasks: Sequence[HasWork]) -> list[int]:
    return sorted(range(len(tasks)), key=lambda place: -tasks[place].work)
