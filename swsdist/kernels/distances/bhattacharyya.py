"""Distance of Bhattacharyya between posteriors: 1 - the cosine of their square roots.

The cosine of the square roots of two distributions is Bhattacharyya's coefficient, the sum of sqrt(q x): the square
roots have norm 1, but for what a frame's sum is away from 1, which is divided out. Fixed point, bound, map and error
are those of the cosine; since no product is negative, d is at most the unit. A frame that is all zero has distance 1 to
everything.

Source: Bhattacharyya 1943; as a local distance, Asaei et al. 2014 among others.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.distances.cosine import bound, from_dot, from_dot_fine, unit_norm
from swsdist.kernels.distances.interface import Distance, Prepared, Side, single
from swsdist.kernels.distances.probabilities import totals


def _fill(name: str, values: NDArray[np.float64], side: Side, where: str | None) -> Prepared:
    totals(values, name, where)
    out = np.empty(values.shape, np.float32)
    unit_norm(np.sqrt(values), 0.0, out)
    return Prepared(out, 0)


def plain(name: str, unit: int, dimension: int) -> Distance:
    """1 - the cosine of square roots."""
    return single(
        name, dimension, unit, dimension, bound(dimension), partial(_fill, name), from_dot=from_dot, fine=from_dot_fine
    )
