"""What libmpg123, which libsndfile decodes MP3 with, says on the process's standard error, without the name of the file.

While an MP3 is opened, sought or read, the process's file descriptor 2 is redirected; the decoder's lines are taken out of what
was written and told once with the file's name, all else is passed on. Where several threads do so at the same time it cannot be
known which file a line is of; then it is left out: threads only read headers, and the file is decoded later by itself.

A file that the decoder cannot use is rejected in any case (`swsdist.audio.reader`).
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: A line of the decoder, wherever it begins: a progress bar's line may stand before it.
_LINE = re.compile(rb"(?:\[[^\]\n]*libmpg123[^\]\n]*\] *|(?:Warning|WARNING|Note|Error): )([^\n]*)\n")
_STDERR = 2

_lock = threading.Lock()
_told: set[tuple[str, str]] = set()


class _Redirection:
    """Of the process's standard error into a file, for as long as anybody is inside."""

    def __init__(self) -> None:
        self._inside = 0
        self._paths: set[str] = set()
        self._kept = -1
        self._file = -1

    def enter(self, path: str) -> None:
        if self._inside == 0:
            if self._file < 0:
                with tempfile.TemporaryFile() as file:  # it has no name and is gone with the process
                    self._file = os.dup(file.fileno())
            self._kept = os.dup(_STDERR)
            os.dup2(self._file, _STDERR)
            self._paths = set()
        self._inside += 1
        self._paths.add(path)

    def leave(self) -> tuple[bytes, set[str]]:
        """What was written, and of whom it may be, if this is the last to leave."""
        self._inside -= 1
        if self._inside:
            return b"", set()
        os.dup2(self._kept, _STDERR)
        os.close(self._kept)
        size = os.lseek(self._file, 0, os.SEEK_CUR)
        if not size:
            return b"", set()
        os.lseek(self._file, 0, os.SEEK_SET)
        said = os.read(self._file, size)
        os.lseek(self._file, 0, os.SEEK_SET)
        os.ftruncate(self._file, 0)
        return said, self._paths


_redirection = _Redirection()


def is_mpeg(head: bytes) -> bool:
    """Whether a file with these first bytes is decoded by libmpg123: an ID3 tag, or the sync word of a frame."""
    return head.startswith(b"ID3") or (len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0)


@contextmanager
def listening(path: str, wanted: bool) -> Iterator[None]:
    """What the decoder says meanwhile is told with the file's name, once.

    Args:
        path: of the file.
        wanted: whether it is an MP3; else nothing is done.
    """
    if not wanted:
        yield
        return
    try:
        with _lock:
            _redirection.enter(path)
    except OSError:  # no standard error, or no descriptors left: the decoder speaks for itself
        yield
        return
    try:
        yield
    finally:
        with _lock:
            said, paths = _redirection.leave()
        if said:
            _pass_on(said, paths)


def _pass_on(said: bytes, paths: set[str]) -> None:
    if rest := _LINE.sub(b"", said):
        os.write(_STDERR, rest)
    if len(paths) > 1:
        return
    for path in paths:
        for line in dict.fromkeys(_LINE.findall(said)):
            message = line.decode("utf-8", "replace").strip()
            if (path, message) not in _told:
                _told.add((path, message))
                print(f"warning: {path}: the MP3 decoder says: {message}", file=sys.stderr)
