"""Progress of a run: the interface by which the driver reports it, and the status file.

Progress is reported to a display, an event file, or a test. The status file is a small file in the run folder, which
the driver writes every few seconds. `swsdist status` reads it, and the ends of a few journals, whatever the number of
tasks. For a run that has ended or died, the receipts count; the file records how its last driver ended.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from swsdist.io.filesystem import Folder
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


NAME = "status.json"
SCHEMA = "swsdist-status/1"


@dataclass
class StageProgress:
    """Progress of a stage: numbers of tasks, of finished, failed and earlier ones; start and end in s since 1970."""

    stage: str
    tasks: int
    done: int
    failed: int = 0
    before: int = 0
    begun: float = 0.0
    ended: float | None = None


@dataclass
class RunStatus:
    """Progress of a run.

    Attributes:
        token: token of the driver's lock.
        state: `running`, or how it ended: `done` (all that was asked, even if the chain has more steps), `incomplete`,
            `cancelled`, `terminated`, `interrupted` or `stopped`.
        message: final error; empty: none.
        t: time of writing, s since 1970.
        journals: journals of the running processes, in the run folder.
    """

    token: str
    host: str
    pid: int
    state: str = "running"
    message: str = ""
    began: float = 0.0
    t: float = 0.0
    stages: list[StageProgress] = field(default_factory=list)
    journals: list[str] = field(default_factory=list)

    def to_json(self) -> str:
        """The content of the file."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1)


def read(run: Folder) -> RunStatus | None:
    """The last driver's status; None if there is none, or one of another version."""
    try:
        values: dict[str, Any] = json.loads(run.read_bytes(NAME))
        if values.pop("schema") != SCHEMA:
            return None
        stages = [StageProgress(**item) for item in values.pop("stages")]
        return RunStatus(**values, stages=stages)
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return None
