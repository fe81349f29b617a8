"""Progress of an unfinished index."""

from __future__ import annotations

import re
from dataclasses import dataclass

from swsdist.io.filesystem import Folder

#: A task's list of documents, written at its end; lists of its further tracks have other names.
_LIST = re.compile(r"shards/part-[0-9a-f]{32}\.documents\.parquet")


@dataclass(frozen=True)
class Unfinished:
    """Progress of an interrupted index.

    Attributes:
        done, tasks: numbers of finished tasks, and of all.
        seconds: of audio left.
        before: fingerprint of the state that it resumes from; None: there was no state.
    """

    done: int
    tasks: int
    seconds: float
    before: str | None

    def describe(self, seconds: float) -> str:
        """Describe the progress for people, given the seconds already indexed."""
        part = seconds / max(seconds + self.seconds, 1e-9)
        return f"{self.done} of {self.tasks} tasks, {100 * part:.0f} % of the audio, are indexed"


def tasks_done(folder: Folder) -> int:
    """Number of an index's tasks that have written their shards to a store."""
    return sum(_LIST.fullmatch(name) is not None for name in folder.listing("shards"))
