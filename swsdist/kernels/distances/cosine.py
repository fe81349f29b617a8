"""Distances that are a cosine of something: of frames, of square roots of posteriors, of logarithms of posteriors.

**Cosine**: 1 - cosine of the angle between two frames, and its square, its exponential, and -ln of the cosine.

A frame is divided by its norm, multiplied by 2^11.5 and rounded. A partial sum of a product of two such frames is at
most the product of their norms (Cauchy-Schwarz), so at most (2^11.5 + sqrt(D)/2)^2. The product of the two scales is
2^23, so ``d = rint(2048 - dot / 4096)``, halves to even: 2048 is a distance of 1. The square is ``(d * d + 2048) >>
12``: 1024 is 1.

A zero vector has distance 1 to everything. Error of a distance: at most sqrt(D) / 2^11.5 from the rounding of the
frames, and 1/4096 from that of d.

`cosine-exp` is exp(1 - cos) - 1, 512 for 1, as SUPERB's query-by-example task takes it: at most e^2 - 1, 3271. With x
= 1 - cos, e^x = 2^k 2^f, and 2^f ~ 1 + f (c1 + f (c2 + f (c3 + f c4))), the polynomial of that form that is nearest
at worst and right at both ends; so the map never rises with the cosine. Error of the map: at most 0.71/512.

`cosine-neg-log` is -ln cos, 512 for one nat; a cosine below 4e-4 counts as 4e-4, since smaller ones are rounding. It is
the map of `inner-product` with another factor. Error of the map: at most 0.58/512.

`unit_norm`, `from_dot` and `from_dot_squared` serve all distances that are a cosine of something.

**Bhattacharyya**, between posteriors: 1 - the cosine of their square roots.

The cosine of the square roots of two distributions is Bhattacharyya's coefficient, the sum of sqrt(q x): the square
roots have norm 1, but for what a frame's sum is away from 1, which is divided out. Fixed point, bound, map and error
are those of the cosine; since no product is negative, d is at most the unit. A frame that is all zero has distance 1 to
everything.

Source: Bhattacharyya 1943; as a local distance, Asaei et al. 2014 among others.

**Logarithms** of posteriors, ln(p + floor), minus each frame's mean, and its square.

After subtracting the mean, a frame's logarithms do not depend on a factor of the probabilities (Aitchison's centred
log-ratios), and the many classes at the floor do not make all frames similar. Fixed point, bound, map and error are
those of the cosine. A frame of equal or zero probabilities becomes a zero vector: distance 1 to everything.

The mean of a *document* or speaker cannot be subtracted here, because the store's statistics are those of p, not of ln
p. To subtract it (a large gain for short queries), store ln p and use `cosine` with `normalise: mean`.
"""

from __future__ import annotations

from functools import partial
from math import floor, sqrt

import numba
import numpy as np

from swsdist.core.arrays import Floats, Singles
from swsdist.kernels.arithmetic import Value, least, most
from swsdist.kernels.compiled import compiled
from swsdist.kernels.distances.interface import Distance, Prepared, Side, below_24_bits, compiled_ln, single, totals

#: Norm of a prepared frame, 2^11.5.
NORM = 2.0**11.5

#: Frames whose sums of squares are computed side by side.
_TOGETHER = 8


def bound(dimension: int) -> int:
    """No partial sum of the product of two frames of `unit_norm` is larger (Cauchy-Schwarz)."""
    return floor((NORM + sqrt(dimension) / 2) ** 2)


@compiled("void(float64[:,::1], float64, float32[:,::1])")
def unit_norm(values: Floats, nothing: float, out: Singles) -> None:
    """Bring frames to norm 2^11.5 and round them.

    Args:
        values: float64 (frames, D).
        nothing: a frame whose norm is no larger is a zero vector.
        out: float32 (frames, D), is written.
    """
    frames, dimension = values.shape
    squares = np.zeros(frames)
    # The sum of a frame is in the order of the index; those of some frames advance together, because each waits for itself.
    for first in range(0, frames, _TOGETHER):
        if first + _TOGETHER <= frames:
            for k in range(dimension):
                for t in range(first, first + _TOGETHER):
                    squares[t] = squares[t] + values[t, k] * values[t, k]
        else:
            for t in range(first, frames):
                for k in range(dimension):
                    squares[t] = squares[t] + values[t, k] * values[t, k]
    for t in range(frames):
        norm = np.sqrt(squares[t])
        if norm <= nothing:
            out[t] = 0.0
        else:
            for k in range(dimension):
                # `/` tests for zero, which keeps the loop out of vector registers.
                out[t, k] = np.rint(np.divide(values[t, k], norm) * NORM)


def from_dot(dot: Value) -> Value:
    """``rint(2048 - dot / 4096)`` within 0..4095; halves go to even, since an odd quotient adds one before the cut."""
    twice = 8388608 - dot
    return least(most((twice + 2047 + ((twice >> 12) & 1)) >> 12, 0), 4095)


def from_dot_squared(dot: Value) -> Value:
    """The square of `from_dot`, in units of 1/1024."""
    twice = 8388608 - dot
    d = least(most((twice + 2047 + ((twice >> 12) & 1)) >> 12, 0), 4095)
    return (d * d + 2048) >> 12


