"""A lock lets one driver at a time work in a run folder or store.

The lock is a small file with host, process and a heartbeat. It is stale when the process is known to be gone (same host), or
when the file has not changed for 60 s. That is watched: clocks of different hosts are never compared, so one that is an hour
off neither loses a lock nor keeps one for ever. Tasks need no lock: their outputs are named by fingerprint, and a late or
repeated writer writes the same bytes to the same name.

In a local folder one process at a time looks and writes: who has the kernel's lock of the folder (flock), or, where the kernel
cannot lock (some network file systems), who could make a file there. On S3 a file is written only if none is there, or only
over the stale one that was watched (If-None-Match, If-Match), and a heartbeat only over the one before. Where an S3 server
knows no conditions, a process writes the file and reads it again after a moment; the last writer holds the lock. A holder that
lost its lock (it was stopped for a minute, say, and another took over) stops at the end of its stage.
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
from swsdist.core.errors import LockedError, StorageError
from swsdist.io.failures import TEMPORARY, storage_errors
from swsdist.io.filesystem import Folder

NAME = "lock.json"
_CLAIM = f"{TEMPORARY}/lock.claim"
STALE_AFTER = 60.0
_BEAT = 10.0
_LOOK = 1.0
_SIGNS = 2.5  # beats that are waited for
_SETTLE = 0.5


class _Seen(NamedTuple):
    """A lock as it lies there: its file's bytes, and its identity, which on S3 a write can be made to depend on."""

    text: bytes
    identity: str

    @property
    def holder(self) -> dict[str, Any] | None:
        """Who holds it; None if the file is damaged."""
        try:
            values: dict[str, Any] = json.loads(self.text)
        except ValueError:
            return None
        return values


class Lock:
    """The lock that one holder has on one folder.

    Args:
        folder: the folder.
        told: is told if another's heartbeat has to be waited for.
        dead: the holder of another folder's lock that was found dead; what it held here need not be watched again.

    Attributes:
        replaced: the dead holder whose lock this one took over; None if there was none.
        writable: whether anything can be written to the folder.
    """

    def __init__(
        self, folder: Folder, told: Callable[[str], None] | None = None, dead: dict[str, Any] | None = None
    ) -> None:
        self._folder = folder
        self._told = told
        self._dead = dead
        self.replaced: dict[str, Any] | None = None
        self.writable = True
        self._identity: str | None = None  # of the file, where writes can be made to depend on it
        pid = os.getpid()
        self._mine = {"host": socket.gethostname(), "pid": pid, "boot": _boot_id(), "born": _born(pid)}
        self._mine["token"] = uuid.uuid4().hex

    def identity(self) -> dict[str, Any]:
        """Host and process of the holder, as `alive` wants them."""
        return dict(self._mine)

    def take(self) -> None:
        """Raises LockedError if a living process holds the folder; it is waited for a sign of life of one on another host."""
        stale = self._watch()
        self.replaced = stale.holder if stale is not None else None
        with _alone(self._folder) as alone:
            if alone:
                now = _look(self._folder)
                if now is not None and (stale is None or now.text != stale.text):
                    raise self._refused(now)
                self._folder.write_bytes(NAME, self._text())
            else:
                self._put(stale)
        if not self.held():
            raise codes.LOCK_CONFLICT(where=self._folder.path())

    def _watch(self) -> _Seen | None:
        """The lock of a process that is gone, if there is one."""
        seen = _look(self._folder)
        if seen is None or seen.holder is None or (living := _lives_here(seen.holder)) is False:
            return seen
        if living:
            raise self._refused(seen)
        if self._dead is not None and process(self._dead) == process(seen.holder):
            return seen
        if self._told is not None:
            self._told(f"{_name(seen.holder)} may work in {self._folder.path()}: waiting for a sign of life")
        changed = _changes(self._folder, NAME, seen.text, STALE_AFTER)
        if changed:
            raise self._refused(_look(self._folder) or seen)
        return None if changed is None else seen

    def _refused(self, seen: _Seen) -> LockedError:
        holder = seen.holder or {}
        return codes.FOLDER_IN_USE(
            where=self._folder.path(), pid=holder.get("pid", "?"), host=holder.get("host", "?"), seconds=STALE_AFTER
        )

    def _put(self, stale: _Seen | None) -> None:
        """Write the file on S3, if it is as it was seen."""
        text = self._text()
        try:
            self._identity = self._folder.write_if_unchanged(NAME, text, stale.identity if stale is not None else None)
            if self._identity is None or self._folder.write_if_unchanged(NAME, text, None) is None:
                return  # if another was quicker, reading will tell
        except UnsupportedOperation:
            self._folder.write_bytes(NAME, text)
        # The server does not heed conditions, or does not know them.
        self._identity = None
        time.sleep(_SETTLE)

    def held(self) -> bool:
        """Whether the file still is this holder's."""
        return bool((read(self._folder) or {}).get("token") == self._mine["token"])

    def check(self) -> None:
        """Raises LockedError if the folder was lost to another process; one that cannot be written to was never held."""
        if self.writable and not self.held():
            raise codes.LOCK_LOST(where=self._folder.path())

    def beat(self) -> None:
        """Say that the holder lives."""
        with suppress(Exception):  # it may pass; if it does not, the tasks will say so
            if self._identity is not None:
                now = self._folder.write_if_unchanged(NAME, self._text(), self._identity)
                if now is None and self.held():  # the last beat was written, but its answer was lost
                    now = self._folder.identity(NAME)
                self._identity = now or self._identity
            elif self.held():
                with _alone(self._folder):
                    if self.held():
                        self._folder.write_bytes(NAME, self._text())

    def release(self) -> None:
        """Give the folder back."""
        if self.held():
            self._folder.remove(NAME)

    def _text(self) -> bytes:
        # The last makes two beats differ, whatever the clock says.
        return json.dumps({**self._mine, "t": time.time(), "beat": uuid.uuid4().hex[:8]}).encode()


