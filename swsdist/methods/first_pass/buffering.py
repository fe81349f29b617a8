"""Buffers of document stretches, laid out for the kernels of `kernels.windows`.

A document comes as blocks of any size. A stretch has at least `_BUFFER_FRAMES` frames, or the rest of the document; stretches
overlap. So memory does not grow with a document, and short documents share a buffer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels import products, windows
from swsdist.kernels.distances.interface import Distance
from swsdist.kernels.vectors import WIDTH
from swsdist.methods.first_pass.interface import Frames

#: Least frames of a buffer, except the last.
_BUFFER_FRAMES = 1 << 17


class Stretch(NamedTuple):
    """Consecutive frames of a document, from frame `offset` on; `last` says that the document ends with them."""

    document: int
    offset: int
    frames: Frames
    last: bool


class LaneGroups(NamedTuple):
    """Frames in groups of sixteen.

    Attributes:
        source: int16 (groups, pairs, 16, 2), flat; the groups are a multiple of `products.STRIDE`.
        start: int64, the group with which each window begins.
    """

    source: NDArray[np.int16]
    start: NDArray[np.int64]


class FrameBuffer(NamedTuple):
    """A buffer of stretches.

    Attributes:
        stretches: some, none of them empty.
        bases: the frame of `pairs` that each begins with.
        pairs: int32 (frames, pairs), their frames one after the other, two coordinates an element.
    """

    stretches: list[Stretch]
    bases: list[int]
    pairs: NDArray[np.int32]

    def lay(self, first: NDArray[np.int64], columns: NDArray[np.int64]) -> LaneGroups:
        """Lay out windows of `columns` frames from the frames `first` on, each in separate groups."""
        groups = -(-columns // WIDTH)
        total = int(groups.sum())
        padded = -(-total // products.STRIDE) * products.STRIDE
        pairs = self.pairs.shape[1]
        out = products.aligned(padded * pairs * WIDTH, np.int32)
        windows.lay(self.pairs, first, groups, out.reshape(padded, pairs, WIDTH))
        return LaneGroups(out.view(np.int16), np.cumsum(groups) - groups)


def stretches(document: int, blocks: Iterable[Frames], overlap: int) -> Iterator[Stretch]:
    """Cut a document into stretches that overlap by `overlap` frames."""
    held: list[Frames] = []
    have = offset = 0
    for block in blocks:
        if have >= _BUFFER_FRAMES + overlap:
            frames = np.concatenate(held)
            yield Stretch(document, offset, frames, False)
            offset += have - overlap
            held, have = [frames[have - overlap :]], overlap
        held.append(block)
        have += len(block)
    if have:
        yield Stretch(document, offset, np.concatenate(held) if len(held) > 1 else held[0], True)


def buffered(stream: Iterable[Stretch], distance: Distance) -> Iterator[FrameBuffer]:
    """Collect stretches in buffers."""
    order = products.layout(distance).order
    held: list[Stretch] = []
    have = 0
    for item in stream:
        held.append(item)
        have += len(item.frames)
        if have >= _BUFFER_FRAMES:
            yield _held(held, order)
            held, have = [], 0
    if held:
        yield _held(held, order)


def _held(some: list[Stretch], order: NDArray[np.int64]) -> FrameBuffer:
    frames = np.concatenate([item.frames for item in some]) if len(some) > 1 else some[0].frames
    bases = np.cumsum([0, *(len(item.frames) for item in some[:-1])]).tolist()
    packed = np.empty((len(frames), len(order)), np.int16)
    windows.pack(np.ascontiguousarray(frames), order, packed)
    return FrameBuffer(some, bases, packed.view(np.int32))
