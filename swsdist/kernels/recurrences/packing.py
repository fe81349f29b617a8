"""How the cost and the document frames of a path share one integer.

``cost << frame_bits | document frames``: the smaller integer is the lower cost, and of equal costs the shorter path.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import methods as codes
from swsdist.kernels.scales import LONGEST_QUERY, MAX_DISTANCE

#: Packed states, flat, and their dtype.
State: TypeAlias = NDArray[np.int32 | np.int64]
StateType: TypeAlias = type[np.int32 | np.int64]


class Packing(NamedTuple):
    """How cost and frames share an integer for a query of a given length."""

    dtype: StateType
    frame_bits: int
    infinity: int


def packing(query_frames: int) -> Packing:
    """The narrowest state that holds any path of a query.

    A path costs at most 4095 N, so cost and frames need ceil(log2(4095 N + 1)) + ceil(log2(2 N + 1)) bits. Infinity,
    for cells that no path reaches, leaves room for the two distances that a step adds to it.

    Args:
        query_frames: N, at least 1.

    Raises:
        UserError: the query is longer than 2^20 frames.
    """
    frame_bits = int(2 * query_frames).bit_length()
    cost = MAX_DISTANCE * (query_frames + 2)
    for dtype in (np.int32, np.int64):
        infinity = (cost << frame_bits) + 1
        if 2 * infinity <= np.iinfo(dtype).max and query_frames <= LONGEST_QUERY:
            return Packing(dtype, frame_bits, infinity)
    raise codes.QUERY_TOO_LONG(frames=query_frames, use="the search", longest=LONGEST_QUERY)