@contextmanager
def _alone(folder: Folder) -> Iterator[bool]:
    """Be the one process that looks at a local folder's lock and writes it, after a wait; False on S3."""
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
    """Make the file that a process has beside the lock while it is alone; of one that died meanwhile it is taken away."""
    seen, since = 0, 0.0
    while True:
        with storage_errors(str(claim)), suppress(FileNotFoundError):  # it went just now
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
    folder: Folder, told: Callable[[str], None] | None = None, dead: dict[str, Any] | None = None
) -> Iterator[Lock]:
    """Hold the folder; `told` and `dead` are as in `Lock`.

    Where nothing can be written, nothing is held either: who finds all done there may look at it, and who has something to
    write is told at its first file.

    Raises:
        LockedError: a living process holds it.
    """
    lock = Lock(folder, told, dead)
    try:
        lock.take()
    except StorageError as error:
        if error.cause not in ("read-only", "permission"):
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
    """Meanwhile a sign of life is given every few seconds, and none after it."""
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
    """Who holds the folder, alive or not; None if nobody."""
    seen = _look(folder)
    return None if seen is None else seen.holder


def alive(holder: dict[str, Any]) -> bool:
    """Whether the holder of a lock seems to live, at a glance: of one on another host, by its clock and ours."""
    here = _lives_here(holder)
    return bool(abs(time.time() - holder["t"]) < STALE_AFTER) if here is None else here


def lives(folder: Folder, holder: dict[str, Any], name: str = NAME, within: float = inf) -> bool:
    """Whether the holder of a lock, or who writes another file as often, lives, whatever its host's clock says.

    What seems dead by its clock, or ahead of ours, is watched for a sign of life, unless it is by more seconds than `within`.
    """
    if alive(holder):
        return True
    if _lives_here(holder) is False or abs(time.time() - holder["t"]) > within:
        return False
    return bool(_changes(folder, name, None, _SIGNS * _BEAT))  # whose file is gone ended just now


def _changes(folder: Folder, name: str, seen: bytes | None, seconds: float) -> bool | None:
    """Whether a file changes within so many seconds from what was seen of it, or is there now; None if it goes."""
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


def _look(folder: Folder) -> _Seen | None:
    try:
        identity = folder.identity(NAME)  # first: if the file changes meanwhile, nothing is written over it
        return _Seen(folder.read_bytes(NAME), identity)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _lives_here(holder: dict[str, Any]) -> bool | None:
    """Whether a process of this host lives; None if it is of another host."""
    if holder["host"] != socket.gethostname() or holder["boot"] != _boot_id():
        return None
    born = _born(holder["pid"])
    return born is not None and born == holder.get("born", born)


def process(holder: dict[str, Any]) -> tuple[Any, ...]:
    """What names the process of a holder, also after its number was given to another."""
    return tuple(holder.get(key) for key in ("host", "boot", "pid", "born"))


def _name(holder: dict[str, Any]) -> str:
    return f"process {holder.get('pid', '?')} on {holder.get('host', '?')}"


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
