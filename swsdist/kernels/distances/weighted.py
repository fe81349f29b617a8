"""Weighted sums of distances over streams of columns: two nets side by side, or posteriors beside cepstra.

The value of the sum is the sum of weight * distance, each distance in its own terms (1 is 1 whatever its unit). All
units are powers of two, so it is exact in integers: see `kernels.scales.weighted`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import methods as codes
from swsdist.kernels.distances.interface import Distance, Prepared, Side
from swsdist.kernels.scales import weighted


class Part(NamedTuple):
    """A distance over the feature columns first <= column < stop, and its weight, at least 1."""

    distance: Distance
    first: int
    stop: int
    weight: int


def weighted_sum(parts: Sequence[Part], dimension: int, where: str = "streams") -> Distance:
    """The distance that is a weighted sum of others. Columns may be in several parts, or in none.

    Args:
        parts: at least one; their distances are single, not sums.
        dimension: of the features.
        where: what errors call the parts.

    Raises:
        ConfigError: a part has columns that the features lack.
    """
    for k, part in enumerate(parts):
        if not 0 <= part.first < part.stop <= dimension:
            raise codes.STREAM_COLUMNS_OUTSIDE(
                where=f"{where}[{k}].columns", dimension=dimension, first=part.first, stop=part.stop
            )
    total = weighted([(part.distance.name, part.weight) for part in parts])
    streams = []
    columns = 0
    for part, weight in zip(parts, total.weights, strict=True):
        (stream,) = part.distance.streams
        streams.append(stream._replace(first=columns, stop=columns + stream.stop, weight=weight))
        columns += part.distance.columns
    name = " + ".join(f"{part.weight} {part.distance.name}" for part in parts)
    return Distance(name, dimension, total.unit, columns, tuple(streams), total.shift, partial(_fill, tuple(parts)))


def _fill(parts: tuple[Part, ...], values: NDArray[np.float64], side: Side, where: str | None) -> Prepared:
    prepared = [
        part.distance.fill(np.array(values[:, part.first : part.stop], order="C"), side, where) for part in parts
    ]
    return Prepared(
        np.concatenate([item.frames for item in prepared], axis=1), sum(item.saturated for item in prepared)
    )
