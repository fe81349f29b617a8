"""These integers stand for distances; planning and the config need them without loading the kernels.

A local distance has 12 bits. The integer that stands for a distance of 1 is a power of two for all (`DistanceEntry.unit`), so
that weighted sums of distances are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from swsdist.core.codes import kernels as codes
from swsdist.registry.registries import DISTANCES

#: Largest local distance.
MAX_DISTANCE = 4095

#: Frames of a query: what a packed 64-bit state holds with ease.
LONGEST_QUERY = 1 << 20


class Weighted(NamedTuple):
    """How a weighted sum of distances becomes 12 bits: ``(sum of weight * d + (1 << shift >> 1)) >> shift``.

    Attributes:
        weights: of the integers d, so that they count by their values.
        shift: the least that holds the largest sum in 12 bits.
        unit: the integer that stands for a sum of 1.
    """

    weights: tuple[int, ...]
    shift: int
    unit: int


def weighted(terms: Sequence[tuple[str, int]]) -> Weighted:
    """Weights, shift and unit of a sum.

    Args:
        terms: (distance, weight), at least one; a weight is at least 1 and counts the distance's value, 1 being 1.

    Raises:
        ConfigError: the weights are so unlike that the sum has no 12 bits.
    """
    finest = max(DISTANCES[name].unit for name, _ in terms)
    weights = tuple(weight * (finest // DISTANCES[name].unit) for name, weight in terms)
    shift = (sum(weights) - 1).bit_length()
    if finest >> shift == 0:
        raise codes.WEIGHTS_TOO_UNEQUAL(terms=" + ".join(f"{weight} {name}" for name, weight in terms))
    return Weighted(weights, shift, finest >> shift)
