"""File objects for libsndfile that keep errors, and digest the bytes that are read, so that a remote file is fetched once.

Decoders read forward with some seeks ahead and back. A running digest takes each byte at its current position, ignores others,
and reads the missing bytes at the end.
"""

from __future__ import annotations

import hashlib
import sys
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, BinaryIO, Protocol, cast

import numpy as np
import soundfile
from numpy.typing import NDArray

from swsdist.audio.formats.headers import CutOffError

_PIECE = 1 << 20
#: Frames by libsndfile of a stream without a length in its header (FLAC from a pipe).
UNKNOWN = 2**63 - 1


class Sequential(soundfile.SoundFile):  # type: ignore[misc]  # soundfile has no types
    """A SoundFile without the redundant seek after each read, which restarts an MP3 decoder.

    Args:
        file: to decode.
        last: frames at the end that count; None: all.

    Attributes:
        length: number of frames that count.
        cut: set by the checks of the header.
    """

    def __init__(self, file: ErrorKeepingFile, last: int | None = None) -> None:
        with _interruptible():
            super().__init__(file)
        self.file = file
        self.cut: CutOffError | None = None
        self.length = self.frames if last is None else min(last, self.frames)
        if self.length < self.frames:
            self.seek(0)

    def read(self, frames: int, **options: Any) -> NDArray[np.float32]:
        """As soundfile does."""
        with _interruptible():
            samples: NDArray[np.float32] = super().read(frames, **options)
            return samples

    def seek(self, frames: int, whence: int = 0) -> int:
        """As soundfile does."""
        with _interruptible():
            return int(super().seek(frames + self.frames - self.length, whence))

    def seekable(self) -> bool:
        """False, so that soundfile does not seek."""
        return False


class Joined:
    """The parts of a file, mostly one, decoded one after the other as one SoundFile; one part is open at a time.

    Args:
        opens: open each part.

    Attributes:
        samplerate, channels, format, frames: as of a SoundFile.
        cut: set where the file ends early.
        unread: why the parts from some place on cannot be read; empty: they can.
    """

    def __init__(self, opens: Sequence[Callable[[], Sequential]]) -> None:
        self._opens, self._starts, self._number, self._sound = opens, [0], 0, opens[0]()
        self.samplerate, self.channels, self.format = self._sound.samplerate, self._sound.channels, self._sound.format
        self.frames, self.cut, self.unread = self._sound.length, self._sound.cut, ""
        for part in opens[1:]:
            try:
                with part() as sound:
                    if (sound.samplerate, sound.channels) != (self.samplerate, self.channels):
                        self.unread = f"{sound.samplerate} Hz and {sound.channels} channels follow"
                        break
                    self._starts.append(self.frames)
                    self.frames, self.cut = self.frames + sound.length, sound.cut
            except soundfile.LibsndfileError as error:
                self.unread = str(error.error_string).strip()
                break

    @property
    def readable(self) -> int:
        """Number of parts that can be read."""
        return len(self._starts)

    def __enter__(self) -> Joined:
        return self

    def __exit__(self, *_: object) -> None:
        self._sound.close()

    def _open(self, number: int) -> None:
        self.check()
        self._sound.close()
        self._number, self._sound = number, self._opens[number]()

    def read(self, frames: int, **options: Any) -> NDArray[np.float32]:
        """As soundfile does; fewer frames at the end of each part."""
        while True:
            samples = self._sound.read(frames, **options)
            if len(samples) or self._number + 1 == len(self._starts):
                return samples
            self._open(self._number + 1)

    def seek(self, frames: int) -> None:
        """Go to a frame."""
        number = bisect_right(self._starts, frames) - 1
        if number != self._number:
            self._open(number)
        self._sound.seek(frames - self._starts[number])

    def at_end(self) -> bool:
        """Whether the last part was read to its end without an error."""
        return self._number + 1 == len(self._starts) and self._sound.file.at_end()

    def check(self) -> None:
        """Raise the file's read error, if any."""
        self._sound.file.check()

    def unread_bytes(self) -> int:
        """Bytes of the open part that were not read."""
        return self._sound.file.size() - self._sound.file.tell()


@contextmanager
def _interruptible() -> Iterator[None]:
    """Raise the exception of a signal that arrives inside a callback of libsndfile.

    Otherwise it is printed and lost, and the interrupted call looks like a damaged file. Only the main thread handles signals.
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
    """A file that keeps a read error, which libsndfile would take for the end of the file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._error: Exception | None = None

    def readinto(self, buffer: memoryview) -> int:
        """Of the file."""
        try:
            data = self._file.read(len(buffer))
        except Exception as error:
            self._error = error
            return 0
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Of the file; a negative position, from a broken header, is ignored."""
        if whence == 0 and offset < 0:
            return self.tell()
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Of the file."""
        return self._file.tell()

    def size(self) -> int:
        """Bytes of the file; the position stays."""
        position = self._file.tell()
        end = self._file.seek(0, 2)
        self._file.seek(position)
        return end

    def write(self, data: bytes) -> int:
        """Not supported."""
        raise OSError("open for reading only")

    def at_end(self) -> bool:
        """Whether the file was read to its end without an error."""
        return self._error is None and self.tell() >= self.size()

    def check(self) -> None:
        """Raise the read error, if any."""
        if self._error is not None:
            raise self._error


class Digest:
    """SHA-256 of a file, from the bytes that are read.

    Attributes:
        path: of the file.
        taken: bytes from the beginning that are digested.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.taken = 0
        self._running = hashlib.sha256()
        self._identity: object = None
        self._size = -1

    def begins(self, identity: object, size: int) -> None:
        """The file is opened; if its ETag changed, the digest restarts."""
        if identity != self._identity:
            self.taken, self._running, self._identity = 0, hashlib.sha256(), identity
        self._size = size

    @property
    def all_passed(self) -> bool:
        """Whether all bytes are digested."""
        return self.taken == self._size

    def passes(self, at: int, data: bytes) -> None:
        """Take bytes that were read at a position."""
        if at <= self.taken < at + len(data):
            self._running.update(memoryview(data)[self.taken - at :])
            self.taken = at + len(data)

    def hexadecimal(self) -> str:
        """Digest of the bytes so far."""
        return self._running.hexdigest()

    def of(self, file: BinaryIO) -> str:
        """Digest of the file, hexadecimal; missing bytes are read."""
        at = file.seek(self.taken)
        while data := file.read(_PIECE):
            self.passes(at, data)  # the file may have passed them already
            at += len(data)
        return self.hexadecimal()


class _Passing:
    """A file that passes its bytes to a digest."""

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
    """Metadata of an open remote file."""

    etag: str
    size: int


_active: ContextVar[Digest | None] = ContextVar("_active", default=None)


@contextmanager
def digesting(digest: Digest | None) -> Iterator[None]:
    """Digest the bytes that are read of a file while the context lasts."""
    token = _active.set(digest)
    try:
        yield
    finally:
        _active.reset(token)


def passing(path: str, file: BinaryIO) -> BinaryIO:
    """A remote file, wrapped for the active digest of its path, if any."""
    digest = _active.get()
    if digest is None or digest.path != path:
        return file
    remote = cast(_Remote, file)
    digest.begins(remote.etag, remote.size)
    return cast(BinaryIO, _Passing(file, digest))
