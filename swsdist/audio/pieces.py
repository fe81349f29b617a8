"""A recording, open for decoding, as pieces of samples: to its end, to where it is cut off, or to where it is damaged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import soundfile
from numpy.typing import NDArray

from swsdist.audio.formats import ffmpeg
from swsdist.audio.formats.headers import CutOff, plain, truncated
from swsdist.audio.formats.mpeg import listening
from swsdist.audio.streams import UNKNOWN, Sequential

#: An open recording.
Sound: TypeAlias = Sequential | ffmpeg.Decoded

# Frames decoded at once.
_PIECE = 1 << 16

# Some encoders count the MPEG frame that only carries the Xing tag.
_MP3_FRAME = 1152


def pieces_of(sound: Sound, path: str, position: int = 0) -> Iterator[NDArray[np.float32]]:
    """Frames x channels from where the file stands to its end, checked against the length the header told.

    Raises:
        CutOff: after the last frame that can be read, where nothing comes after it.
        AudioError: something does: what is damaged in the middle is not left out in silence.
    """
    expected, mpeg = sound.frames, sound.format == "MP3"
    told = None if expected == UNKNOWN else expected / sound.samplerate
    while True:
        try:
            with listening(path, mpeg):
                piece = _read(sound)
        except _Broken as error:
            broken = f"its stream breaks off or is damaged ({plain(error.error)})"
            if isinstance(sound, ffmpeg.Decoded) or not sound.file.at_end():
                raise truncated(path, broken) from error.error
            if len(error.piece):
                yield error.piece
            raise CutOff(broken, where=path, told=told) from error.error
        if not len(piece):
            break
        position += len(piece)
        yield piece
    missing = 0 if told is None else expected - position
    shown = f"its header tells {told or 0:.3f} s, it has {position / sound.samplerate:.3f} s"
    if sound.cut is not None and (mpeg or missing <= 0):
        raise CutOff(sound.cut.message, where=path, told=told if mpeg and missing > 0 else sound.cut.told)
    if missing > (_MP3_FRAME if mpeg else 0):
        # Of others there is a hole before the end.
        raise CutOff(shown, where=path, told=told) if sound.format == "FLAC" else truncated(path, shown)


class _Broken(Exception):
    """The decoder has failed; `piece` is what it had decoded before that."""

    def __init__(self, error: soundfile.LibsndfileError, piece: NDArray[np.float32]) -> None:
        super().__init__()
        self.error, self.piece = error, piece


def _read(sound: Sound) -> NDArray[np.float32]:
    if isinstance(sound, ffmpeg.Decoded):
        return sound.read(_PIECE)
    made = np.full((_PIECE, sound.channels), np.nan, np.float32)
    try:
        piece: NDArray[np.float32] = sound.read(_PIECE, dtype="float32", always_2d=True, out=made)
    except soundfile.LibsndfileError as error:
        nothing = np.isnan(made).any(axis=1)
        raise _Broken(error, made[: int(np.argmax(nothing)) if nothing.any() else _PIECE]) from error
    return piece
