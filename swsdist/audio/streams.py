"""Files as libsndfile reads them: errors are kept, and what passes is digested, so that a remote recording is fetched once.

Decoders read from the beginning to the end, with looks ahead and back. So a running digest takes each byte as it passes at the
place that it has come to, and leaves out the others; what has not passed when it is asked for, it reads then.
"""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, BinaryIO, Protocol, cast

import numpy as np
import soundfile
from numpy.typing import NDArray

from swsdist.audio.formats.headers import CutOff

_PIECE = 1 << 20
#: Frames that libsndfile tells of a stream whose header does not (FLAC from a pipe).
UNKNOWN = 2**63 - 1


class Sequential(soundfile.SoundFile):  # type: ignore[misc]  # soundfile has no types
    """soundfile seeks after each read to where it is anyway, which makes an MP3 decoder start anew there."""

    def __init__(self, file: ErrorKeepingFile) -> None:
        with _interruptible():
            super().__init__(file)
        self.file = file
        self.cut: CutOff | None = None  # what its first or last bytes say

    def read(self, frames: int, **options: Any) -> NDArray[np.float32]:
        """As soundfile does."""
        with _interruptible():
            samples: NDArray[np.float32] = super().read(frames, **options)
            return samples

    def seek(self, frames: int, whence: int = 0) -> int:
        """As soundfile does."""
        with _interruptible():
            return int(super().seek(frames, whence))

    def seekable(self) -> bool:
        """It says that it is not."""
        return False


@contextmanager
def _interruptible() -> Iterator[None]:
    """Raise a signal's exception that came while libsndfile called back.

    There it is printed and lost, and the call that it broke off looks like a damaged file. Signals are handled in the main
    thread alone.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    lost: list[BaseException] = []
    before = sys.unraisablehook

    def keep(unraisable: sys.UnraisableHookArgs) -> None:
        if isinstance(unraisable.exc_value, (KeyboardInterrupt, SystemExit)):
            lost.append(unraisable.exc_value)
        else:
            before(unraisable)

    sys.unraisablehook = keep
    try:
        yield
    finally:
        sys.unraisablehook = before
        if lost:
            raise lost[0]


class ErrorKeepingFile:
    """A file that remembers an error in reading: from inside of libsndfile it would be taken for the file's end."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._error: Exception | None = None

    def readinto(self, buffer: memoryview) -> int:
        """As of a file."""
        try:
            data = self._file.read(len(buffer))
        except Exception as error:
            self._error = error
            return 0
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        """As of a file; where a broken header asks for a place before its begin, it is left where it stands."""
        if whence == 0 and offset < 0:
            return self.tell()
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """As of a file."""
        return self._file.tell()

    def size(self) -> int:
        """Bytes of the file; it is left where it stands."""
        position = self._file.tell()
        end = self._file.seek(0, 2)
        self._file.seek(position)
        return end

    def write(self, data: bytes) -> int:
        """It cannot."""
        raise OSError("open for reading only")

    def at_end(self) -> bool:
        """Whether all was read, without an error."""
        return self._error is None and self.tell() >= self.size()

    def check(self) -> None:
        """Raise that error, if there was one."""
        if self._error is not None:
            raise self._error


class Digest:
    """The SHA-256 of one file's bytes, taken of what is read of it.

    Attributes:
        path: of the file.
        taken: bytes from its beginning that are in it.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.taken = 0
        self._running = hashlib.sha256()
        self._identity: object = None
        self._size = -1

    def begins(self, identity: object, size: int) -> None:
        """It is opened; another file than before (its ETag tells) is digested anew."""
        if identity != self._identity:
            self.taken, self._running, self._identity = 0, hashlib.sha256(), identity
        self._size = size

    @property
    def all_passed(self) -> bool:
        """Whether all bytes are in it."""
        return self.taken == self._size

    def passes(self, at: int, data: bytes) -> None:
        """These bytes were read at a place."""
        if at <= self.taken < at + len(data):
            self._running.update(memoryview(data)[self.taken - at :])
            self.taken = at + len(data)

    def hexadecimal(self) -> str:
        """Of what has passed."""
        return self._running.hexdigest()

    def of(self, file: BinaryIO) -> str:
        """Hexadecimal, of all; what has not passed is read of the file."""
        at = file.seek(self.taken)
        while data := file.read(_PIECE):
            self.passes(at, data)  # which the file itself may have told
            at += len(data)
        return self.hexadecimal()


class _Passing:
    """A file whose bytes a digest sees."""

    def __init__(self, file: BinaryIO, digest: Digest) -> None:
        self._file, self._digest = file, digest

    def read(self, size: int = -1) -> bytes:
        at = self._file.tell()
        data = self._file.read(size)
        self._digest.passes(at, data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


class _Remote(Protocol):
    """What is known of a remote file that is open."""

    etag: str
    size: int


_wanted: ContextVar[Digest | None] = ContextVar("_wanted", default=None)


@contextmanager
def digesting(digest: Digest | None) -> Iterator[None]:
    """Meanwhile a digest is taken of what is read of its file."""
    token = _wanted.set(digest)
    try:
        yield
    finally:
        _wanted.reset(token)


def passing(path: str, file: BinaryIO) -> BinaryIO:
    """A remote file that was opened, seen by the digest that is wanted of it, if one is."""
    digest = _wanted.get()
    if digest is None or digest.path != path:
        return file
    there = cast(_Remote, file)
    digest.begins(there.etag, there.size)
    return cast(BinaryIO, _Passing(file, digest))
