"""Segments: stretches of one length, each a short vector, and a signature of it.

A segment's vector is the sums of frames of its parts, one after the other. Its signature has a bit for each of some random
directions of signs: the sign of the vector's product with it. The share of equal bits of two signatures estimates the angle
between the vectors (Charikar 2002, "Similarity estimation techniques from rounding algorithms"). Frames are integers
(`swsdist.kernels.distances.interface`), so products are exact in float64, in any order.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

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
