"""Interface of local distances: integer frames, products of their columns, and maps to 12 bits.

`prepare` turns normalised features into frames of integers, stored as float32, such that the product of a query's frame
and a document's frame is exact in any order of summation: every coordinate fits 16 bits, and the absolute value of
every partial sum is at most 2^24 (each distance gives the reason, and the number as `Stream.bound`). A map turns a
product into an integer of 0..4095. Terms that depend on one side only (a squared norm, an entropy) have separate
columns, which meet constants of the other side.

A distance is a weighted sum of one or more streams of columns::

    d = (sum of weight * d of stream + (1 << shift >> 1)) >> shift, clipped to 0..4095

A map is a plain Python function of a product, `from_dot`, that uses only ``+ - * << >> &`` and `least`, `most`, and
whose intermediate values fit 32 bits. It means the same for Python integers, vector lanes and GPU threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple, Protocol

import numba
import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import methods as codes
from swsdist.core.errors import DataError
from swsdist.kernels.arithmetic import Value
from swsdist.kernels.compiled import compiled

#: The side of the product a frame is for; asymmetric distances prepare the two sides differently.
Side = Literal["query", "document"]

#: float32 represents all integers up to this one.
LARGEST_SUM = 1 << 24

#: Coordinates of prepared frames fit 16 bits.
LARGEST_COORDINATE = (1 << 15) - 1


class Map(Protocol):
    """A map of products to 0..4095, for integers, vector lanes, or numbers of a GPU thread."""

    def __call__(self, dot: Value, /) -> Value: ...
    def __hash__(self) -> int: ...


class Prepared(NamedTuple):
    """Frames in fixed point.

    Attributes:
        frames: float32 (frames, columns) of integers.
        saturated: number of frames clipped to the distance's range.
    """

    frames: NDArray[np.float32]
    saturated: int


class Stream(NamedTuple):
    """Columns of prepared frames that form one product.

    Attributes:
        first, stop: the columns, first <= column < stop.
        from_dot: map of a product to 0..4095.
        weight: of this stream's distance in the sum.
        bound: upper bound of all partial sums of the product.
        fine: map of a product to 0..32767, eight times as fine, for the row range (`kernels.row_range`); None: there is none,
            and `from_dot` serves.
    """

    first: int
    stop: int
    from_dot: Map
    weight: int
    bound: int
    fine: Map | None = None

    def distance(self, dot: int) -> int:
        """Apply the map to a Python integer."""
        return int(self.from_dot(dot))


#: Arrays from Arrow buffers are read-only.
_FEATURES = numba.types.Array(numba.float32, 2, "C", readonly=True)


@compiled(numba.void(_FEATURES, numba.int64[::1], numba.float64[:, ::1], numba.float64[:, ::1], numba.float64[:, ::1]))
def _normalise(
    features: NDArray[np.float32],
    lengths: NDArray[np.int64],
    offset: NDArray[np.float64],
    scale: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    dimension = features.shape[1]
    stop = 0
    for block in range(len(lengths)):
        start, stop = stop, stop + lengths[block]
        for t in range(start, stop):
            for k in range(dimension):
                # `/` tests for zero, which keeps the loop out of vector registers.
                out[t, k] = np.divide(features[t, k] - offset[block, k], scale[block, k])


#: Normalised features float64 (frames, dimension), C-contiguous, the side, and the source (for errors) -> frames.
Fill = Callable[[NDArray[np.float64], Side, str | None], Prepared]


@dataclass(frozen=True, eq=False)
class Distance:
    """A local distance, built for features of one dimension.

    Attributes:
        name: as in configs; for a sum, its streams' names.
        dimension: of the features.
        unit: the integer that represents a distance of 1.
        columns: of a prepared frame.
        streams: one, or those of a weighted sum.
        shift: of the weighted sum; 0 for a single stream of weight 1.
        fill: prepares the frames.
    """

    name: str
    dimension: int
    unit: int
    columns: int
    streams: tuple[Stream, ...]
    shift: int
    fill: Fill

    def maps(self, row_range: bool) -> tuple[Map, ...]:
        """The map of each stream; for the row range the fine one, where a stream has it and is the only one."""
        if row_range and len(self.streams) == 1 and self.streams[0].fine is not None:
            return (self.streams[0].fine,)
        return tuple(stream.from_dot for stream in self.streams)

    def prepare(
        self,
        features: NDArray[np.float32],
        offset: NDArray[np.float64],
        scale: NDArray[np.float64],
        side: Side,
        where: str | None = None,
    ) -> Prepared:
        """Normalise frames and convert them to fixed point.

        All operations are float64 + - * / and square root in index order, which IEEE 754 rounds correctly, so the bytes
        are the same on any CPU.

        Args:
            features: float32 (frames, dimension), finite.
            offset: float64 (dimension,), subtracted from each frame; zeros for none.
            scale: float64 (dimension,), positive; each frame is divided by it; ones for none.
            side: the side of the product.
            where: the source of the features, for errors.

        Raises:
            DataError: the distance compares probabilities, and these are none.
        """
        return self.fill(_normalised([features], offset[None], scale[None]), side, where)

    def prepare_blocks(
        self,
        blocks: Sequence[NDArray[np.float32]],
        offset: NDArray[np.float64],
        scale: NDArray[np.float64],
        side: Side,
        where: Callable[[int], str],
    ) -> list[Prepared]:
        """What `prepare` makes of each block, in a single call of the compiled functions.

        Args:
            blocks: at least one; float32 (frames, dimension) each.
            offset, scale: float64 (blocks, dimension).
            side: the side of the product.
            where: the source of a block, by its index.

        Raises:
            DataError: the distance compares probabilities, and a block has none.
        """
        with suppress(DataError):
            frames, saturated = self.fill(_normalised(blocks, offset, scale), side, None)
            if not saturated:
                ends = np.cumsum([0, *map(len, blocks)]).tolist()
                return [Prepared(frames[begin:end], 0) for begin, end in pairwise(ends)]
        # By itself, a block is named in an error, and its own saturated frames are counted.
        return [self.prepare(block, offset[k], scale[k], side, where(k)) for k, block in enumerate(blocks)]


def _normalised(
    blocks: Sequence[NDArray[np.float32]], offset: NDArray[np.float64], scale: NDArray[np.float64]
) -> NDArray[np.float64]:
    features = np.concatenate(blocks) if len(blocks) > 1 else np.ascontiguousarray(blocks[0])
    values = np.empty(features.shape)
    _normalise(features, np.array([len(block) for block in blocks]), offset, scale, values)
    return values


def single(
    name: str,
    dimension: int,
    unit: int,
    columns: int,
    bound: int,
    fill: Fill,
    *,
    from_dot: Map,
    fine: Map | None = None,
) -> Distance:
    """A distance of one stream.

    Raises:
        UserError: features of that dimension do not fit: a sum of products could pass 2^24.
    """
    if bound > LARGEST_SUM:
        raise codes.DIMENSION_TOO_LARGE(dimension=dimension, name=name)
    stream = Stream(0, columns, from_dot, 1, bound, fine)
    return Distance(name, dimension, unit, columns, (stream,), 0, fill)
