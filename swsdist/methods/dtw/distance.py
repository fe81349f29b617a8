"""The local distance of a config, and the normalisation of features before it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from swsdist.config.search import DistanceTerm, Search
from swsdist.core.errors import UserError, recast
from swsdist.features.statistics import Statistics
from swsdist.kernels.arithmetic import MAX_DISTANCE, weighted
from swsdist.kernels.distances.interface import Distance, Part, create, weighted_sum


def distance_of(search: Search, dimension: int) -> Distance:
    """The distance of a config, for features of a dimension.

    Raises:
        ConfigError: `streams` has columns that the features lack.
        UserError: the dimension is too large for a distance.
    """
    if not search.streams:
        (term,) = search.terms()
        return _made(term, dimension, "search.distance")
    parts = []
    for k, term in enumerate(search.terms()):
        stop = dimension if term.stop is None else term.stop
        part = _made(term, stop - term.first, f"search.streams[{k}].distance")
        parts.append(Part(part, term.first, stop, term.weight))
    return weighted_sum(parts, dimension, "search.streams")


def unit_of(search: Search) -> int:
    """The integer that represents a local distance of 1, or the range of a query frame's distances."""
    if search.row_range:
        return MAX_DISTANCE
    return weighted([(term.distance, term.weight) for term in search.terms()]).unit


def _made(term: DistanceTerm, dimension: int, where: str) -> Distance:
    try:
        return create(term.distance, dimension, term.options)
    except UserError as error:
        raise recast(error, type(error), where=where) from None


def offset_and_scale(search: Search, statistics: Statistics) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Offset and scale of frames for `Distance.prepare`, by the stream of each column.

    Columns that are in no stream are left as they are. Streams that share columns normalise them alike (the config
    refuses others).

    Args:
        search: the config.
        statistics: of all columns, mean and scatter float64 (..., dimension).
    """
    offset, scale = statistics.offset_and_scale("none")
    for term in search.terms():
        of_all = statistics.offset_and_scale(term.normalise)
        for stream_values, stream_statistics in zip((offset, scale), of_all, strict=True):
            stream_values[..., term.first : term.stop] = stream_statistics[..., term.first : term.stop]
    return offset, scale
