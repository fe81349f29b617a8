"""A journal records CPU seconds and memory, and survives the process.

CPU time of a task: user and system time of all threads of the process and of its finished children, by differences.

Peak memory of a task: the kernel's high-water mark is reset (`/proc/self/clear_refs`, 5) and VmHWM read afterwards; `ru_maxrss`
would start at the parent's peak and never fall. Memory of a node: every process of the run on it samples its own PSS (shared
pages count in parts, so the sum over processes counts them once) to its journal once a second.

The journal is append-only, one file a process, flushed line by line: an attempt that was killed has a beginning, samples, and
no end, and what it had used is known to within the last second. S3 cannot append. There the journal is a row of objects: the
last one is put again every ten seconds until it has 32 KiB, then another begins. So what is put grows as the journal does, each
line some twelve times, and what was used is known to within ten seconds.
"""

from __future__ import annotations

import json
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

from swsdist.accounts.gpu import gpu_bytes
from swsdist.core.codes.io import OBJECT_CHANGED
from swsdist.core.errors import PassingError, StorageError
from swsdist.core.redaction import redacted
from swsdist.io.failures import storage_errors
from swsdist.io.filesystem import Folder

#: Seconds between two puts of a journal on S3; what matters to others is put at once.
_PUT_EVERY = 10.0
_AT_ONCE = frozenset({"open", "node", "stage", "failed", "error", "died", "ray", "close"})
#: Bytes after which another object begins.
_SEGMENT = 1 << 15
#: Seconds after which Ray's own processes are weighed again, which takes 10 ms, and until which new ones grow.
_WEIGH_EVERY, _SETTLED_AFTER = 5.0, 10.0
#: Times that a journal is read which changes meanwhile.
_READS = 5
#: Bytes at the end of a journal that hold its last sample.
_TAIL = 4096


def cpu_seconds() -> tuple[float, float]:
    """User and system CPU seconds of this process and its finished children, all threads."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + children.ru_utime, own.ru_stime + children.ru_stime


def reset_peak() -> None:
    """Begin to measure the peak of resident memory anew, where the kernel allows it."""
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
    """Proportional set size of a process; 0 if it is gone, its resident size where the kernel does not tell."""
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


#: CPU seconds of this process (by its number: a fork is another one) when a journal of it last said something.
_said: dict[int, float] = {}


class Journal:
    """A journal is the append-only record of one process, at `accounts/<role>-<host>-<pid>-<n>.jsonl` in the run folder.

    On S3 the names end in `.<number>.jsonl`, an object each.

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
        self._text = ""  # of the object that is not full
        self._segment = 0
        self._put_at = 0.0
        self._file: IO[str] | None = None
        local = folder.local(self.name)
        if local is not None:
            with storage_errors(folder.path(self.name)):
                local.parent.mkdir(parents=True, exist_ok=True)
                self._file = local.open("a", encoding="utf-8")
        self._phase = ""
        #: Fingerprint of the present task, and how much of it is done, as far as it says.
        self.part: tuple[str, float] | None = None
        from swsdist.accounts.hardware import describe

        # What an earlier run of this process took is no start of this one.
        earlier = _said.get(os.getpid(), 0.0)
        self.write("open", role=role, host=self.host, pid=os.getpid(), hardware=describe(), earlier=earlier)
        self._thread = threading.Thread(target=self._sample, name="swsdist-accounts", daemon=True)
        self._thread.start()

    def write(self, event: str, **values: object) -> None:
        """Add a line; `t` is the time, `cpu` the process's CPU seconds so far."""
        _said[os.getpid()] = cpu = round(sum(cpu_seconds()), 4)
        told = {name: redacted(value) if isinstance(value, str) else value for name, value in values.items()}
        line = json.dumps({"t": round(time.time(), 3), "event": event, "cpu": cpu, **told})
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

    def move(self, host: str) -> None:
        """From now on the node has this name: it is known only once the process has joined a cluster."""
        if host != self.host:
            self.host = host
            self.write("node", host=host)

    @contextmanager
    def phase(self, phase: str) -> Iterator[None]:
        """Samples taken meanwhile count as this phase's; the last one is taken at its end."""
        self._phase = phase
        try:
            yield
        finally:
            self._take()

    def _take(self) -> None:
        told = self.part  # of another thread
        done = {} if told is None else {"fingerprint": told[0], "part": round(told[1], 4)}
        self.write("sample", phase=self._phase, pss=self.memory(), **self._beside(), **done)

    def _beside(self) -> dict[str, float | int]:
        """What else a sample says."""
        used = gpu_bytes()
        return {} if used is None else {"gpu": used}

    def memory(self) -> int:
        """Bytes that this process accounts for."""
        return pss_bytes()

    def _sample(self) -> None:
        while not self._stop.wait(1.0):
            try:
                self._take()
            except StorageError as error:
                if isinstance(error, PassingError):
                    continue
                return  # nothing can be written there: the tasks themselves will say so

    def close(self) -> None:
        """End of the process's part in the run."""
        self._stop.set()
        self._thread.join(timeout=5)
        # Without its end it is as that of a process that was killed; why it cannot be written others have said.
        with suppress(StorageError, OSError):
            self._take()
            self.write("close")
        if self._file is not None:
            with suppress(OSError):
                self._file.close()


