"""What is kept of a task that failed: a file in `failed/` of the run folder, with the traceback, until the task is done.

A failure in an extension names the line of the extension, not that of a library below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePath

from swsdist.core.errors import StorageError
from swsdist.core.redaction import redacted
from swsdist.io.filesystem import Folder
from swsdist.pipeline.task import Failure, Task

FOLDER = "failed"

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)$', re.MULTILINE)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_OURS = str(PurePath(__file__).parents[2])


def failure_file(task: Task) -> str:
    """Where the failure of a task is kept, in the run folder."""
    return f"{FOLDER}/{task.stage}-{task.fingerprint}.txt"


def origin(traceback: str) -> str | None:
    """File, line and function where an exception came from.

    Of what swsdist called: the innermost line of that package, for libraries below it say little. Else swsdist's own.

    Args:
        traceback: as Python prints it; of several exceptions the last counts.
    """
    frames = list(_FRAME.finditer(traceback.rpartition("Traceback (most recent call last)")[2]))
    if not frames:
        return None
    ours = [k for k, frame in enumerate(frames) if _package(frame["file"]) == _OURS]
    called = frames[ours[-1] + 1 :] if ours else frames
    if called:
        frame = [one for one in called if _package(one["file"]) == _package(called[0]["file"])][-1]
    else:
        frame = frames[-1]
    return f"{frame['file']}, line {frame['line']}, in {frame['function']}"


def _package(file: str) -> str:
    """The folder of the package that a file is of, or its own folder."""
    parts = PurePath(file).parts
    for name in ("site-packages", "dist-packages"):
        if name in parts:
            return "/".join(parts[: parts.index(name) + 2])
    return _OURS if file.startswith(f"{_OURS}/") else str(PurePath(file).parent)


def save_failure(run: Folder, failure: Failure) -> Failure:
    """Write what is known of a failure, and name the file in it; where nothing can be written it stays as it is."""
    text = redacted(_COLOURS.sub("", failure.traceback)) or "There is no traceback: the process is gone.\n"
    said = f"{failure.task.stage}, {failure.task.label}: {failure.message}\nattempts: {failure.attempts}\n\n{text}"
    name = failure_file(failure.task)
    with suppress(StorageError):
        run.write_bytes(name, said.encode())
        return replace(failure, file=name)
    return failure


def remove_failures(run: Folder, kept: Iterable[str]) -> None:
    """Remove files of tasks that are done by now."""
    for name in kept:
        run.remove(name)
