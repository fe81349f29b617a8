"""A lock lets one driver at a time work in a run folder or store.

The lock is a small file with host, process and a heartbeat. It is stale when its process is known to be gone (same host), or
when the file has not changed for 60 s. The waiting process watches the file itself; clocks of different hosts are never
compared, so a wrong clock neither loses a lock nor keeps one. Tasks need no lock: their outputs are named by fingerprint, and
late or repeated writers write the same bytes to the same name.

In a local folder, one process at a time reads and writes the lock: the holder of the kernel's lock of the folder (flock), or,
on file systems without flock, the process that created a claim file. On S3, writes are conditional: only if no file exists, or
only over the stale file that was watched (If-None-Match, If-Match); a heartbeat only over the previous one. If an S3 server
does not support conditions, a process writes the file and reads it again after a moment; the last writer holds the lock. A
holder that lost its lock (suspended for a minute, for example) stops at the end of its stage.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import UnsupportedOperation
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from swsdist.core.codes import pipeline as codes
from swsdist.core.codes.storage import READ_ONLY_FILE_SYSTEM
from swsdist.core.errors import LockedError, StorageError
from swsdist.io.failures import DENIED, TEMPORARY, storage_errors
from swsdist.io.filesystem import Folder

NAME = "lock.json"
_CLAIM = f"{TEMPORARY}/lock.claim"
STALE_AFTER = 60.0
_BEAT = 10.0
_LOOK = 1.0
_SIGNS = 2.5  # heartbeats to wait for
_SETTLE = 0.5


class _Seen(NamedTuple):
    """The content of a lock file, and its identity, for conditional writes on S3."""

    text: bytes
    identity: str

    @property
    def holder(self) -> dict[str, Any] | None:
        """The holder; None if the file is damaged."""
        try:
            values: dict[str, Any] = json.loads(self.text)
        except ValueError:
            return None
        return values


class Lock:
    """One holder's lock on one folder.

    Args:
        folder: the folder.
        notify: called with a message before a wait for another process's heartbeat.
        dead: a holder that is known to be dead; its lock is taken over without a wait.

    Attributes:
        replaced: the dead holder whose lock was taken over, or None.
        writable: whether the folder can be written to.
    """

    def __init__(
        self, folder: Folder, notify: Callable[[str], None] | None = None, dead: dict[str, Any] | None = None
    ) -> None:
        self._folder = folder
        self._notify = notify
        self._dead = dead
        self.replaced: dict[str, Any] | None = None
        self.writable = True
        self._identity: str | None = None  # of the file, for conditional writes
        pid = os.getpid()
        self._identity_here = {"host": socket.gethostname(), "pid": pid, "boot": _boot_id(), "born": _born(pid)}
        self._identity_here["token"] = uuid.uuid4().hex

    def identity(self) -> dict[str, Any]:
        """Host and process of the holder, for `alive`."""
        return dict(self._identity_here)

    def take(self) -> None:
        """Take the lock. Raises LockedError if a live process holds it; for one on another host, waits for a heartbeat."""
        stale = self._watch()
        self.replaced = stale.holder if stale is not None else None
        with _exclusive(self._folder) as exclusive:
            if exclusive:
                now = _read(self._folder)
                if now is not None and (stale is None or now.text != stale.text):
                    raise self._refused(now)
                self._folder.write_bytes(NAME, self._text())
            else:
                self._put(stale)
        if not self.held():
            raise codes.LOCK_CONFLICT(where=self._folder.path())

    def _watch(self) -> _Seen | None:
        """The lock of a dead process, or None."""
        seen = _read(self._folder)
        if seen is None or seen.holder is None or (living := _alive_here(seen.holder)) is False:
            return seen
        if living:
            raise self._refused(seen)
        if self._dead is not None and process(self._dead) == process(seen.holder):
            return seen
        if self._notify is not None:
            self._notify(f"{_name(seen.holder)} may work in {self._folder.path()}: waiting for a heartbeat")
        changed = _changes(self._folder, NAME, seen.text, STALE_AFTER)
        if changed:
            raise self._refused(_read(self._folder) or seen)
        return None if changed is None else seen

    def _refused(self, seen: _Seen) -> LockedError:
        holder = seen.holder or {}
        return codes.FOLDER_IN_USE(
            where=self._folder.path(), pid=holder.get("pid", "?"), host=holder.get("host", "?"), seconds=STALE_AFTER
        )

    def _put(self, stale: _Seen | None) -> None:
        """Write the file on S3, if it has not changed."""
        text = self._text()
        try:
            self._identity = self._folder.write_if_unchanged(NAME, text, stale.identity if stale is not None else None)
            if self._identity is None or self._folder.write_if_unchanged(NAME, text, None) is None:
                return  # another process may have been quicker: `held` decides
        except UnsupportedOperation:
            self._folder.write_bytes(NAME, text)
        # The server ignores or lacks conditional writes.
        self._identity = None
        time.sleep(_SETTLE)

    def held(self) -> bool:
        """Whether this holder still has the lock."""
        return bool((read(self._folder) or {}).get("token") == self._identity_here["token"])

    def check(self) -> None:
        """Raise LockedError if another process took over the lock; a folder that is not writable has none."""
        if self.writable and not self.held():
            raise codes.LOCK_LOST(where=self._folder.path())

    def beat(self) -> None:
        """Write a heartbeat."""
        with suppress(Exception):  # a lasting error shows in the tasks
            if self._identity is not None:
                now = self._folder.write_if_unchanged(NAME, self._text(), self._identity)
                if now is None and self.held():  # the last beat was written, but the response was lost
                    now = self._folder.identity(NAME)
                self._identity = now or self._identity
            elif self.held():
                with _exclusive(self._folder):
                    if self.held():
                        self._folder.write_bytes(NAME, self._text())

    def release(self) -> None:
        """Release the lock."""
        if self.held():
            self._folder.remove(NAME)

    def _text(self) -> bytes:
        # `beat` makes two heartbeats differ, whatever the clock shows.
        return json.dumps({**self._identity_here, "t": time.time(), "beat": uuid.uuid4().hex[:8]}).encode()


@contextmanager
def _exclusive(folder: Folder) -> Iterator[bool]:
    """Wait for exclusive access to the lock file of a local folder; yields False on S3."""
    place = folder.local()
    if place is None:
        yield False
        return
    with storage_errors(folder.path()):
        place.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(place, os.O_RDONLY)
    claim = None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            claim = place / _CLAIM
            _make(claim)
        yield True
    finally:
        os.close(descriptor)
        if claim is not None:
            claim.unlink(missing_ok=True)


def _make(claim: Path) -> None:
    """Create the claim file for exclusive access; one of a dead process is removed after `STALE_AFTER`."""
    seen, since = 0, 0.0
    while True:
        with storage_errors(str(claim)), suppress(FileNotFoundError):  # removed just now
            claim.parent.mkdir(exist_ok=True)
            try:
                claim.touch(exist_ok=False)
                return
            except FileExistsError:
                now = claim.stat().st_mtime_ns
                if now != seen:
                    seen, since = now, time.monotonic()
                elif time.monotonic() - since > STALE_AFTER:
                    claim.unlink()
        time.sleep(_SETTLE / 10)


@contextmanager
def locked(
    folder: Folder, notify: Callable[[str], None] | None = None, dead: dict[str, Any] | None = None
) -> Iterator[Lock]:
    """Hold the lock of a folder; `notify` and `dead` as in `Lock`.

    A folder that is not writable is not locked: it can be read, and the first write fails.

    Raises:
        LockedError: a live process holds the lock.
    """
    lock = Lock(folder, notify, dead)
    try:
        lock.take()
    except StorageError as error:
        if error.code not in DENIED | {READ_ONLY_FILE_SYSTEM.name}:
            raise
        lock.writable = False
        yield lock
        return
    try:
        with beating(lock.beat):
            yield lock
    finally:
        lock.release()


@contextmanager
def beating(beat: Callable[[], None]) -> Iterator[None]:
    """Call `beat` every few seconds inside the context."""
    stop = threading.Event()

    def signs() -> None:
        while not stop.wait(_BEAT):
            beat()

    thread = threading.Thread(target=signs, name="swsdist-beat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def read(folder: Folder) -> dict[str, Any] | None:
    """The holder of the folder's lock, alive or dead; None: not locked."""
    seen = _read(folder)
    return None if seen is None else seen.holder


