"""Files of failed tasks: `failed/` in the run folder has a file with the traceback of each until the task is done.

A failure in an extension names the line of the extension, not that of a library that it calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePath

from swsdist.core.errors import StorageError
from swsdist.core.text import redacted
from swsdist.io.filesystem import Folder
from swsdist.pipeline.task import Failure, Task

FOLDER = "failed"

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)$', re.MULTILINE)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_OURS = str(PurePath(__file__).parents[2])


def failure_file(task: Task) -> str:
    """File name of a task's failure in the run folder."""
    return f"{FOLDER}/{task.stage}-{task.fingerprint}.txt"


def origin(traceback: str) -> str | None:
    """File, line and function that raised an exception.

    If swsdist called another package, the innermost line of that package; libraries below it say little. Otherwise the
    innermost line of swsdist.

    Args:
        traceback: Python's traceback; of chained exceptions the last counts.
    """
    frames = list(_FRAME.finditer(traceback.rpartition("Traceback (most recent call last)")[2]))
    if not frames:
        return None
    own_frames = [k for k, frame in enumerate(frames) if _package(frame["file"]) == _OURS]
    called = frames[own_frames[-1] + 1 :] if own_frames else frames
    if called:
        frame = [item for item in called if _package(item["file"]) == _package(called[0]["file"])][-1]
    else:
        frame = frames[-1]
    return f"{frame['file']}, line {frame['line']}, in {frame['function']}"


def _package(file: str) -> str:
    """The folder of a file's package, or its parent folder."""
    parts = PurePath(file).parts
    for name in ("site-packages", "dist-packages"):
        if name in parts:
            return "/".join(parts[: parts.index(name) + 2])
    return _OURS if file.startswith(f"{_OURS}/") else str(PurePath(file).parent)


def save_failure(run: Folder, failure: Failure) -> Failure:
    """Write a failure to a file, and return it with the file's name; unchanged if nothing can be written."""
    text = redacted(_COLOURS.sub("", failure.traceback)) or "No traceback: the process died.\n"
    text_of_file = (
        f"{failure.task.stage}, {failure.task.label}: {failure.message}\nattempts: {failure.attempts}\n\n{text}"
    )
    name = failure_file(failure.task)
    with suppress(StorageError):
        run.write_bytes(name, text_of_file.encode())
        return replace(failure, file=name)
    return failure


def remove_failures(run: Folder, names: Iterable[str]) -> None:
    """Remove the files of tasks that are done."""
    for name in names:
        run.remove(name)
