"""Bytes read by this process from files and objects, for the accounts of tasks.

Counts reads through `swsdist.io.filesystem`, also by Arrow and libsndfile. Excludes code, reads by other programs
(ffmpeg), and reads only for a SHA-256 in addition to reading the content.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from swsdist.io.local import retry_local

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

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
