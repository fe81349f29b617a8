"""Files on local or mounted disks, with retries of transient failures, counts of bytes, and the Hugging Face cache.

For S3 see `swsdist.io.remote`.

The bytes that this process reads from files and objects are counted for the accounts of tasks: reads through
`swsdist.io.filesystem`, also by Arrow and libsndfile. Not counted are code, reads by other programs (ffmpeg), and reads
only for a SHA-256 in addition to reading the content.
"""

from __future__ import annotations

import io
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from swsdist.core.codes import storage as codes
from swsdist.core.errors import TransientError
from swsdist.io.failures import TEMPORARY, as_file_fault, explain

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


T = TypeVar("T")

#: Attempts per local file, and seconds before the second attempt; twice as many before the third.
ATTEMPTS = 3
PAUSE = 0.2


def retry_local(do: Callable[[], T]) -> T:
    """Read from a local file, with retries of transient failures.

    Raises:
        OSError: all attempts failed, or the failure is permanent.
    """
    for attempt in range(1, ATTEMPTS):
        try:
            return do()
        except OSError as error:
            if not isinstance(explain(error), TransientError):
                raise
        time.sleep(PAUSE * attempt)
    return do()


def is_readable(path: str) -> bool:
    """Whether permissions suffice to read an existing local file.

    Raises:
        OSError: a disk or network fails.
    """
    if os.access(path, os.R_OK):
        return True
    try:  # it gives no reason
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    except OSError as error:
        as_file_fault(error, path)
        return False
    return True


def walk(
    folder: Path,
    prefix: str = "",
    unreadable: Callable[[str, OSError], None] | None = None,
    above: frozenset[tuple[int, int]] = frozenset(),
) -> Iterator[tuple[str, os.stat_result]]:
    """All files in a folder and below, unordered, by relative path; without temporary files, and loops of links.

    Args:
        folder: may be missing.
        prefix: prepended to each name.
        unreadable: as for `filesystem.Folder.files`.
        above: the enclosing folders, by device and number.

    Raises:
        OSError, StorageError: a disk or network fails; without `unreadable`, also if permissions do not suffice.
    """
    try:
        status = retry_local(folder.stat)
        entries = retry_local(lambda: list(os.scandir(folder)))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        as_file_fault(error, str(folder))
        if unreadable is None:
            raise
        unreadable(str(folder), error)
        return
    folder_id = (status.st_dev, status.st_ino)
    if folder_id in above:  # a loop of links
        return
    for entry in entries:
        try:
            status = retry_local(entry.stat)
        except OSError as error:
            fault = as_file_fault(error, entry.path)
            gone = fault.code in (codes.MISSING_FILE.name, codes.LINK_LOOP.name)  # a broken link, or a link to itself
            if not gone and unreadable is None:
                raise
            if unreadable is not None and (not gone or entry.is_symlink()):  # else it was removed meanwhile
                unreadable(entry.path, error)
            continue
        if not stat.S_ISDIR(status.st_mode):
            yield prefix + entry.name, status
        elif entry.name != TEMPORARY:
            yield from walk(Path(entry.path), f"{prefix}{entry.name}/", unreadable, above | {folder_id})


_lock = Lock()
_total = 0
_again: ContextVar[bool] = ContextVar("again", default=False)


def count(read: int) -> None:
    """Count bytes that were read."""
    global _total
    if not _again.get():
        with _lock:
            _total += read


@contextmanager
def uncounted() -> Iterator[None]:
    """Suspend counting: these bytes are also read for their content."""
    token = _again.set(True)
    try:
        yield
    finally:
        _again.reset(token)


def bytes_read() -> int:
    """Bytes read by this process so far."""
    return _total


class _Counted(io.FileIO):
    """Counts bytes read from the system, not those requested from a buffer above."""

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        read = retry_local(lambda: io.FileIO.readinto(self, buffer))
        count(read or 0)
        return read

    def readall(self) -> bytes:
        begin = self.tell()

        def read() -> bytes:
            self.seek(begin)  # the part read before an error is discarded
            return io.FileIO.readall(self)

        data = retry_local(read)
        count(len(data))
        return data


def open_counted(path: Path) -> io.BufferedReader:
    """Open a local file for counted reading; transient failures are retried."""
    raw = retry_local(lambda: _Counted(os.fspath(path)))  # errors then name the file as a string, like `Path.open`
    try:
        size = retry_local(lambda: os.fstat(raw.fileno())).st_blksize
        return io.BufferedReader(raw, max(io.DEFAULT_BUFFER_SIZE, size))
    except BaseException:
        raw.close()
        raise


def folder_of(model: str) -> str:
    """The folder of a model; of one that ends in `owner/name` and does not exist, that model's in the cache."""
    place = Path(model)
    if place.is_dir() or len(place.parts) < 2:
        return model
    snapshot = _snapshot(_cache() / "models--{}--{}".format(*place.parts[-2:]))
    return model if snapshot is None else str(snapshot)


def way_to(model: str, files: str = "") -> str:
    """What to do where there is no such model: download it by its name; what is no name is a wrong path.

    Args:
        model: as it was asked for.
        files: options of `hf download`, for some files.
    """
    if re.fullmatch(r"[\w.-]*\w/\w[\w.-]*", model):
        return f"download it: hf download {model}{files}"
    return "check the path; or name a model in the cache: OWNER/NAME"


def cached_repositories() -> Iterator[tuple[str, Path]]:
    """Names of the models in the cache, and their folders."""
    for path in _cache().glob("models--*--*"):
        if (snapshot := _snapshot(path)) is not None:
            yield "/".join(path.name.split("--")[1:]), snapshot


def _cache() -> Path:
    """The cache, as huggingface_hub finds it."""
    home = Path(os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    return Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser()


def _snapshot(repository: Path) -> Path | None:
    """The folder of a model's newest revision in the cache."""
    try:
        revision = (repository / "refs" / "main").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    snapshot = repository / "snapshots" / revision
    return snapshot if snapshot.is_dir() else None
