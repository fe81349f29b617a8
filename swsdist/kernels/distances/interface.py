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

**Logarithm**, with + - * / alone, so that it is the same on every CPU; and that of an integer, for maps.

Logarithms of the C libraries and of numpy's vector code differ in their last bit between CPUs; IEEE 754 fixes the four
operations. With x = m 2^e, m within sqrt(1/2)..sqrt(2), and s = (m - 1)/(m + 1)::

    ln x = e ln 2 + 2 (s + s^3/3 + s^5/5 + ...)          |s| <= 0.172: the first term left out is below 2^-60 of the sum

Error: at most some 2^-50 of max(1, |ln x|).

**Weighted sums** of distances over streams of columns: two nets side by side, or posteriors beside cepstra.

The value of the sum is the sum of weight * distance, each distance in its own terms (1 is 1 whatever its unit). All
units are powers of two, so it is exact in integers: see `kernels.arithmetic.weighted`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from math import frexp
from typing import Literal, NamedTuple, Protocol

import numba
import numpy as np

from swsdist.core.arrays import Floats, Ints, Singles
from swsdist.core.codes import families
from swsdist.core.codes import methods as codes
from swsdist.core.errors import DataError
from swsdist.kernels.arithmetic import Value, weighted
from swsdist.kernels.compiled import compiled
from swsdist.registry.entries import checked
from swsdist.registry.registries import DISTANCES

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

    frames: Singles
    saturated: int


