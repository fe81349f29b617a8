"""A folder for temporary files of this process: copies of remote files, and files to be uploaded.

It is `swsdist-UID/HOST-PID-...` in the system's temporary folder (TMPDIR), private to its owner. A process removes its
folder when it ends; the next process of the same user removes those of killed processes, when it begins and ends. Each
process holds a lock (flock) on a file in its folder while it lives, which is visible across containers too.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import socket
import stat
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from swsdist.core.codes import storage as codes
from swsdist.core.errors import StorageError
from swsdist.io.failures import storage_errors

_ALIVE = "alive"

# By process and temporary folder: its folder, and the descriptor that holds the lock.
_folders: dict[tuple[int, str], tuple[Path, int]] = {}
_making = threading.Lock()


def scratch() -> Path:
    """The folder of this process, created on demand.

    Raises:
        StorageError: it cannot be made; or its place belongs to another user.
    """
    key = (os.getpid(), tempfile.gettempdir())
    with _making, storage_errors(key[1]):
        result = _folders.get(key)
        if result is None or not result[0].is_dir():  # a cleaner of old files may have removed it
            _folders[key] = result = _make_folder(_above())
            if len(_folders) == 1:
                atexit.register(_leave)
        return result[0]


def sweep() -> int:
    """Remove the folders of dead processes; return their number."""
    with storage_errors(tempfile.gettempdir()):
        above = _above()
        with _alone(above):
            return _sweep(above)


def _above() -> Path:
    """The folder of this user."""
    place = Path(tempfile.gettempdir()) / f"swsdist-{os.getuid()}"
    with suppress(FileExistsError):
        place.mkdir(mode=0o700)
    status = place.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise codes.UNSAFE_TEMPORARY_FOLDER(where=str(place))
    if status.st_mode & 0o077:
        place.chmod(0o700)
    return place


def _make_folder(above: Path) -> tuple[Path, int]:
    place = above / f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    with _alone(above):
        with suppress(OSError):  # a later call may succeed
            _sweep(above)
        place.mkdir(mode=0o700)
        alive = os.open(place / _ALIVE, os.O_CREAT | os.O_RDWR, 0o600)
        with suppress(OSError):  # a file system without locks; folders there are never removed
            fcntl.flock(alive, fcntl.LOCK_SH)
    return place, alive


@contextmanager
def _alone(above: Path) -> Iterator[None]:
    """Let only one process at a time make and remove folders."""
    descriptor = os.open(above, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _sweep(above: Path) -> int:
    dead = [place for place in above.iterdir() if place.is_dir() and not place.is_symlink() and not _lives(place)]
    for place in dead:
        shutil.rmtree(place, ignore_errors=True)
    return len(dead)


def _lives(place: Path) -> bool:
    try:
        descriptor = os.open(place / _ALIVE, os.O_RDWR)
    except FileNotFoundError:
        return False  # its process was killed before locking: folders are made by one process at a time
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _leave() -> None:
    """Remove this process's folder, and those of dead processes."""
    for (process, _), (place, alive) in list(_folders.items()):
        if process == os.getpid():
            shutil.rmtree(place, ignore_errors=True)
            with suppress(OSError):
                os.close(alive)
    with suppress(OSError, StorageError):
        sweep()
