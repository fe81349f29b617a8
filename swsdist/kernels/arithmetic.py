"""Integers of the search: operations on them, their scales, and how cost and frames share one. Loads no kernel.

**Operations.** A recurrence's *cell* and a distance's map use only ``+ - * << >> &`` and these, and so mean the same
for Python integers (the oracles), sixteen lanes of a vector (`kernels.vectors` implements them for numba) and a GPU
thread.

**Scales.** A local distance has 12 bits. The integer that represents a distance of 1 is always a power of two
(`DistanceEntry.unit`), so weighted sums of distances are exact.

**Packing** of a path's cost and document frames. ``cost << frame_bits | document frames``: the smaller integer is the
lower cost, and of equal costs the shorter path.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import families
from swsdist.core.codes import methods as codes
from swsdist.core.errors import ConfigError
from swsdist.registry.registries import DISTANCES


class Ordered(Protocol):
    """Types with an order."""

    def __lt__(self, other: Self, /) -> object: ...


class Integer(Protocol):
    """Operands of cells and maps: integers of Python or numpy, or lanes; combined with the same type and with Python's
    integers.
    """

    def __lt__(self, other: Self, /) -> object: ...
    def __gt__(self, other: Self, /) -> object: ...
    def __add__(self, other: Self | int, /) -> Self: ...
    def __sub__(self, other: Self | int, /) -> Self: ...
    def __radd__(self, other: int, /) -> Self: ...
    def __rsub__(self, other: int, /) -> Self: ...
    def __mul__(self, other: Self | int, /) -> Self: ...
    def __rmul__(self, other: int, /) -> Self: ...
    def __lshift__(self, other: Self | int, /) -> Self: ...
    def __rlshift__(self, other: int, /) -> Self: ...
    def __rshift__(self, other: Self | int, /) -> Self: ...
    def __and__(self, other: Self | int, /) -> Self: ...


#: Two values to compare, and two to choose from.
Compared = TypeVar("Compared", bound=Ordered)
Chosen = TypeVar("Chosen")

#: Operands of one operation, all of one type.
Value = TypeVar("Value", bound=Integer)


def least(left: Value, right: Value | int) -> Value:
    """The lesser; the right one on ties."""
    return left if left < right else right  # type: ignore[operator, return-value] # a number becomes such as left


def most(left: Value, right: Value | int) -> Value:
    """The greater; the right one on ties."""
    return left if left > right else right  # type: ignore[operator, return-value]


def choose(left: Compared, right: Compared, if_below: Chosen, otherwise: Chosen) -> Chosen:
    """`if_below` if left < right, else `otherwise`."""
    return if_below if left < right else otherwise


#: Largest local distance.
MAX_DISTANCE = 4095

#: Most frames of a query that a packed 64-bit state holds safely.
LONGEST_QUERY = 1 << 20


class Weighted(NamedTuple):
    """Reduction of a weighted sum of distances to 12 bits: ``(sum of weight * d + (1 << shift >> 1)) >> shift``.

    Attributes:
        weights: of the integers d, which scale them by their units.
        shift: the least that fits the largest sum into 12 bits.
        unit: the integer that represents a sum of 1.
    """

    weights: tuple[int, ...]
    shift: int
    unit: int


def weighted(terms: Sequence[tuple[str, int]]) -> Weighted:
    """Weights, shift and unit of a sum.

    Args:
        terms: (distance, weight), at least one; a weight is at least 1 and multiplies the distance's value.

    Raises:
        ConfigError: the weights differ too much for 12 bits.
    """
    finest = max(DISTANCES[name].unit for name, _ in terms)
    weights = tuple(weight * (finest // DISTANCES[name].unit) for name, weight in terms)
    shift = (sum(weights) - 1).bit_length()
    if finest >> shift == 0:
        raise families.TOO_LARGE.of(ConfigError)(
            "the sum {terms} does not fit 12 bits",
            "give the streams weights that differ less",
            terms=" + ".join(f"{weight} {name}" for name, weight in terms),
        )
    return Weighted(weights, shift, finest >> shift)


#: Packed states, flat, and their dtype.
State: TypeAlias = NDArray[np.int32 | np.int64]
StateType: TypeAlias = type[np.int32 | np.int64]


class Packing(NamedTuple):
    """How cost and frames share an integer for a query of a given length."""

    dtype: StateType
    frame_bits: int
    infinity: int


def packing(query_frames: int) -> Packing:
    """The narrowest state that holds any path of a query.

    A path costs at most 4095 N, so cost and frames need ceil(log2(4095 N + 1)) + ceil(log2(2 N + 1)) bits. Infinity,
    for cells that no path reaches, leaves room for the two distances that a step adds to it.

    Args:
        query_frames: N, at least 1.

    Raises:
        UserError: the query is longer than 2^20 frames.
    """
    frame_bits = int(2 * query_frames).bit_length()
    cost = MAX_DISTANCE * (query_frames + 2)
    for dtype in (np.int32, np.int64):
        infinity = (cost << frame_bits) + 1
        if 2 * infinity <= np.iinfo(dtype).max and query_frames <= LONGEST_QUERY:
            return Packing(dtype, frame_bits, infinity)
    raise codes.QUERY_TOO_LONG(frames=query_frames, use="the search", longest=LONGEST_QUERY)
