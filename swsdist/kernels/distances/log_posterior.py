"""Cosine distance between logarithms of posteriors, ln(p + floor), each frame's own mean removed, and its square.

Without its mean a frame's logarithms do not depend on what the probabilities are multiplied by (Aitchison's centred
log-ratios), and the many classes that lie at the floor do not make all frames alike. Fixed point, bound, map and error
are those of the cosine. A frame whose probabilities are all alike, or all zero, is a zero vector after that: distance 1
to everything.

The mean of a *document* or speaker cannot be removed here: the store's statistics are those of p, not of ln p. Where it
shall be (it does much for short queries), let the store hold ln p; then `cosine` with `normalise: mean` is the
distance.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.compiled import compiled
from swsdist.kernels.distances.cosine import bound, from_dot, from_dot_squared, unit_norm
from swsdist.kernels.distances.interface import Distance, Prepared, Side, single
from swsdist.kernels.distances.logarithm import compiled_ln
from swsdist.kernels.distances.probabilities import totals

#: Frames whose centred logarithms have no larger norm say nothing: it is what rounding leaves of equal probabilities.
NOTHING = 1e-6


@compiled("void(float64[:,::1], float64)")
def _centred_logarithms(values: NDArray[np.float64], floor: float) -> None:
    frames, dimension = values.shape
    for t in range(frames):
        total = 0.0
        for k in range(dimension):
            values[t, k] = compiled_ln(values[t, k] + floor)
            total = total + values[t, k]
        mean = total / dimension
        for k in range(dimension):
            values[t, k] = values[t, k] - mean


def _fill(name: str, floor: float, values: NDArray[np.float64], side: Side, where: str | None) -> Prepared:
    totals(values, name, where)
    _centred_logarithms(values, floor)
    out = np.empty(values.shape, np.float32)
    unit_norm(values, NOTHING, out)
    return Prepared(out, 0)


def plain(name: str, unit: int, dimension: int, floor: float) -> Distance:
    """1 - cosine of centred logarithms."""
    fill = partial(_fill, name, floor)
    return single(name, dimension, unit, dimension, bound(dimension), fill, from_dot=from_dot)


def squared(name: str, unit: int, dimension: int, floor: float) -> Distance:
    """Its square."""
    fill = partial(_fill, name, floor)
    return single(name, dimension, unit, dimension, bound(dimension), fill, from_dot=from_dot_squared)
