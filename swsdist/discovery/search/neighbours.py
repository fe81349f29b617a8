"""Segments with like signatures, found by sorting: the cost grows with n log n of the collection.

Signatures are sorted by 64 of their bits in a random order, so that segments that agree in the first of them stand near each
other; each is compared with those after it. Several orders find what a single order misses (Jansen and Van Durme 2011,
"Efficient spoken term discovery using randomized algorithms").
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from swsdist.config.section import Section

#: Pairs that are compared at a time.
_HELD = 1 << 20


class Neighbours(Section):
    """How pairs of segments are proposed."""

    orders: int = Field(16, ge=1, description="sorted orders")
    beam: int = Field(20, ge=1, description="next segments of an order that each is compared with")
    unlike: float = Field(0.34, gt=0, lt=1, description="greatest share of bits in which two segments differ")
    kept: int = Field(3, ge=1, description="pairs kept of a segment: the most alike")


class Places(NamedTuple):
    """Segments in the order of documents: number of the document, first frame, signature."""

    document: NDArray[np.int32]
    first: NDArray[np.int32]
    signature: NDArray[np.uint8]


class Pairs(NamedTuple):
    """Pairs of segments by number, the first being the lesser, and bits in which they differ."""

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    bits: NDArray[np.int16]


def order_of(bits: int, number: int) -> NDArray[np.int64]:
    """64 of the bits of a signature, in an order that is the same on any machine."""
    keys = hashlib.shake_256(f"order {bits} {number}".encode()).digest(8 * bits)
    return np.argsort(np.frombuffer(keys, ">u8"), kind="stable")[:64]


def near(places: Places, number: int, frames: int, options: Neighbours) -> Pairs:
    """Pairs that stand near each other in one order; none overlap.

    Args:
        places: all segments.
        number: of the order.
        frames: of a segment.
    """
    bits = places.signature.shape[1] * 8
    chosen = order_of(bits, number)
    key = np.zeros(len(places.first), np.uint64)
    for bit in chosen:
        key = key << np.uint64(1) | (places.signature[:, bit // 8] >> np.uint8(7 - bit % 8) & np.uint8(1))
    order = np.argsort(key, kind="stable").astype(np.int32)
    words = places.signature.view(np.uint64)
    most = int(options.unlike * bits)
    pieces: list[Pairs] = []
    for step in range(1, min(options.beam, len(order) - 1) + 1):
        for k in range(0, len(order) - step, _HELD):
            left, right = order[k : min(k + _HELD, len(order) - step)], order[k + step : k + step + _HELD]
            differ = np.bitwise_count(words[left] ^ words[right]).sum(axis=1, dtype=np.int16)
            apart = places.document[left] != places.document[right]
            apart |= np.abs(places.first[left] - places.first[right]) >= frames
            good = (differ <= most) & apart
            left, right = left[good], right[good]
            pieces.append(Pairs(np.minimum(left, right), np.maximum(left, right), differ[good]))
    if not pieces:
        return Pairs(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int16))
    return unique(Pairs(*map(np.concatenate, zip(*pieces, strict=True))))


def unique(pairs: Pairs) -> Pairs:
    """Each pair once, ascending."""
    key = pairs.left.astype(np.int64) << 32 | pairs.right
    _, first = np.unique(key, return_index=True)
    return Pairs(pairs.left[first], pairs.right[first], pairs.bits[first])


def most_alike(pairs: Pairs, of: NDArray[np.bool_], kept: int) -> Pairs:
    """Of the pairs of some segments the `kept` most alike of each, of equal ones those with the lesser other segment.

    Args:
        pairs: all pairs that these segments are in.
        of: bool (segments,), which segments.
    """
    left, right = np.concatenate([pairs.left, pairs.right]), np.concatenate([pairs.right, pairs.left])
    bits = np.concatenate([pairs.bits, pairs.bits])
    chosen = np.flatnonzero(of[left])
    order = chosen[np.lexsort((right[chosen], bits[chosen], left[chosen]))]
    left, right, bits = left[order], right[order], bits[order]
    starts = np.concatenate([[True], left[1:] != left[:-1]]) if len(left) else np.empty(0, np.bool_)
    begin = np.maximum.accumulate(np.where(starts, np.arange(len(left)), 0))
    good = np.arange(len(left)) - begin < kept
    left, right, bits = left[good], right[good], bits[good]
    return unique(Pairs(np.minimum(left, right), np.maximum(left, right), bits))
