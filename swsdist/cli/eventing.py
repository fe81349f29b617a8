"""`--events`: write the events of a run as JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import IO, Any

from swsdist.cli.outputs import pipe
from swsdist.core.codes import cli as codes
from swsdist.pipeline.operation.progress import ForwardingProgress, Progress


class _Written(ForwardingProgress):
    """A display that also writes each event to a stream."""

    def __init__(self, inner: Progress, stream: IO[str]) -> None:
        super().__init__(inner)
        self._stream = stream

    def for_prerequisite(self, run: str) -> Progress:
        """Events of a preceding run go to the same stream."""
        return _Written(self._inner.for_prerequisite(run), self._stream)

    def event(self, line: Mapping[str, Any]) -> None:
        """Write and flush an event, so that readers can react."""
        self._stream.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._stream.flush()


@contextmanager
def events_to(place: str, inner: Progress) -> Iterator[Progress]:
    """A display that also writes events to a file, or to standard output; other output then goes to standard error.

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
        raise codes.EVENTS_NOT_WRITABLE(where=f"--events {place}", reason=error.strerror) from None
    with file:
        yield _Written(inner, pipe(file))
