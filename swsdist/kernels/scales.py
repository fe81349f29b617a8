"""Integer scales of distances, for planning and the config, which do not load the kernels.

A local distance has 12 bits. The integer that represents a distance of 1 is always a power of two
(`DistanceEntry.unit`), so weighted sums of distances are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from swsdist.core.codes import methods as codes
from swsdist.registry.registries import DISTANCES

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
        raise codes.WEIGHTS_TOO_UNEQUAL(terms=" + ".join(f"{weight} {name}" for name, weight in terms))
    return Weighted(weights, shift, finest >> shift)
