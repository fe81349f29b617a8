"""Segments: stretches of one length, each a short vector, and a signature of it.

A segment's vector is the sums of frames of its parts, one after the other. Its signature has a bit for each of some random
directions of signs: the sign of the vector's product with it. The share of equal bits of two signatures estimates the angle
between the vectors (Charikar 2002, "Similarity estimation techniques from rounding algorithms"). Frames are integers
(`swsdist.kernels.distances.interface`), so products are exact in float64, in any order.

Boundaries: frames at which words may begin and end.

Speech is loud in vowels and soft in consonants. Where syllables end in vowels, loudness falls into the consonant of the next
syllable, which begins about where half of the fall is done. Words begin and end at such falls, or beside pauses. Loudness is a
whole number a frame, so that sums are exact.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from swsdist.audio.speech import stretches
from swsdist.config.section import Section

#: Segments whose vectors are held at a time.
_HELD = 1024


class Segments(Section):
    """How documents are cut into segments."""

    frames: int = Field(50, ge=1, description="frames of a segment")
    hop: int = Field(5, ge=1, description="frames from one segment to the next")
    parts: int = Field(10, ge=1, description="parts of a segment, whose summed frames make its vector")
    bits: int = Field(256, ge=64, multiple_of=64, description="bits of a signature: a multiple of 64")
    speech: float = Field(0.8, ge=0, le=1, description="least share of a segment's frames that are speech")


def directions(columns: int, options: Segments) -> NDArray[np.float64]:
    """Random signs, float64 (parts x columns, bits) of -1 and 1; the same on any machine."""
    count = options.parts * columns * options.bits
    stream = hashlib.shake_256(f"signature {options.parts} {columns} {options.bits}".encode()).digest(-(-count // 8))
    signs = np.unpackbits(np.frombuffer(stream, np.uint8))[:count].reshape(options.parts * columns, options.bits)
    return signs.astype(np.float64) * 2 - 1


def starts(spoken: NDArray[np.bool_], options: Segments) -> NDArray[np.int64]:
    """First frames of a document's segments, by which of its frames are speech: bool (frames,)."""
    sums = np.concatenate([[0], np.cumsum(spoken)])
    first = np.arange(0, len(spoken) - options.frames + 1, options.hop)
    result: NDArray[np.int64] = first[sums[first + options.frames] - sums[first] >= options.speech * options.frames]
    return result


def signatures(
    frames: NDArray[np.float32], first: NDArray[np.int64], signs: NDArray[np.float64], options: Segments
) -> NDArray[np.uint8]:
    """Signatures of segments, uint8 (segments, bits / 8).

    Args:
        frames: float32 (frames, columns) of integers, prepared.
        first: int64 (segments,), their first frames.
        signs: from `directions`.
    """
    sums = np.concatenate([np.zeros((1, frames.shape[1])), np.cumsum(frames, axis=0, dtype=np.float64)])
    edges = np.arange(options.parts + 1) * options.frames // options.parts
    result = np.empty((len(first), options.bits // 8), np.uint8)
    for k in range(0, len(first), _HELD):
        at = sums[first[k : k + _HELD, None] + edges]
        vectors = np.diff(at, axis=1).reshape(len(at), -1)
        result[k : k + _HELD] = np.packbits(vectors @ signs > 0, axis=1)
    return result


#: Units of loudness that make 1 dB.
DECIBEL = 64


class Boundaries(Section):
    """Where words may begin and end."""

    smooth: int = Field(2, ge=0, description="frames on either side in the means, taken twice, that smooth loudness")
    fall: float = Field(0.5, gt=0, description="least fall of loudness before a syllable, and rise in it, dB")
    margin: int = Field(8, ge=0, description="frames at the ends of a stretch of speech that are taken for pause")
    reach: int = Field(8, ge=0, description="most frames by which an end of a member moves to a boundary")


def falls(loudness: NDArray[np.int64], smooth: int, fall: float) -> list[int]:
    """Frames in which half of the last unbroken fall before a syllable is done, ascending.

    Args:
        loudness: int64 (frames,), in units of 1/64 dB.
        smooth, fall: as in `Boundaries`.
    """
    width = 2 * smooth + 1
    values = _sums(_sums(loudness, width), width).tolist()
    result = []
    for low in minima(values, fall * DECIBEL * width**2):
        top = low
        while top and values[top - 1] >= values[top]:
            top -= 1
        twice = values[top] + values[low]
        result.append(next(frame for frame in range(top, low + 1) if 2 * values[frame] <= twice))
    return result


def _sums(values: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Sums of the frames around each; the first and the last frame are repeated."""
    if not len(values):
        return values
    sums = np.concatenate([[0], np.cumsum(np.pad(values, width // 2, "edge"))])
    result: NDArray[np.int64] = sums[width:] - sums[:-width]
    return result


def minima(values: Sequence[int], depth: float) -> list[int]:
    """The first lowest value of each valley: values fall into it by at least `depth`, and then rise by as much."""
    result = []
    extreme, falling = 0, False
    for k, value in enumerate(values):
        change = value - values[extreme]
        if falling and change >= depth:
            result.append(extreme)
        if (change < 0) if falling else (change >= 0):
            extreme = k
        elif abs(change) >= depth:
            extreme, falling = k, not falling
    return result


def without_margins(spoken: NDArray[np.bool_], margin: int) -> NDArray[np.bool_]:
    """Marks of speech, bool (frames,), without the first and the last `margin` frames of each stretch."""
    result = spoken.copy()
    for first, stop in stretches(spoken):
        result[first : first + margin] = False
        result[max(first, stop - margin) : stop] = False
    return result


def nearest(boundaries: Sequence[int], frame: int, reach: int) -> int:
    """The nearest boundary, of two the earlier; the frame itself if none is within reach.

    Args:
        boundaries: ascending.
    """
    place = bisect_left(boundaries, frame)
    near = [other for other in boundaries[max(0, place - 1) : place + 1] if abs(other - frame) <= reach]
    return min(near, key=lambda other: abs(other - frame), default=frame)
