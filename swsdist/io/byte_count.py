"""Bytes that this process has read from files and objects, for the accounts of tasks.

What is opened through `swsdist.io.filesystem` is counted, with what Arrow and libsndfile read through it. Not counted are
code, what other programs read (ffmpeg), and what is read for its SHA-256 alone, beside the reading that is for its content.
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
    """Do not count bytes meanwhile: they are read for their content, too."""
    token = _again.set(True)
    try:
        yield
    finally:
        _again.reset(token)


def bytes_read() -> int:
    """By this process so far."""
    return _total


class _Counted(io.FileIO):
    """What a buffer above it reads is counted: what is read from the system, not what is asked of the buffer."""

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        read = retry_local(lambda: io.FileIO.readinto(self, buffer))
        count(read or 0)
        return read

    def readall(self) -> bytes:
        begin = self.tell()

        def read() -> bytes:
            self.seek(begin)  # what was read before an error is lost
            return io.FileIO.readall(self)

        data = retry_local(read)
        count(len(data))
        return data


def open_counted(path: Path) -> io.BufferedReader:
    """A local file, open for reading, whose bytes are counted; what may pass is tried again."""
    raw = retry_local(lambda: _Counted(os.fspath(path)))  # errors tell the name as a string, as those of `Path.open` do
    try:
        size = retry_local(lambda: os.fstat(raw.fileno())).st_blksize
        return io.BufferedReader(raw, max(io.DEFAULT_BUFFER_SIZE, size))
    except BaseException:
        raw.close()
        raise
