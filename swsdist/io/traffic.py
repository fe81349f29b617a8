"""How many bytes this process has read from files and objects: the accounts tell it by task.

Whatever opens a file through `swsdist.io.filesystem` is counted, with what Arrow and libsndfile read through it. Code is not,
nor what other programs read (ffmpeg).
"""

from __future__ import annotations

import io
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_lock = Lock()
_total = 0


def count(read: int) -> None:
    """So many bytes more were read."""
    global _total
    with _lock:
        _total += read


def bytes_read() -> int:
    """By this process so far."""
    return _total


class _Counted(io.FileIO):
    """What a buffer above it reads is counted: what is read from the system, not what is asked of the buffer."""

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        read = super().readinto(buffer)
        count(read or 0)
        return read

    def readall(self) -> bytes:
        data = super().readall()
        count(len(data))
        return data


def open_counted(path: Path) -> io.BufferedReader:
    """A local file, open for reading, whose bytes are counted."""
    raw = _Counted(path)
    try:
        return io.BufferedReader(raw)
    except BaseException:
        raw.close()
        raise
