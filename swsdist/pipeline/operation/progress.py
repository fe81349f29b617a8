"""Who a driver reports to: a display, a file of events, a test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from swsdist.pipeline.chain import Step
from swsdist.pipeline.task import Failure, Receipt, Task


class Progress:
    """The driver reports its progress to this class; the base class keeps silent."""

    def before(self, run: str) -> Progress:
        """Who reports on a run that comes before this one, of that name; called when it begins."""
        return self

    def stage(self, step: Step, todo: int, skipped: int, work: float, hours: float) -> None:
        """A step begins: tasks to do, tasks done earlier, work to do in the stage's unit, hours of audio to go through."""

    def part(self, step: Step, task: Task, part: float) -> None:
        """A task that runs has done this part of its work, 0 to 1; told a few times a second at most."""

    def task(self, step: Step, outcome: Receipt | Failure) -> None:
        """A task has come to its end."""

    def end(self, step: Step, wall: float) -> None:
        """A step has; it took so many seconds."""

    def note(self, text: str) -> None:
        """Something is worth a line: a lock that is watched, a node that is not used."""

    def close(self) -> None:
        """The last step has, or the run was broken off."""

    def event(self, line: Mapping[str, Any]) -> None:
        """Something has happened in the run (`swsdist.pipeline.operation.events`)."""


class ForwardingProgress(Progress):
    """A progress that passes on to another one all that it is told."""

    def __init__(self, inner: Progress) -> None:
        self._inner = inner

    def before(self, run: str) -> Progress:
        """Whoever the other one names."""
        return self._inner.before(run)

    def stage(self, step: Step, todo: int, skipped: int, work: float, hours: float) -> None:
        """A step begins."""
        self._inner.stage(step, todo, skipped, work, hours)

    def part(self, step: Step, task: Task, part: float) -> None:
        """A part of a task is done."""
        self._inner.part(step, task, part)

    def task(self, step: Step, outcome: Receipt | Failure) -> None:
        """A task has come to its end."""
        self._inner.task(step, outcome)

    def end(self, step: Step, wall: float) -> None:
        """A step has."""
        self._inner.end(step, wall)

    def note(self, text: str) -> None:
        """Something is worth a line."""
        self._inner.note(text)

    def close(self) -> None:
        """The last step has ended."""
        self._inner.close()

    def event(self, line: Mapping[str, Any]) -> None:
        """Something has happened."""
        self._inner.event(line)
