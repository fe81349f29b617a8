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
from swsdist.core.errors import AudioError

#: A place may end so much (s) after its recording, and then ends with it, as in Kaldi's `extract-segments`.
OVERSHOOT = 0.5

#: Bytes of samples that are kept to go back to: those of a minute and more.
_HELD = 64 << 20
#: Frames decoded at once.
_PIECE = 1 << 16

T = TypeVar("T")


def within(start: float, end: float, length: float, doc_id: str, listed: str, path: str) -> tuple[float, float]:
    """Start and end (s) of a place, which ends no later than its recording.

    Args:
        start, end: of the place, s.
        length: of the recording, s.
        doc_id: the document that it is.
        listed: file and line that says so.
        path: of the recording.

    Raises:
        AudioError: the place is not in the recording.
    """
    if start >= length or end > length + OVERSHOOT:
        raise AudioError(
            f"{doc_id} is {start:g} to {end:g} s of a recording that lasts {length:.3f} s ({listed})",
            where=path,
            reason="place-outside",
            remedy="correct its times, or drop it; an end may lie up to 0.5 s after the recording's",
        )
    return start, min(end, length)


class Window(ffmpeg.Decoded):
    """What ffmpeg decodes, with the last samples kept: one can go back to them."""

    def __init__(self, program: str, source: str, path: str, brief: bool = False, whole: bool = True) -> None:
        self._held: deque[NDArray[np.float32]] = deque()
        self._first = self._position = 0
        super().__init__(program, source, path, brief, whole)

    def reaches(self, position: int) -> bool:
        """Whether a frame is still kept, or still to come."""
        return position >= self._first

    def seek(self, position: int) -> None:
        """Go on, or back, to a frame."""
        while self._given < position and self._decode():
            pass
        self._position = min(position, self._given)

    def read(self, frames: int) -> NDArray[np.float32]:
        """The next samples, float32 (frames, channels), at most so many; none at the end.

        Raises:
            AudioError: the stream breaks off, or ffmpeg does not go on.
        """
        if self._position == self._given:
            self._decode()
        begin = self._first
        for piece in self._held:
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
            self._held.append(piece)
        while len(self._held) > 1 and sum(one.nbytes for one in self._held) > _HELD:
            self._first += len(self._held.popleft())
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
def keeping() -> Iterator[None]:
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


def are_kept() -> bool:
    """Whether something is kept."""
    return _kept.on


def remembered(path: str, find: Callable[[], T]) -> T:
    """What was found for a path, found anew where nothing is kept."""
    if not _kept.on:
        return find()
    if path not in _kept.known:
        _kept.known[path] = find()
    return cast(T, _kept.known[path])


def kept(path: str, start: float) -> Window | None:
    """The decoder of a recording, standing at `start` s, if it is kept and what comes from there on can be had of it."""
    sound = _kept.sound
    if sound is None or _kept.path != path or not sound.reaches(first := int(start * sound.samplerate)):
        return None
    sound.seek(first)
    return sound


def keep(path: str, sound: Window, stack: ExitStack) -> None:
    """Keep a decoder instead of the one before.

    Args:
        path: of its recording.
        sound: it.
        stack: closes it and what it needs.
    """
    _kept.forget()
    _kept.path, _kept.sound, _kept.stack = path, sound, stack


@contextmanager
def using(sound: Window) -> Iterator[Window]:
    """Read of a decoder that is kept; it goes where reading fails, or ends early."""
    mine = _kept.user = object()
    try:
        yield sound
    except BaseException:
        # What was left halfway may end when somebody else reads of it already.
        if _kept.user is mine:
            _kept.forget()
        raise
