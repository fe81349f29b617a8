"""Places in recordings: whether they are in them, and what is kept from one place in a recording to the next.

Many documents may be places in one recording. While `keeping` lasts, its length is asked for once; and where ffmpeg decodes it,
which it does from the beginning only, the next place goes on where the last one ended. So places in the order of time cost
one decoding of the recording, and one copy of a remote one. Each thread keeps its own.
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

#: A place may end so much (s) after its recording, and then ends with it, as in Kaldi's `extract-segments`.
OVERSHOOT = 0.5

#: Bytes of samples that are kept to go back to: those of a minute and more.
_HELD = 64 << 20
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
    """What ffmpeg decodes, with the last samples kept: one can go back to them."""

    def __init__(self, program: str, source: str, path: str, brief: bool = False, complete: bool = True) -> None:
        self._pieces: deque[NDArray[np.float32]] = deque()
        self._first = self._position = 0
        super().__init__(program, source, path, brief, complete)

    def reaches(self, position: int) -> bool:
        """Whether a frame is still kept, or still to come."""
        return position >= self._first

    def seek(self, position: int) -> None:
        """Go on, or back, to a frame."""
        while self._frames_read < position and self._decode():
            pass
        self._position = min(position, self._frames_read)

    def read(self, frames: int) -> NDArray[np.float32]:
        """The next samples, float32 (frames, channels), at most so many; none at the end.

        Raises:
            AudioError: the stream breaks off, or ffmpeg does not go on.
        """
        if self._position == self._frames_read:
            self._decode()
        begin = self._first
        for piece in self._pieces:
            if self._position < begin + len(piece):
                found = piece[self._position - begin :][:frames]
                self._position += len(found)
                return found
            begin += len(piece)
        return np.empty((0, self.channels), np.float32)

    def _decode(self) -> bool:
        """The next piece; which pieces there are does not depend on the places that are asked for. False at the end."""
        piece = super().read(_PIECE)
        if len(piece):
            self._pieces.append(piece)
        while len(self._pieces) > 1 and sum(piece.nbytes for piece in self._pieces) > _HELD:
            self._first += len(self._pieces.popleft())
        return len(piece) > 0


class _Kept(threading.local):
    """What a thread keeps: lengths by path, and one decoder with what it needs, and who uses it."""

    on = False
    path: str | None = None
    sound: Window | None = None
    user: object = None

    def __init__(self) -> None:
        self.known: dict[str, object] = {}
        self.stack = ExitStack()

    def forget(self) -> None:
        """End the decoder."""
        self.stack.close()
        self.path = self.sound = self.user = None


_kept = _Kept()


@contextmanager
def caching() -> Iterator[None]:
    """Keep lengths and a decoder while this lasts."""
    if _kept.on:
        yield
        return
    _kept.on = True
    try:
        yield
    finally:
        _kept.on = False
        _kept.known.clear()
        _kept.forget()


def is_caching() -> bool:
    """Whether something is kept."""
    return _kept.on


def cached(path: str, find: Callable[[], T]) -> T:
    """What was found for a path, found anew where nothing is kept."""
    if not _kept.on:
        return find()
    if path not in _kept.known:
        _kept.known[path] = find()
    return cast(T, _kept.known[path])


def cached_decoder(path: str, start: float) -> Window | None:
    """The decoder of a recording, standing at `start` s, if it is kept and what comes from there on can be had of it."""
    sound = _kept.sound
    if sound is None or _kept.path != path or not sound.reaches(first := int(start * sound.samplerate)):
        return None
    sound.seek(first)
    return sound


def cache_decoder(path: str, sound: Window, stack: ExitStack) -> None:
    """Keep a decoder instead of the one before.

    Args:
        path: of its recording.
        sound: it.
        stack: closes it and what it needs.
    """
    _kept.forget()
    _kept.path, _kept.sound, _kept.stack = path, sound, stack


@contextmanager
def lent(sound: Window) -> Iterator[Window]:
    """Read of a decoder that is kept; it goes where reading fails, or ends early."""
    mine = _kept.user = object()
    try:
        yield sound
    except BaseException:
        # What was left halfway may end when somebody else reads of it already.
        if _kept.user is mine:
            _kept.forget()
        raise
