"""Cosine distance between logarithms of posteriors, ln(p + floor), minus each frame's mean, and its square.

After subtracting the mean, a frame's logarithms do not depend on a factor of the probabilities (Aitchison's centred
log-ratios), and the many classes at the floor do not make all frames similar. Fixed point, bound, map and error are
those of the cosine. A frame of equal or zero probabilities becomes a zero vector: distance 1 to everything.

The mean of a *document* or speaker cannot be subtracted here, because the store's statistics are those of p, not of ln
p. To subtract it (a large gain for short queries), store ln p and use `cosine` with `normalise: mean`.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.compiled import compiled
from swsdist.kernels.distances.cosine import bound, from_dot, from_dot_fine, from_dot_squared, unit_norm
from swsdist.kernels.distances.interface import Distance, Prepared, Side, single
from swsdist.kernels.distances.logarithm import compiled_ln
from swsdist.kernels.distances.probabilities import totals

#: Centred logarithms of no larger norm are rounding errors of equal probabilities.
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
    return single(name, dimension, unit, dimension, bound(dimension), fill, from_dot=from_dot, fine=from_dot_fine)


def squared(name: str, unit: int, dimension: int, floor: float) -> Distance:
    """The square of `plain`."""
    fill = partial(_fill, name, floor)
    return single(name, dimension, unit, dimension, bound(dimension), fill, from_dot=from_dot_squared)