def alive(holder: dict[str, Any]) -> bool:
    """Whether a holder seems alive, without waiting: on another host, by its clock and ours."""
    local = _alive_here(holder)
    return bool(abs(time.time() - holder["t"]) < STALE_AFTER) if local is None else local


def lives(folder: Folder, holder: dict[str, Any], name: str = NAME, within: float = inf) -> bool:
    """Whether the holder of a lock, or the writer of a similar heartbeat file, is alive, whatever its host's clock shows.

    If its clock makes it seem dead, or ahead of ours, by at most `within` seconds, the file is watched for a heartbeat.
    """
    if alive(holder):
        return True
    if _alive_here(holder) is False or abs(time.time() - holder["t"]) > within:
        return False
    return bool(_changes(folder, name, None, _SIGNS * _BEAT))  # a file that is gone: the process just ended


def _changes(folder: Folder, name: str, seen: bytes | None, seconds: float) -> bool | None:
    """Whether a file changes within `seconds` from `seen` (or its present content); None if it is removed."""
    deadline = time.monotonic() + seconds
    try:
        seen = folder.read_bytes(name) if seen is None else seen
        while time.monotonic() < deadline:
            time.sleep(_LOOK)
            if folder.read_bytes(name) != seen:
                return True
    except (FileNotFoundError, NotADirectoryError):
        return None
    return False


def _read(folder: Folder) -> _Seen | None:
    try:
        identity = folder.identity(NAME)  # before the content: a change in between makes a conditional write fail
        return _Seen(folder.read_bytes(NAME), identity)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _alive_here(holder: dict[str, Any]) -> bool | None:
    """Whether a process of this host is alive; None if it is on another host."""
    if holder["host"] != socket.gethostname() or holder["boot"] != _boot_id():
        return None
    born = _born(holder["pid"])
    return born is not None and born == holder.get("born", born)


def process(holder: dict[str, Any]) -> tuple[Any, ...]:
    """Identity of a holder's process, unique even if its pid is reused."""
    return tuple(holder.get(key) for key in ("host", "boot", "pid", "born"))


def _name(holder: dict[str, Any]) -> str:
    return f"process {holder.get('pid', '?')} on {holder.get('host', '?')}"


def _born(pid: int) -> int | None:
    """Start time of a process, in clock ticks since boot; None if it is gone.

    It distinguishes processes that have the same pid.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None if Path("/proc/self/stat").exists() else 0
    return None if fields[0] == "Z" else int(fields[19])


def _boot_id() -> str:
    """Identity of the boot and the container, which host names do not distinguish."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}:{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""