def from_dot_fine(dot: Value) -> Value:
    """The same in units of 1/16384, within 0..32767."""
    twice = 8388608 - dot
    return least(most((twice + 255 + ((twice >> 9) & 1)) >> 9, 0), 32767)


def _exp_less_1(dot: Value) -> Value:
    """exp(1 - cos) - 1, 2^21 for 1."""
    x = least(most(8388608 - dot, 0), 16777216)  # 2^23 for 1
    # x / ln 2, 2^16 for 1: its fraction, and the rest.
    t = ((x + 64) >> 7) + (((x >> 9) * 58025 + 16384) >> 15)
    f = t & 65535
    series = 852 + ((222 * f) >> 16)
    series = 3955 + ((series * f) >> 16)
    series = 11355 + ((series * f + 32768) >> 16)
    power = 2097152 + ((series * f) >> 9)  # 2^f
    return (power << (t >> 16)) - 2097152


def _log_of_cosine(dot: Value) -> Value:
    """-ln cos, 2^20 for 1; a cosine of less than 3355 / 2^23 = 4e-4 counts as that."""
    return most(below_24_bits(least(most(dot, 3355), 8388608)) - 726817, 0)


for _function in (_exp_less_1, _log_of_cosine):
    numba.extending.register_jitable(_function)


def from_dot_exp(dot: Value) -> Value:
    """exp(1 - cos) - 1, 512 for 1, within 0..3271."""
    return (_exp_less_1(dot) + 2048) >> 12


def from_dot_exp_fine(dot: Value) -> Value:
    """The same, 4096 for 1."""
    return (_exp_less_1(dot) + 256) >> 9


def from_dot_log(dot: Value) -> Value:
    """-ln cos, 512 for 1, within 0..4006."""
    return (_log_of_cosine(dot) + 1024) >> 11


def from_dot_log_fine(dot: Value) -> Value:
    """The same, 4096 for 1."""
    return (_log_of_cosine(dot) + 128) >> 8


def _fill(values: Floats, side: Side, where: str | None) -> Prepared:
    out = np.empty(values.shape, np.float32)
    unit_norm(values, 0.0, out)
    return Prepared(out, 0)


def plain(name: str, unit: int, dimension: int) -> Distance:
    """Cosine distance."""
    return single(name, dimension, unit, dimension, bound(dimension), _fill, from_dot=from_dot, fine=from_dot_fine)


def squared(name: str, unit: int, dimension: int) -> Distance:
    """Its square."""
    return single(name, dimension, unit, dimension, bound(dimension), _fill, from_dot=from_dot_squared)


def exponential(name: str, unit: int, dimension: int) -> Distance:
    """exp(1 - cos) - 1."""
    return single(
        name, dimension, unit, dimension, bound(dimension), _fill, from_dot=from_dot_exp, fine=from_dot_exp_fine
    )


def negative_log(name: str, unit: int, dimension: int) -> Distance:
    """-ln cos."""
    return single(
        name, dimension, unit, dimension, bound(dimension), _fill, from_dot=from_dot_log, fine=from_dot_log_fine
    )


def _bhattacharyya_fill(name: str, values: Floats, side: Side, where: str | None) -> Prepared:
    totals(values, name, where)
    out = np.empty(values.shape, np.float32)
    unit_norm(np.sqrt(values), 0.0, out)
    return Prepared(out, 0)


def bhattacharyya(name: str, unit: int, dimension: int) -> Distance:
    """1 - the cosine of square roots."""
    return single(
        name,
        dimension,
        unit,
        dimension,
        bound(dimension),
        partial(_bhattacharyya_fill, name),
        from_dot=from_dot,
        fine=from_dot_fine,
    )


#: Centred logarithms of no larger norm are rounding errors of equal probabilities.
NOTHING = 1e-6


@compiled("void(float64[:,::1], float64)")
def _centred_logarithms(values: Floats, floor: float) -> None:
    frames, dimension = values.shape
    for t in range(frames):
        total = 0.0
        for k in range(dimension):
            values[t, k] = compiled_ln(values[t, k] + floor)
            total = total + values[t, k]
        mean = total / dimension
        for k in range(dimension):
            values[t, k] = values[t, k] - mean


def _log_posterior_fill(name: str, floor: float, values: Floats, side: Side, where: str | None) -> Prepared:
    totals(values, name, where)
    _centred_logarithms(values, floor)
    out = np.empty(values.shape, np.float32)
    unit_norm(values, NOTHING, out)
    return Prepared(out, 0)


def log_posterior(name: str, unit: int, dimension: int, floor: float) -> Distance:
    """1 - cosine of centred logarithms."""
    fill = partial(_log_posterior_fill, name, floor)
    return single(name, dimension, unit, dimension, bound(dimension), fill, from_dot=from_dot, fine=from_dot_fine)


def log_posterior_squared(name: str, unit: int, dimension: int, floor: float) -> Distance:
    """The square of `log_posterior`."""
    fill = partial(_log_posterior_fill, name, floor)
    return single(name, dimension, unit, dimension, bound(dimension), fill, from_dot=from_dot_squared)
