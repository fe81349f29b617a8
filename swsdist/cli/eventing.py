"""`--events`: what happens in a run, as JSON lines, beside the display."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import IO, Any

from swsdist.cli.outputs import pipe
from swsdist.core.errors import UserError
from swsdist.pipeline.chain import Step
from swsdist.pipeline.operation.progress import Progress
from swsdist.pipeline.task import Failure, Receipt, Task


class _Written(Progress):
    """The same display; each event is also written to a stream."""

    def __init__(self, inner: Progress, stream: IO[str]) -> None:
        self._inner = inner
        self._stream = stream

    def before(self, run: str) -> Progress:
        """Events of a run that comes first go to the same stream."""
        return _Written(self._inner.before(run), self._stream)

    def stage(self, step: Step, todo: int, skipped: int, work: float, hours: float) -> None:
        """A stage begins."""
        self._inner.stage(step, todo, skipped, work, hours)

    def part(self, step: Step, task: Task, part: float) -> None:
        """A part of a task is done."""
        self._inner.part(step, task, part)

    def task(self, step: Step, outcome: Receipt | Failure) -> None:
        """A task has ended."""
        self._inner.task(step, outcome)

    def end(self, step: Step, wall: float) -> None:
        """A stage has ended."""
        self._inner.end(step, wall)

    def close(self) -> None:
        """The last stage has."""
        self._inner.close()

    def event(self, line: Mapping[str, Any]) -> None:
        """Write it at once: who reads it may act on it."""
        self._stream.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._stream.flush()


@contextmanager
def events_to(place: str, inner: Progress) -> Iterator[Progress]:
    """A progress that also writes events to a file, or to standard output, where all else then goes to standard error.

    Raises:
        UserError: the file cannot be written.
    """
    if place == "-":
        stream = sys.stdout
        with redirect_stdout(sys.stderr):
            yield _Written(inner, stream)
        return
    try:
        file = open(place, "a", encoding="utf-8")  # noqa: SIM115, PTH123 (closed below)
    except OSError as error:
        raise UserError(
            f"it cannot be written: {error.strerror}", where=f"--events {place}", remedy="name another file"
        ) from None
    with file:
        yield _Written(inner, pipe(file))
