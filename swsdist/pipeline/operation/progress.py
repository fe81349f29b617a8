"""The interface by which the driver reports progress: to a display, an event file, a test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from swsdist.pipeline.chain import Step
from swsdist.pipeline.task import Failure, Receipt, Task


class Progress:
    """Receives the driver's progress; the base class ignores it."""

    def for_prerequisite(self, run: str) -> Progress:
        """The progress of a prerequisite run; called when it begins."""
        return self

    def step_begins(self, step: Step, todo: int, skipped: int, work: float, hours: float) -> None:
        """A step begins: open tasks, tasks done earlier, open work in the stage's unit, hours of audio."""

    def part(self, step: Step, task: Task, part: float) -> None:
        """A running task has done this part of its work, 0 to 1; called a few times a second at most."""

    def task(self, step: Step, outcome: Receipt | Failure) -> None:
        """A task has ended."""

    def step_ends(self, step: Step, wall: float) -> None:
        """A step has ended, after `wall` seconds."""

    def note(self, text: str) -> None:
        """A message for the user: a lock that is watched, a node that is not used."""

    def close(self) -> None:
        """The last step has ended, or the run was interrupted."""

    def event(self, line: Mapping[str, Any]) -> None:
        """An event of the run (`swsdist.pipeline.operation.monitor`)."""


class ForwardingProgress(Progress):
    """Forwards every call to another progress."""

    def __init__(self, inner: Progress) -> None:
        self._inner = inner

    def for_prerequisite(self, run: str) -> Progress:
        """The other progress's answer."""
        return self._inner.for_prerequisite(run)

    def step_begins(self, step: Step, todo: int, skipped: int, work: float, hours: float) -> None:
        """A step begins."""
        self._inner.step_begins(step, todo, skipped, work, hours)

    def part(self, step: Step, task: Task, part: float) -> None:
        """A part of a task is done."""
        self._inner.part(step, task, part)

    def task(self, step: Step, outcome: Receipt | Failure) -> None:
        """A task has ended."""
        self._inner.task(step, outcome)

    def step_ends(self, step: Step, wall: float) -> None:
        """A step has ended."""
        self._inner.step_ends(step, wall)

    def note(self, text: str) -> None:
        """A message for the user."""
        self._inner.note(text)

    def close(self) -> None:
        """The last step has ended."""
        self._inner.close()

    def event(self, line: Mapping[str, Any]) -> None:
        """An event."""
        self._inner.event(line)
