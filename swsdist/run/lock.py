"""One driver at a time in a run folder or store.

The lock is a small file with host, process and a heartbeat. It is stale when the heartbeat is 60 s old, or at once when the
process is known to be gone (same host). Tasks need no lock: their outputs are named by fingerprint, and a late or repeated
writer writes the same bytes to the same name.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from swsdist.errors import LockedError
from swsdist.io.filesystem import Folder

NAME = "lock.json"
STALE_AFTER = 60.0
_BEAT = 10.0


@contextmanager
def locked(folder: Folder) -> Iterator[None]:
    """Hold the folder.

    Raises:
        LockedError: a living process holds it.
    """
    mine = {"host": socket.gethostname(), "pid": os.getpid(), "boot": _boot_id(), "token": uuid.uuid4().hex}
    holder = read(folder)
    if holder is not None and alive(holder):
        raise LockedError(
            f"process {holder['pid']} on {holder['host']} is working here",
            where=folder.path(),
            remedy=f"wait for it, or stop it; a dead one's lock is ignored after {STALE_AFTER:.0f} s",
        )
    _beat(folder, mine)
    if (read(folder) or {}).get("token") != mine["token"]:
        raise LockedError("another process began here at the same moment", where=folder.path(), remedy="run again")
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(_BEAT):
            _beat(folder, mine)

    thread = threading.Thread(target=beat, name="swsdist-lock", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        if (read(folder) or {}).get("token") == mine["token"]:
            folder.remove(NAME)


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
        return _running(holder["pid"])
    return bool(time.time() - holder["t"] < STALE_AFTER)


def _running(pid: int) -> bool:
    import psutil

    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _beat(folder: Folder, mine: dict[str, Any]) -> None:
    folder.write_bytes(NAME, json.dumps({**mine, "t": time.time()}).encode())


def _boot_id() -> str:
    """Tells containers and reboots apart that share a host name."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}:{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""
