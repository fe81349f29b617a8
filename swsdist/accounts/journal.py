"""Journals record CPU time and memory of a process, and survive it.

CPU time of a task: user and system time of all threads of the process and of its finished children, by differences.

Peak memory of a task: the kernel's high-water mark is reset (`/proc/self/clear_refs`, 5), and VmHWM read afterwards;
`ru_maxrss` would start at the parent's peak and never fall. Memory of a node: every process of the run samples its PSS to
its journal once a second (shared pages count in shares, so the sum over processes counts them once).

A journal is append-only, one file for each process, flushed line by line: a killed attempt has a beginning, samples, and no
end, and its cost is known to within a second. S3 cannot append: there the journal is a sequence of objects; the last one is
rewritten every ten seconds until it has 32 KiB, then a new one begins. So each line is written about twelve times, and the
cost of a killed attempt is known to within ten seconds.
"""

from __future__ import annotations

import json
import math
import os
import resource
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from swsdist.accounts.hardware import gpu_bytes
from swsdist.core.codes.storage import OBJECT_CHANGED
from swsdist.core.errors import StorageError, TransientError
from swsdist.core.text import redacted
from swsdist.io.failures import storage_errors
from swsdist.io.filesystem import Folder

#: Seconds between two writes of a journal on S3; events that other processes wait for are written at once.
_PUT_EVERY = 10.0
_AT_ONCE = frozenset({"open", "node", "stage", "failed", "error", "died", "executor", "close"})
#: Bytes after which a new object begins.
_SEGMENT = 1 << 15
#: Seconds between two measurements of the daemons, which take 10 ms, and until new processes have settled.
_WEIGH_EVERY, _SETTLED_AFTER = 5.0, 10.0
#: Seconds for which the ends of phases share a measurement: the kernel takes 5 to 20 ms for one, longer than a small task.
_SHARED_FOR = 0.1
#: Attempts to read a journal that changes meanwhile.
_READS = 5
#: Bytes at the end of a journal that hold its last sample.
_TAIL = 4096


def cpu_seconds() -> tuple[float, float]:
    """User and system CPU seconds of this process and its finished children, all threads."""
    part, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return part.ru_utime + children.ru_utime, part.ru_stime + children.ru_stime


def reset_peak() -> None:
    """Reset the peak of resident memory, if the kernel allows it."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """Highest resident memory since `reset_peak`."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def pss_bytes(pid: int | str = "self") -> int:
    """Proportional set size of a process; its resident size if the kernel has no PSS; 0 if it is gone."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError):
        if Path(f"/proc/{pid}/statm").exists():
            return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except PermissionError:
        pass
    return 0


#: CPU seconds at the last line of any journal of this process, by pid, since a fork is another process.
_last_cpu: dict[int, float] = {}


class Journal:
    """The append-only record of one process, at `accounts/<role>-<host>-<pid>-<n>.jsonl` in the run folder.

    On S3 the names of its objects end in `.<number>.jsonl`.

    Args:
        folder: the run.
        role: `driver` or `worker`.
        host: name of the node; the host's by default.
    """

    def __init__(self, folder: Folder, role: str, host: str | None = None) -> None:
        self._folder = folder
        self.host = host or socket.gethostname()
        self._stem = f"accounts/{role}-{self.host}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.name = f"{self._stem}.jsonl"
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._text = ""  # of the last object
        self._segment = 0
        self._put_at = 0.0
        self._file: IO[str] | None = None
        local = folder.local(self.name)
        if local is not None:
            with storage_errors(folder.path(self.name)):
                local.parent.mkdir(parents=True, exist_ok=True)
                self._file = local.open("a", encoding="utf-8")
        self._phase = ""
        self._pss, self._measured = 0, -math.inf  # the last measurement of memory, and its time
        #: Fingerprint and finished part of the present task.
        self.part: tuple[str, float] | None = None
        from swsdist.accounts.hardware import describe

        # CPU time of earlier runs in this process is not start-up time.
        earlier = _last_cpu.get(os.getpid(), 0.0)
        self.write("open", role=role, host=self.host, pid=os.getpid(), hardware=describe(), earlier=earlier)
        self._thread = threading.Thread(target=self._sample, name="swsdist-accounts", daemon=True)
        self._thread.start()

    def write(self, event: str, **values: object) -> None:
        """Add a line, with `t`, the time, and `cpu`, the process's CPU seconds so far."""
        _last_cpu[os.getpid()] = cpu = round(sum(cpu_seconds()), 4)
        fields = {name: redacted(value) if isinstance(value, str) else value for name, value in values.items()}
        line = json.dumps({"t": round(time.time(), 3), "event": event, "cpu": cpu, **fields})
        with self._lock:
            if self._file is not None:
                with storage_errors(self._folder.path(self.name)):
                    self._file.write(line + "\n")
                    self._file.flush()
                return
            self._text += line + "\n"
            if event in _AT_ONCE or time.monotonic() - self._put_at >= _PUT_EVERY:
                self._put()

    def _put(self) -> None:
        self._put_at = time.monotonic()
        self._folder.write_bytes(f"{self._stem}.{self._segment:05d}.jsonl", self._text.encode())
        if len(self._text) >= _SEGMENT:
            self._segment, self._text = self._segment + 1, ""

    def rename_node(self, host: str) -> None:
        """Set the name of the node, which is known only after the process has joined a cluster."""
        if host != self.host:
            self.host = host
            self.write("node", host=host)

    @contextmanager
    def phase(self, phase: str) -> Iterator[None]:
        """Attribute the samples in the context to a phase; the last sample is taken at its end."""
        self._phase = phase
        try:
            yield
        finally:
            self.sample(within=_SHARED_FOR)

    def sample(self, within: float = 0.0) -> None:
        """Add a sample: memory, and the finished part of the task; also sooner, before processes end that nobody waits for.

        Args:
            within: seconds for which an earlier measurement of memory is used again.
        """
        if (now := time.monotonic()) - self._measured >= within:
            self._pss, self._measured = self.memory(), now
        part = self.part  # set by another thread
        done = {} if part is None else {"fingerprint": part[0], "part": round(part[1], 4)}
        self.write("sample", phase=self._phase, pss=self._pss, **self._more_fields(), **done)

    def _more_fields(self) -> dict[str, float | int]:
        """Further fields of a sample."""
        used = gpu_bytes()
        return {} if used is None else {"gpu": used}

    def memory(self) -> int:
        """Bytes that this process accounts for."""
        return pss_bytes()

    def _sample(self) -> None:
        while not self._stop.wait(1.0):
            try:
                self.sample()
            except StorageError as error:
                if isinstance(error, TransientError):
                    continue
                return  # permanent: the tasks report it

    def close(self) -> None:
        """Write the last line, and close the file."""
        self._stop.set()
        self._thread.join(timeout=5)
        # Without its end the journal looks like that of a killed process; the error was reported before.
        with suppress(StorageError, OSError):
            self.sample()
            self.write("close")
        if self._file is not None:
            with suppress(OSError):
                self._file.close()