class DriverJournal(Journal):
    """The driver's journal also accounts for the processes that it started, except those that keep their own.

    Attributes:
        on_event: is told each event and its values.
    """

    on_event: Callable[[str, Mapping[str, object]], None] | None = None

    def __init__(self, folder: Folder) -> None:
        from swsdist.accounts.child_processes import ChildProcesses

        self.others: set[int] = set()
        self._daemons = ChildProcesses()
        self._weights: dict[int, int] = {}  # bytes of each daemon
        self._changed = self._weighed = 0.0  # when there were others, and when they were weighed
        super().__init__(folder, "driver")

    def write(self, event: str, **values: object) -> None:
        """Add a line, and tell it."""
        super().write(event, **values)
        if self.on_event is not None:
            self.on_event(event, values)

    def memory(self) -> int:
        """PSS of the driver and of the daemons it started; looks at the CPU time of the latter."""
        there = {pid for pid in self._daemons.look() if pid not in self.others}
        now = time.monotonic()
        if there != self._weights.keys():
            self._changed = now
        if now - self._changed < _SETTLED_AFTER or now - self._weighed >= _WEIGH_EVERY:
            self._weights, self._weighed = {pid: pss_bytes(pid) for pid in there}, now
        return pss_bytes() + sum(self._weights.values())

    def _beside(self) -> dict[str, float | int]:
        spent = self._daemons.seconds(self.others) if self._started_ray else 0.0
        return {**super()._beside(), **({"daemons": round(spent, 4)} if self._started_ray else {})}

    def stop(self) -> None:
        """Ray is about to be ended: a last look at those of its processes for which nobody waits."""
        self._take()

    @property
    def _started_ray(self) -> bool:
        """A child of a serial run, ffmpeg say, is in the driver's own CPU time when it has ended."""
        return bool(self.others)


def lines_of(folder: Folder, name: str, begin: int, length: int) -> list[dict[str, Any]]:
    """The whole lines of a part of a journal, as `ACCOUNTS` has them; on S3 it is put anew while it grows, and may change while
    it is read.

    Raises:
        FileNotFoundError: there is none.
        StorageError: it cannot be read.
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
    found = []
    for text in data.split(b"\n"):
        with suppress(ValueError):  # cut off at either end
            line = json.loads(text)
            if isinstance(line, dict) and "event" in line:
                found.append(line)
    return found


def last_part(folder: Folder, name: str) -> tuple[str, float] | None:
    """What the present task of a process is, and how much of it is done; from the end of its journal.

    None where it does not say, and on S3, where that would be too dear.
    """
    if folder.local(name) is None:
        return None
    with suppress(OSError, StorageError):
        lines = lines_of(folder, name, max(0, folder.info(name).size - _TAIL), _TAIL)
        line: dict[str, Any] = next((line for line in reversed(lines) if line["event"] == "sample"), {})
        return (line["fingerprint"], line["part"]) if "part" in line else None
    return None
