"""Euclidean distance in units of a cap on the norm of frames, and its square.

A frame is multiplied by 2^11.5 / cap and rounded. One that is longer than the cap (less sqrt(D)/2 of the fixed point's
steps, so that its norm is below 2^11.5 after rounding) is shortened to it, and counted as saturated. Half the squared
norm, ``a = |X|^2 >> 1``, stands in two columns of its own, high * 2^11 + low::

    query     X,  -high,  -low,  -2^11,  -1
    document  X,   2^11,     1,   high, low       z = -dot = a + a' - X X' ~ 2^22 |q - x|^2 / cap^2

An odd norm loses half a step, so z of two equal frames is 0 or -1. 2^23 stands for cap^2, so ``(z + 2048) >> 12`` is
the squared distance, 1024 for 1 (the cap's square), and rint(sqrt(z)) is the distance, 2048 for 1 (the cap).

Bound: a partial sum of X X' is at most 2^23 either way (Cauchy-Schwarz); the terms of the norms are negative and sum to
-2^22 - 2^22 at most: 2^24.

Error, in units of the cap: of the distance e = sqrt(D) / 2^11.5 from the rounding of the frames, and 1/4096 from that
of d (1/2048 more where frames are nearly equal, for the half steps); of its square 2 r e + e^2 + 1/2048, r being the
distance. A zero vector is a point like any other; two of them are at distance 0.
"""

from __future__ import annotations

from functools import partial
from math import sqrt

import numpy as np

from swsdist.core.arrays import Floats, Singles
from swsdist.kernels.arithmetic import Value, least, most
from swsdist.kernels.compiled import compiled
from swsdist.kernels.distances.interface import LARGEST_SUM, Distance, Prepared, Side, single

#: The integer for the cap, 2^11.5.
OF_CAP = 2.0**11.5

#: Bits of the low part of half a squared norm.
LOW_BITS = 11


def default_cap(dimension: int) -> float:
    """2.5 sqrt(D), well above the mean norm of features of variance 1, sqrt(D)."""
    return 2.5 * sqrt(dimension)


@compiled("int64(float64[:,::1], float64, boolean, float32[:,::1])")
def _fixed(values: Floats, cap: float, query: bool, out: Singles) -> int:
    frames, dimension = values.shape
    longest = OF_CAP - np.sqrt(np.float64(dimension)) / 2.0
    saturated = 0
    for t in range(frames):
        square = 0.0
        for k in range(dimension):
            square = square + values[t, k] * values[t, k]
        norm = np.sqrt(square)
        factor = OF_CAP / cap
        if norm * factor > longest:
            factor = longest / norm
            saturated += 1
        squares = 0
        for k in range(dimension):
            x = np.rint(values[t, k] * factor)
            out[t, k] = x
            squares += int(x) * int(x)
        high, low = (squares >> 1) >> LOW_BITS, (squares >> 1) & ((1 << LOW_BITS) - 1)
        if query:
            out[t, dimension], out[t, dimension + 1] = -high, -low
            out[t, dimension + 2], out[t, dimension + 3] = -(1 << LOW_BITS), -1
        else:
            out[t, dimension], out[t, dimension + 1] = 1 << LOW_BITS, 1
            out[t, dimension + 2], out[t, dimension + 3] = high, low
    return saturated


def _fill(cap: float, values: Floats, side: Side, where: str | None) -> Prepared:
    out = np.empty((len(values), values.shape[1] + 4), np.float32)
    saturated = int(_fixed(values, cap, side == "query", out))
    return Prepared(out, saturated)


def from_dot(dot: Value) -> Value:
    """rint(sqrt(z)) within 0..4095, z = -dot, exactly.

    z is shifted by an even number of bits until its root is within 1..2 (times 2^12). The best polynomial there
    approximates the root; after rounding it is off by at most one, which its square corrects.
    """
    z = least(most(0 - dot, 0), 16777216)
    x = most(z, 1)
    shifted = x & 0
    for step in (16, 8, 4, 2):  # until 2^24 <= x < 2^26
        by = ((x - (1 << (26 - step))) >> 31) & step
        x = x << by
        shifted = shifted + by
    u = (x >> 12) - 10240
    root = -2289 + ((1669 * u) >> 13)
    root = 2989 + ((root * u) >> 13)
    root = -8147 + ((root * u) >> 13)
    root = 41484 + ((root * u) >> 13)
    root = 103617 + ((root * u) >> 13)
    half = shifted >> 1
    near = (root + (8 << half)) >> (half + 4)
    square = near * near
    too_small, too_large = (square + near - z) >> 31, (z - 1 - square + near) >> 31  # -1 if true
    return least(near - too_small + too_large, 4095)


def from_dot_squared(dot: Value) -> Value:
    """``(z + 2048) >> 12`` within 0..4095, z = -dot."""
    return least(most((2048 - dot) >> 12, 0), 4095)


def plain(name: str, unit: int, dimension: int, cap: float | None) -> Distance:
    """Euclidean distance."""
    fill = partial(_fill, default_cap(dimension) if cap is None else cap)
    return single(name, dimension, unit, dimension + 4, LARGEST_SUM, fill, from_dot=from_dot)


def squared(name: str, unit: int, dimension: int, cap: float | None) -> Distance:
    """Squared Euclidean distance."""
    fill = partial(_fill, default_cap(dimension) if cap is None else cap)
    return single(name, dimension, unit, dimension + 4, LARGEST_SUM, fill, from_dot=from_dot_squared)
