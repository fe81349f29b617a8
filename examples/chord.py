"""A local distance: a quarter of the squared chord between unit vectors, (1 - cosine) / 2.

A zero vector is at 1/2 from everything.
"""

from __future__ import annotations

import numpy as np

from swsdist.core.arrays import Floats
from swsdist.kernels.arithmetic import Value, least, most
from swsdist.kernels.distances.cosine import bound, unit_norm
from swsdist.kernels.distances.interface import Distance, Prepared, single
from swsdist.registry.entries import DistanceEntry


def from_dot(dot: Value) -> Value:
    """The distance, 0 to 4095, of a dot product: 4095 for opposite vectors.

    It is compiled for CPU and GPU, so it has only + - * << >> &, least and most, within 32 bits.
    """
    return least(most((8388608 - dot + 2048) >> 12, 0), 4095)


def fill(values: Floats, side: str, where: str | None) -> Prepared:
    """Frames of norm 2^11.5, rounded, from normalised features."""
    out = np.empty(values.shape, np.float32)
    unit_norm(values, 0.0, out)
    return Prepared(out, 0)


def chord(name: str, unit: int, dimension: int) -> Distance:
    """The distance; Cauchy-Schwarz bounds the sums, as for the cosine."""
    return single(name, dimension, unit, dimension, bound(dimension), fill, from_dot=from_dot)


#: How the distance is registered.
DISTANCE = DistanceEntry(f"{__name__}:chord", version=1, unit=4096)
