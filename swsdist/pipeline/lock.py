"""A lock lets one driver at a time work in a run folder or store.

The lock is a small file with host, process and a heartbeat. It is stale when the heartbeat is 60 s old, or at once when the
process is known to be gone (same host). Tasks need no lock: their outputs are named by fingerprint, and a late or repeated
writer writes the same bytes to the same name.

In a local folder one process at a time looks and writes, while the kernel locks the folder (flock). Where the kernel cannot
(some network file systems) and nobody holds the folder, a link makes the file, and only one of several processes succeeds.
Where there are no links either (S3), or a stale lock lies there, a process writes the file and reads it again after a moment;
the last writer holds the lock. A holder that lost its lock (it was stopped for a minute, say, and another took over) stops at
the end of its stage.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from swsdist.errors import LockedError, StorageError
from swsdist.io.filesystem import Folder

NAME = "lock.json"
STALE_AFTER = 60.0
_BEAT = 10.0
_SETTLE = 0.5


class Lock:
    """The lock that one holder has on one folder."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        pid = os.getpid()
        self._mine = {"host": socket.gethostname(), "pid": pid, "boot": _boot_id(), "born": _born(pid)}
        self._mine["token"] = uuid.uuid4().hex

    def identity(self) -> dict[str, Any]:
        """Host and process of the holder, as `alive` wants them."""
        return dict(self._mine)

    def take(self) -> None:
        """Raises LockedError if a living process holds the folder."""
        with _alone(self._folder) as alone:
            self._take(alone)

    def _take(self, alone: bool) -> None:
        holder = read(self._folder)
        if holder is not None and alive(holder):
            raise LockedError(
                f"process {holder['pid']} on {holder['host']} is working here",
                where=self._folder.path(),
                remedy=f"wait for it, or stop it; a dead one's lock is ignored after {STALE_AFTER:.0f} s",
            )
        if alone:
            self._folder.write_bytes(NAME, self._text())
        elif not self._link():
            self._folder.write_bytes(NAME, self._text())
            time.sleep(_SETTLE)
        if not self.held():
            raise LockedError(
                "another process began here at the same moment", where=self._folder.path(), remedy="run again later"
            )

    def _link(self) -> bool:
        """Make the file, if there is none and links can be made here; whether this was tried."""
        target = self._folder.local(NAME)
        if target is None or target.exists():
            return False
        with self._folder.temporary() as file:
            file.write_bytes(self._text())
            try:
                target.hardlink_to(file)
            except FileExistsError:
                return True  # another was quicker
            except OSError:
                return False
        return True

    def held(self) -> bool:
        """Whether the file still is this holder's."""
        return bool((read(self._folder) or {}).get("token") == self._mine["token"])

    def check(self) -> None:
        """Raises LockedError if the folder was lost to another process."""
        if not self.held():
            raise LockedError(
                "the lock was lost: another process took it over, or removed it",
                where=self._folder.path(),
                remedy="run again when no other process works here; what was computed is kept",
            )

    def beat(self) -> None:
        """Say that the holder lives."""
        with suppress(Exception):  # it may pass; if it does not, the tasks will say so
            if self.held():
                self._folder.write_bytes(NAME, self._text())

    def release(self) -> None:
        """Give the folder back."""
        if self.held():
            self._folder.remove(NAME)

    def _text(self) -> bytes:
        return json.dumps({**self._mine, "t": time.time()}).encode()


@contextmanager
def _alone(folder: Folder) -> Iterator[bool]:
    """The kernel's lock of a local folder, waited for; whether it could be had."""
    place = folder.local()
    if place is None:
        yield False
        return
    try:
        place.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(place, os.O_RDONLY)
    except OSError:
        yield False  # who writes the file says what is wrong
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


@contextmanager
def locked(folder: Folder) -> Iterator[Lock]:
    """Hold the folder.

    Where nothing can be written, nothing is held either: who finds all done there may look at it, and who has something to
    write is told at its first file.

    Raises:
        LockedError: a living process holds it.
    """
    lock = Lock(folder)
    try:
        lock.take()
    except StorageError as error:
        if error.cause not in ("read-only", "permission"):
            raise
        yield lock
        return
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(_BEAT):
            lock.beat()

    thread = threading.Thread(target=beat, name="swsdist-lock", daemon=True)
    thread.start()
    try:
        yield lock
    finally:
        stop.set()
        thread.join()
        lock.release()


def read(folder: Folder) -> dict[str, Any] | None:
    """Who holds the folder, alive or not; None if nobody."""
    try:
        values: dict[str, Any] = json.loads(folder.read_bytes(NAME))
    except (FileNotFoundError, ValueError):
        return None
    return values


def alive(holder: dict[str, Any]) -> bool:
    """Whether the holder of a lock still lives, as far as can be told from here."""
    if holder["host"] == socket.gethostname() and holder["boot"] == _boot_id():
        born = _born(holder["pid"])
        return born is not None and born == holder.get("born", born)
    return bool(time.time() - holder["t"] < STALE_AFTER)


def _born(pid: int) -> int | None:
    """When a process began, in clock ticks since the start of the machine; None if it is gone.

    Tells it from a later one that was given the same number.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None if Path("/proc/self/stat").exists() else 0
    return None if fields[0] == "Z" else int(fields[19])


def _boot_id() -> str:
    """Tells containers and reboots apart that share a host name."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}:{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""
