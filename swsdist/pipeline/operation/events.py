"""Events of a run as JSON lines, in the folder `events/` of the run and in the file of `--events`.

Each line has `event`, `t` (s since 1970) and `run` (the run folder); `EVENTS` lists the other fields. Each driver appends to
one file; on S3, which cannot append, it writes a new file every few seconds. File names sort by time, so a follower lists the
folder and reads what is new.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from swsdist.core.text import redacted
from swsdist.io.filesystem import Folder

FOLDER = "events"
SCHEMA = "swsdist-events/1"

#: Fields of each event besides `event`, `t` and `run`.
EVENTS: Mapping[str, tuple[str, ...]] = {
    "run-begun": ("schema", "version", "host", "pid", "chains"),
    "stage-begun": ("stage", "tasks", "done", "work", "unit", "hours"),
    "task-ended": ("stage", "task", "label", "work", "cpu", "wall", "host", "pid"),
    "task-failed": ("stage", "task", "label", "reason", "message", "attempts"),
    "rejected": ("stage", "kind", "id", "part", "path", "reason", "message"),
    "task-retried": ("stage", "task", "label", "attempt", "message"),
    "worker-up": ("host", "pid", "journal"),
    "worker-died": ("pid", "lost", "message"),
    "warning": ("message",),
    "stage-ended": ("stage", "tasks", "failed", "wall"),
    "run-ended": ("state", "message", "wall", "counts"),
}


class EventLog:
    """The event log of one driver; nothing is written before `open`.

    Args:
        run: the run folder.
        token: token of the driver's lock, part of the file names.
    """

    def __init__(self, run: Folder, token: str) -> None:
        self._run = run
        self._stem = f"{FOLDER}/{int(time.time() * 1000):013d}-{token[:8]}"
        self._lines: list[str] = []
        self._number = 0
        self._opened = False
        self._lock = threading.Lock()

    def add(self, event: str, **values: Any) -> dict[str, Any]:
        """Add an event, and return its line; secrets in the message are redacted."""
        if "message" in values:
            values["message"] = redacted(values["message"])
        line = {"event": event, "t": round(time.time(), 3), "run": self._run.root, **values}
        if set(values) != set(EVENTS[event]):
            raise ValueError(f"{event} has the fields {EVENTS[event]}")
        with self._lock:
            self._lines.append(json.dumps(line, ensure_ascii=False))
        return line

    def open(self) -> None:
        """Start writing, beginning with the lines so far."""
        self._opened = True

    def flush(self) -> None:
        """Write the lines since the last call.

        Raises:
            StorageError: writing failed; the lines are kept for the next call.
        """
        with self._lock:
            if not self._opened or not self._lines:
                return
            data = ("\n".join(self._lines) + "\n").encode()
            local = self._run.local(f"{self._stem}.jsonl")
            if local is None:
                self._run.write_bytes(f"{self._stem}-{self._number:06d}.jsonl", data)
            elif local.exists():
                with local.open("ab") as file:
                    file.write(data)
            else:
                self._run.write_bytes(f"{self._stem}.jsonl", data)
            self._number += 1
            self._lines = []


class Follower:
    """Reads a run's events as they appear.

    Args:
        run: the run folder.
        old: whether to start with the existing events, or to skip them.
    """

    def __init__(self, run: Folder, old: bool = True) -> None:
        self._run = run
        self._read: dict[str, int] = {}
        if not old:
            self._read = {name: info.size for name, info in run.listing(FOLDER).items()}

    def new(self) -> Iterator[dict[str, Any]]:
        """Events since the last call, in order; an incomplete line is left for the next call."""
        for name, info in self._run.listing(FOLDER).items():
            begin = self._read.get(name, 0)
            if info.size <= begin:
                continue
            with self._run.open(name) as file:
                file.seek(begin)
                data = file.read()
            complete_lines = data[: data.rfind(b"\n") + 1]
            self._read[name] = begin + len(complete_lines)
            for line in complete_lines.splitlines():
                try:
                    yield json.loads(line)
                except ValueError:
                    continue  # truncated by a full disk
