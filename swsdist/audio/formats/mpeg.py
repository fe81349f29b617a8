"""Add the file name to the warnings of libmpg123, libsndfile's MP3 decoder, which prints them to standard error.

File descriptor 2 is redirected while an MP3 is opened, sought or read. Lines of the decoder are printed once with the file's
name; everything else is passed on. Lines are dropped while several threads decode, because their file is unknown: threads only
read headers, and the file is decoded alone later.

The reader rejects a file that the decoder cannot use (`swsdist.audio.reader`).
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: A line of the decoder, possibly behind the line of a progress bar.
_LINE = re.compile(rb"(?:\[[^\]\n]*libmpg123[^\]\n]*\] *|(?:Warning|WARNING|Note|Error): )([^\n]*)\n")
_STDERR = 2

_lock = threading.Lock()
_printed: set[tuple[str, str]] = set()


class _Redirection:
    """Redirects the standard error of the process to a file while a thread is inside."""

    def __init__(self) -> None:
        self._inside = 0
        self._paths: set[str] = set()
        self._kept = -1
        self._file = -1

    def enter(self, path: str) -> None:
        if self._inside == 0:
            if self._file < 0:
                with tempfile.TemporaryFile() as file:  # deleted with the process
                    self._file = os.dup(file.fileno())
            self._kept = os.dup(_STDERR)
            os.dup2(self._file, _STDERR)
            self._paths = set()
        self._inside += 1
        self._paths.add(path)

    def leave(self) -> tuple[bytes, set[str]]:
        """The output and the files of all threads inside, when the last thread leaves."""
        self._inside -= 1
        if self._inside:
            return b"", set()
        os.dup2(self._kept, _STDERR)
        os.close(self._kept)
        size = os.lseek(self._file, 0, os.SEEK_CUR)
        if not size:
            return b"", set()
        os.lseek(self._file, 0, os.SEEK_SET)
        output = os.read(self._file, size)
        os.lseek(self._file, 0, os.SEEK_SET)
        os.ftruncate(self._file, 0)
        return output, self._paths


_redirection = _Redirection()


def is_mpeg(head: bytes) -> bool:
    """Whether libmpg123 decodes a file with these first bytes: an ID3 tag, or the sync word of a frame."""
    return head.startswith(b"ID3") or (len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0)


@contextmanager
def listening(path: str, is_mp3: bool) -> Iterator[None]:
    """Print the decoder's warnings with the file's name, once each.

    Args:
        path: of the file.
        is_mp3: do nothing for other formats.
    """
    if not is_mp3:
        yield
        return
    try:
        with _lock:
            _redirection.enter(path)
    except OSError:  # no standard error, or no descriptors left: leave the decoder's output alone
        yield
        return
    try:
        yield
    finally:
        with _lock:
            output, paths = _redirection.leave()
        if output:
            _pass_on(output, paths)


def _pass_on(output: bytes, paths: set[str]) -> None:
    if rest := _LINE.sub(b"", output):
        os.write(_STDERR, rest)
    if len(paths) > 1:
        return
    for path in paths:
        for line in dict.fromkeys(_LINE.findall(output)):
            message = line.decode("utf-8", "replace").strip()
            if (path, message) not in _printed:
                _printed.add((path, message))
                print(f"warning: {path}: the MP3 decoder says: {message}", file=sys.stderr)
