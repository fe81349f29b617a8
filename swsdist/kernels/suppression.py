"""Greedy suppression of overlapping spans, best first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.compiled import compiled


@compiled("void(int64[::1], int64[::1], int64[::1], float64, int64[::1])")
def claim(
    bounds: NDArray[np.int64],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    overlap: float,
    owner: NDArray[np.int64],
) -> None:
    """Each span is its own, unless a better one that is its own overlaps it by more than `overlap` of the shorter of the two.

    Args:
        bounds: int64 (groups + 1,), spans bounds[g]..bounds[g + 1] compete with each other only, best first.
        start, stop: int64 (spans,), first frame and the one after the last.
        overlap: 0 to 1.
        owner: int64 (spans,), is written: the best such span, or the span itself.
    """
    for g in range(len(bounds) - 1):
        for i in range(bounds[g], bounds[g + 1]):
            owner[i] = i
            for j in range(bounds[g], i):
                if owner[j] == j:
                    common = min(stop[i], stop[j]) - max(start[i], start[j])
                    if common > overlap * min(stop[i] - start[i], stop[j] - start[j]):
                        owner[i] = j
                        break