class DriverJournal(Journal):
    """The driver's journal also accounts for the processes that it started, except those that keep their own.

    Attributes:
        on_event: called with each event and its values.
        others: processes of workers on this node; they keep journals.
    """

    on_event: Callable[[str, Mapping[str, object]], None] | None = None

    def __init__(self, folder: Folder) -> None:
        from swsdist.accounts.child_processes import ChildProcesses

        self.others: set[int] = set()
        self._daemons = ChildProcesses()
        self._weights: dict[int, int] = {}  # PSS of each daemon, bytes
        self._changed = self._weighed = 0.0  # time of the last change, and of the last measurement
        super().__init__(folder, "driver")

    def write(self, event: str, **values: object) -> None:
        """Add a line, and call `on_event`."""
        super().write(event, **values)
        if self.on_event is not None:
            self.on_event(event, values)

    def memory(self) -> int:
        """PSS of the driver and of its daemons; also samples the daemons' CPU time."""
        daemons = {pid for pid in self._daemons.look() if pid not in self.others}
        now = time.monotonic()
        if daemons != self._weights.keys():
            self._changed = now
        if now - self._changed < _SETTLED_AFTER or now - self._weighed >= _WEIGH_EVERY:
            self._weights, self._weighed = {pid: pss_bytes(pid) for pid in daemons}, now
        return pss_bytes() + sum(self._weights.values())

    def _more_fields(self) -> dict[str, float | int]:
        # Children of a run without workers, such as ffmpeg, are in the driver's own CPU time when they end.
        daemons = {"daemons": round(self._daemons.seconds(self.others), 4)} if self.others else {}
        return {**super()._more_fields(), **daemons}


def lines_of(folder: Folder, name: str, begin: int, length: int) -> list[dict[str, Any]]:
    """The complete lines in a part of a journal. On S3 the object is rewritten as it grows, and may change during the read.

    Raises:
        FileNotFoundError: no such journal.
        StorageError: reading failed.
    """
    for left in reversed(range(_READS)):
        try:
            with folder.open(name, ahead=0) as file:
                file.seek(begin)
                data = file.read(length)
            break
        except StorageError as error:
            if error.code != OBJECT_CHANGED.name or not left:
                raise
    lines = []
    for text in data.split(b"\n"):
        with suppress(ValueError):  # truncated at either end
            line = json.loads(text)
            if isinstance(line, dict) and "event" in line:
                lines.append(line)
    return lines


def last_part(folder: Folder, name: str) -> tuple[str, float] | None:
    """Fingerprint and finished part of a process's present task, from the end of its journal.

    None if the journal does not have them, and on S3, where reading is too expensive.
    """
    if folder.local(name) is None:
        return None
    with suppress(OSError, StorageError):
        lines = lines_of(folder, name, max(0, folder.info(name).size - _TAIL), _TAIL)
        line: dict[str, Any] = next((line for line in reversed(lines) if line["event"] == "sample"), {})
        return (line["fingerprint"], line["part"]) if "part" in line else None
    return None
