"""Progress of an unfinished index."""

from __future__ import annotations

import re
from dataclasses import dataclass

from swsdist.io.filesystem import Folder

#: The list of a task's documents, which it writes at its end; further tracks of the task have lists of other names.
_LIST = re.compile(r"shards/part-[0-9a-f]{32}\.documents\.parquet")


@dataclass(frozen=True)
class Unfinished:
    """How far an index had come when it was interrupted.

    Attributes:
        done, tasks: how many of its tasks were done, of how many.
        seconds: of audio that was left.
        before: fingerprint of the state that it goes on from; None: there was none.
    """

    done: int
    tasks: int
    seconds: float
    before: str | None

    def describe(self, seconds: float) -> str:
        """For people, where so many seconds are indexed."""
        part = seconds / max(seconds + self.seconds, 1e-9)
        return f"{self.done} of {self.tasks} tasks, {100 * part:.0f} % of the audio, are indexed"


def tasks_done(folder: Folder) -> int:
    """How many tasks of an index have written their shards to a store."""
    return sum(_LIST.fullmatch(name) is not None for name in folder.listing("shards"))
