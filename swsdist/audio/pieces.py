"""Pieces of samples of an open recording, up to its end or to where it is truncated or damaged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import soundfile
from numpy.typing import NDArray

from swsdist.audio.formats import ffmpeg
from swsdist.audio.formats.headers import CutOffError, check_extent, plain
from swsdist.audio.formats.mpeg import listening
from swsdist.audio.formats.views import Extent
from swsdist.audio.streams import UNKNOWN, Joined
from swsdist.core.codes import audio as codes
from swsdist.core.errors import recast

#: An open recording.
Sound: TypeAlias = Joined | ffmpeg.Decoded

# Frames decoded at once.
_PIECE = 1 << 16

# Bytes that a decoder may leave at the end: tags.
_TAGS = 1 << 17

# Some encoders count the MPEG frame that only carries the Xing tag.
_MP3_FRAME = 1152


def pieces_of(sound: Sound, path: str, position: int = 0) -> Iterator[NDArray[np.float32]]:
    """Samples (frames, channels) from the current position to the end, checked against the length in the header.

    Args:
        sound: open recording.
        path: its name in errors.
        position: its current frame.

    Raises:
        CutOffError: after the last readable frame: the recording ends early.
        AudioError: the recording is damaged before its end.
    """
    expected, mpeg = sound.frames, sound.format == "MP3"
    stated = None if expected == UNKNOWN else expected / sound.samplerate
    while True:
        try:
            with listening(path, mpeg):
                piece = _read(sound)
        except _Broken as error:
            if sound.format == "FLAC" and position + len(error.piece) == expected:
                yield error.piece  # what follows is no frame
                position = expected
                break
            damaged = codes.DAMAGED_STREAM(where=path, detail=plain(error.error))
            if isinstance(sound, ffmpeg.Decoded) or not sound.at_end():
                raise damaged from error.error
            if len(error.piece):
                yield error.piece
            raise recast(damaged, CutOffError, expected_seconds=stated) from error.error
        if not len(piece):
            break
        position += len(piece)
        yield piece
    if isinstance(sound, Joined) and sound.format in ("FLAC", "MP3", "OGG") and (left := sound.unread_bytes()) > _TAGS:
        sound.cut = sound.cut or check_extent(path, Extent([]), f"about {left} bytes")
    missing = 0 if stated is None else expected - position
    if sound.cut is not None and (mpeg or missing <= 0):
        seconds = stated if mpeg and missing > 0 else sound.cut.expected_seconds
        raise recast(sound.cut, CutOffError, where=path, expected_seconds=seconds)
    if missing > (_MP3_FRAME if mpeg else 0):
        actual = position / sound.samplerate
        truncated = codes.TRUNCATED(where=path, stated=f"{stated or 0:.3f} s", actual=f"{actual:.3f} s")
        # In other formats than FLAC there is a hole before the end.
        raise recast(truncated, CutOffError, expected_seconds=stated) if sound.format == "FLAC" else truncated


class _Broken(Exception):
    """The decoder failed after `piece`."""

    def __init__(self, error: soundfile.LibsndfileError, piece: NDArray[np.float32]) -> None:
        super().__init__()
        self.error, self.piece = error, piece


def _read(sound: Sound) -> NDArray[np.float32]:
    if isinstance(sound, ffmpeg.Decoded):
        return sound.read(_PIECE)
    buffer = np.full((_PIECE, sound.channels), np.nan, np.float32)
    try:
        piece: NDArray[np.float32] = sound.read(_PIECE, dtype="float32", always_2d=True, out=buffer)
    except soundfile.LibsndfileError as error:
        unread = np.isnan(buffer).any(axis=1)
        raise _Broken(error, buffer[: int(np.argmax(unread)) if unread.any() else _PIECE]) from error
    return piece
