"""Segments of recordings: their bounds, and a cache of the decoder between segments of one recording.

Many documents can be segments of one recording. While caching is active, the recording's length is determined once, and
if ffmpeg decodes it, always from the beginning, the next segment continues where the previous one ended. Segments in
order of time thus cost one decoding of the recording, and one copy of a remote one. Each thread has its own cache.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from swsdist.audio.formats import ffmpeg
from swsdist.core.codes import audio as codes

#: Seconds that a segment may exceed its recording by; it is cut there, as in Kaldi's `extract-segments`.
OVERSHOOT = 0.5

#: Bytes of samples to keep: a minute and more.
_KEPT_BYTES = 64 << 20
#: Frames decoded at once.
_PIECE = 1 << 16

T = TypeVar("T")


def fit_segment(start: float, end: float, length: float, doc_id: str, source: str, path: str) -> tuple[float, float]:
    """Start and end (s) of a segment, cut at the end of its recording.

    Args:
        start, end: of the segment, s.
        length: of the recording, s.
        doc_id: document of the segment.
        source: file and line that list it.
        path: of the recording.

    Raises:
        AudioError: the segment lies outside the recording.
    """
    if start >= length or end > length + OVERSHOOT:
        raise codes.SEGMENT_OUTSIDE(where=path, doc_id=doc_id, start=start, end=end, duration=length, source=source)
    return start, min(end, length)


class Window(ffmpeg.Decoded):
    """A decoder that keeps the last samples, so that it can seek back to them."""

    def __init__(self, program: str, source: str, path: str, brief: bool = False, complete: bool = True) -> None:
        self._pieces: deque[NDArray[np.float32]] = deque()
        self._first = self._position = 0
        super().__init__(program, source, path, brief, complete)

    def reaches(self, position: int) -> bool:
        """Whether a frame is still buffered, or not yet decoded."""
        return position >= self._first

    def seek(self, position: int) -> None:
        """Seek forward or back to a frame."""
        while self._frames_read < position and self._decode():
            pass
        self._position = min(position, self._frames_read)

    def read(self, frames: int) -> NDArray[np.float32]:
        """Read at most `frames` samples, float32 (frames, channels); none at the end.

        Raises:
            AudioError: the stream is truncated, or ffmpeg fails.
        """
        if self._position == self._frames_read:
            self._decode()
        begin = self._first
        for piece in self._pieces:
            if self._position < begin + len(piece):
                samples = piece[self._position - begin :][:frames]
                self._position += len(samples)
                return samples
            begin += len(piece)
        return np.empty((0, self.channels), np.float32)

    def _decode(self) -> bool:
        """Decode the next piece, of fixed boundaries; False at the end."""
        piece = super().read(_PIECE)
        if len(piece):
            self._pieces.append(piece)
        while len(self._pieces) > 1 and sum(piece.nbytes for piece in self._pieces) > _KEPT_BYTES:
            self._first += len(self._pieces.popleft())
        return len(piece) > 0


class _Cache(threading.local):
    """Cache of a thread: headers by path, and one decoder with its resources and its user."""

    on = False
    path: str | None = None
    sound: Window | None = None
    user: object = None

    def __init__(self) -> None:
        self.known: dict[str, object] = {}
        self.stack = ExitStack()

    def forget(self) -> None:
        """Close the decoder."""
        self.stack.close()
        self.path = self.sound = self.user = None


_cache = _Cache()


@contextmanager
def caching() -> Iterator[None]:
    """Cache headers and a decoder while the context lasts."""
    if _cache.on:
        yield
        return
    _cache.on = True
    try:
        yield
    finally:
        _cache.on = False
        _cache.known.clear()
        _cache.forget()


def is_caching() -> bool:
    """Whether a cache is active."""
    return _cache.on


def cached(path: str, find: Callable[[], T]) -> T:
    """The cached value of a path, or the result of `find`."""
    if not _cache.on:
        return find()
    if path not in _cache.known:
        _cache.known[path] = find()
    return cast(T, _cache.known[path])


def cached_decoder(path: str, start: float) -> Window | None:
    """The cached decoder of a recording, at `start` s; None if there is none, or it cannot seek there."""
    sound = _cache.sound
    if sound is None or _cache.path != path or not sound.reaches(first := int(start * sound.samplerate)):
        return None
    sound.seek(first)
    return sound


def cache_decoder(path: str, sound: Window, stack: ExitStack) -> None:
    """Cache a decoder; close the previous one.

    Args:
        path: of its recording.
        sound: decoder.
        stack: closes the decoder and its resources.
    """
    _cache.forget()
    _cache.path, _cache.sound, _cache.stack = path, sound, stack


@contextmanager
def lent(sound: Window) -> Iterator[Window]:
    """Lend the cached decoder; close it if reading fails or ends early."""
    token = _cache.user = object()
    try:
        yield sound
    except BaseException:
        # An abandoned generator may end while another one uses the decoder.
        if _cache.user is token:
            _cache.forget()
        raise