class Stream(NamedTuple):
    """Columns of prepared frames that form one product.

    Attributes:
        first, stop: the columns, first <= column < stop.
        from_dot: map of a product to 0..4095.
        weight: of this stream's distance in the sum.
        bound: upper bound of all partial sums of the product.
        fine: map of a product to 0..32767, eight times as fine, for the row range (`kernels.products`); None: there is none,
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
    features: Singles,
    lengths: Ints,
    offset: Floats,
    scale: Floats,
    out: Floats,
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
Fill = Callable[[Floats, Side, str | None], Prepared]


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
        features: Singles,
        offset: Floats,
        scale: Floats,
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
        blocks: Sequence[Singles],
        offset: Floats,
        scale: Floats,
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


def _normalised(blocks: Sequence[Singles], offset: Floats, scale: Floats) -> Floats:
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
        raise families.TOO_LARGE(
            "{dimension} dimensions are too many for exact sums in the distance {name}",
            (
                "split the features into streams, each with its own distance, or raise the floor where "
                "the distance has one"
            ),
            dimension=dimension,
            name=name,
        )
    stream = Stream(0, columns, from_dot, 1, bound, fine)
    return Distance(name, dimension, unit, columns, (stream,), 0, fill)


_LN_2 = 0.6931471805599453
_ROOT_HALF = 0.7071067811865476
#: 1/23, 1/21, ... 1/3, 1: Horner's scheme begins with the smallest.
_SERIES = tuple(1.0 / odd for odd in range(23, 0, -2))


def ln(x: float) -> float:
    """The natural logarithm of a positive float64.

    A plain function: the tests hold it against decimals, the kernels compile it as `compiled_ln`.
    """
    mantissa, exponent = frexp(x)
    if mantissa < _ROOT_HALF:
        mantissa = mantissa * 2.0
        exponent = exponent - 1
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square = s * s
    total = 0.0
    for term in _SERIES:
        total = total * square + term
    return exponent * _LN_2 + 2.0 * s * total


compiled_ln = compiled("float64(float64)")(ln)


def below_24_bits(x: Value) -> Value:
    """24 ln 2 - ln x, 2^20 for 1, of an integer 1..2^24, in 32 bits.

    With x = m 2^e, m within 1..2, ln(1 + u) ~ u (c1 + u (c2 + u (c3 + u c4))): c is the polynomial of that form that is
    nearest to the logarithm within 0..1 at worst, and equal to it at both ends, so the value never rises with x. Error: at
    most 0.05 / 2^8.
    """
    shifted = x & 0
    for step in (16, 8, 4, 2, 1):  # until 2^24 <= x < 2^25
        by = ((x - (1 << (25 - step))) >> 31) & step
        x = x << by
        shifted = shifted + by
    u = (x - 16777216) >> 10
    series = 14590 + ((-3731 * u) >> 14)
    series = -30789 + ((series * u) >> 14)
    series = 65356 + ((series * u) >> 14)
    return 726817 * shifted - ((series * u) >> 10)  # 2^20 ln 2


numba.extending.register_jitable(below_24_bits)


#: How far the sum of a frame's probabilities may be from 1.
TOLERANCE = 0.01


@compiled("int64(float64[:,::1], float64[::1])")
def _totals(values: Floats, out: Floats) -> int:
    frames, dimension = values.shape
    for t in range(frames):
        total = 0.0
        for k in range(dimension):
            if not values[t, k] >= 0.0:
                return int(t)
            total = total + values[t, k]
        if total != 0.0 and abs(total - 1.0) > TOLERANCE:
            return int(t)
        out[t] = total
    return -1


def totals(values: Floats, name: str, where: str | None) -> Floats:
    """Sums of the frames, in the order of the index; 0 for a frame that is all zero.

    Args:
        values: float64 (frames, D).
        name: of the distance, for errors.
        where: whose features they are, for errors.

    Raises:
        DataError: a value is negative, or a frame's sum is not 1.
    """
    out = np.empty(len(values))
    bad = _totals(values, out)
    if bad >= 0:
        frame = values[bad]
        problem = f"it contains {frame.min():g}" if frame.min() < 0 else f"its sum is {frame.sum():g}"
        raise codes.NEEDS_POSTERIORS(where=where, name=name, frame=bad, problem=problem)
    return out


class Part(NamedTuple):
    """A distance over the feature columns first <= column < stop, and its weight, at least 1."""

    distance: Distance
    first: int
    stop: int
    weight: int


def weighted_sum(parts: Sequence[Part], dimension: int, where: str = "streams") -> Distance:
    """The distance that is a weighted sum of others. Columns may be in several parts, or in none.

    Args:
        parts: at least one; their distances are single, not sums.
        dimension: of the features.
        where: what errors call the parts.

    Raises:
        ConfigError: a part has columns that the features lack.
    """
    for k, part in enumerate(parts):
        if not 0 <= part.first < part.stop <= dimension:
            raise codes.STREAM_COLUMNS_OUTSIDE(
                where=f"{where}[{k}].columns", dimension=dimension, first=part.first, stop=part.stop
            )
    total = weighted([(part.distance.name, part.weight) for part in parts])
    streams = []
    columns = 0
    for part, weight in zip(parts, total.weights, strict=True):
        (stream,) = part.distance.streams
        streams.append(stream._replace(first=columns, stop=columns + stream.stop, weight=weight))
        columns += part.distance.columns
    name = " + ".join(f"{part.weight} {part.distance.name}" for part in parts)
    return Distance(name, dimension, total.unit, columns, tuple(streams), total.shift, partial(_fill, tuple(parts)))


def _fill(parts: tuple[Part, ...], values: Floats, side: Side, where: str | None) -> Prepared:
    prepared = [
        part.distance.fill(np.array(values[:, part.first : part.stop], order="C"), side, where) for part in parts
    ]
    return Prepared(
        np.concatenate([item.frames for item in prepared], axis=1), sum(item.saturated for item in prepared)
    )


def create(name: str, dimension: int, options: Mapping[str, object] | None = None) -> Distance:
    """The distance of that name for features of that dimension.

    Args:
        name: registered.
        dimension: at least 1.
        options: those that are not as they are by default, such as `floor` or `cap`.

    Raises:
        ConfigError: there is no such distance, or it does not take such an option.
        UserError: the dimension is too large for it.
    """
    return _made(name, dimension, tuple(sorted(checked(DISTANCES, name, options or {}).items())))


@cache
def _made(name: str, dimension: int, options: tuple[tuple[str, object], ...]) -> Distance:
    entry = DISTANCES[name]
    distance: Distance = entry.load()(name, entry.unit, dimension, **dict(options))
    return distance
