"""Euclidean distance in units of a cap on the norm of frames, and its square.

A frame is multiplied by 2^11.5 / cap and rounded. One that is longer than the cap (less sqrt(D)/2 of the fixed point's
steps, so that its norm is below 2^11.5 after rounding) is shortened to it, and counted as saturated. Half the squared
norm, ``a = |X|^2 >> 1``, stands in two columns of its own, high * 2^11 + low::

    query     X,  -high,  -low,  -2^11,  -1
    document  X,   2^11,     1,   high, low       z = -dot = a + a' - X X' ~ 2^22 |q - x|^2 / cap^2

An odd norm loses half a step, so z of two equal frames is 0 or -1. 2^23 stands for cap^2, so ``(z + 2048) >> 12`` is
the squared distance, 1024 for 1 (the cap's square), and sqrt(z) is the distance, 2048 for 1 (the cap). The square root
is a table: 64 values of z share an entry, that of their middle; z <= 0 has one of its own, 0.

Bound: a partial sum of X X' is at most 2^23 either way (Cauchy-Schwarz); the terms of the norms are negative and sum to
-2^22 - 2^22 at most: 2^24.

Error, in units of the cap: of the distance sqrt(D) / 2^11.5 from the rounding of the frames, 1/4096 from that of d, and
5/2048 from the table (where z < 64; 1/4096 from z = 4096 on); of the square 2 r e + e^2 + 1/2048, r being the distance
and e that first error. A zero vector is a point like any other; two of them are at distance 0.
"""

from __future__ import annotations

from functools import partial
from math import sqrt
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.arithmetic import least, most
from swsdist.kernels.distances.interface import LARGEST_SUM, Distance, Prepared, Side, single

#: What stands for the cap, 2^11.5.
OF_CAP = 2.0**11.5

#: Values of z that share an entry of the table, as a shift.
SHIFT = 6

#: The low part of half a squared norm has so many bits.
LOW_BITS = 11


def default_cap(dimension: int) -> float:
    """Well above the norm of features of variance 1, which is sqrt(D) on average: 2.5 sqrt(D)."""
    return 2.5 * sqrt(dimension)


@numba.njit("int64(float64[:,::1], float64, boolean, float32[:,::1])", nogil=True, cache=True)
def _fixed(values: Any, cap: float, query: bool, out: Any) -> int:
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
        whole = 0
        for k in range(dimension):
            x = np.rint(values[t, k] * factor)
            out[t, k] = x
            whole += int(x) * int(x)
        high, low = (whole >> 1) >> LOW_BITS, (whole >> 1) & ((1 << LOW_BITS) - 1)
        if query:
            out[t, dimension], out[t, dimension + 1] = -high, -low
            out[t, dimension + 2], out[t, dimension + 3] = -(1 << LOW_BITS), -1
        else:
            out[t, dimension], out[t, dimension + 1] = 1 << LOW_BITS, 1
            out[t, dimension + 2], out[t, dimension + 3] = high, low
    return saturated


def _fill(cap: float, values: NDArray[np.float64], side: Side, where: str | None) -> Prepared:
    out = np.empty((len(values), values.shape[1] + 4), np.float32)
    saturated = int(_fixed(values, cap, side == "query", out))
    return Prepared(out, saturated)


def from_dot_squared(dot: Any) -> Any:
    """``(z + 2048) >> 12`` within 0..4095, z = -dot."""
    return least(most((2048 - dot) >> 12, 0), 4095)


def table() -> NDArray[np.int16]:
    """rint(sqrt(z)) within 0..4095, for the places ``(2^24 - z) >> 6``; float64's square root decides it exactly."""
    # Place i is for z of 64 j - 63 to 64 j, j = 2^18 - i.
    j = np.arange(LARGEST_SUM >> SHIFT, -1, -1)
    middle = np.where(j > 0, (j << SHIFT) - (1 << SHIFT >> 1), 0)
    return np.minimum(np.rint(np.sqrt(middle.astype(np.float64))), 4095).astype(np.int16)


def plain(name: str, unit: int, dimension: int, cap: float | None = None) -> Distance:
    """Euclidean distance."""
    fill = partial(_fill, default_cap(dimension) if cap is None else cap)
    return single(
        name,
        dimension,
        unit,
        dimension + 4,
        LARGEST_SUM,
        fill,
        table=table(),
        table_offset=LARGEST_SUM,
        table_shift=SHIFT,
    )


def squared(name: str, unit: int, dimension: int, cap: float | None = None) -> Distance:
    """Its square."""
    fill = partial(_fill, default_cap(dimension) if cap is None else cap)
    return single(name, dimension, unit, dimension + 4, LARGEST_SUM, fill, from_dot=from_dot_squared)
