"""The best local alignment of two stretches: begin and end of the like parts.

A cell (i, j) gains ``level - d[i, j]``: frames closer than `level` raise the score, others lower it. A path takes steps
(1,1), and, for `gap` each, (1,0) and (0,1), which gain nothing; it begins where its score would fall below 0 (Smith and
Waterman 1981, "Identification of common molecular subsequences"). Scores are integers. Of equal scores a step in both is
preferred to one in the first stretch, that to one in the second, and the end that comes first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.compiled import compiled


@compiled("void(int16[:,::1], int64, int64, int64, int64, int64[::1])")
def align_locally(
    distances: NDArray[np.int16], diagonal: int, band: int, level: int, gap: int, place: NDArray[np.int64]
) -> None:
    """Find the best path near a diagonal.

    Args:
        distances: int16 (N, M).
        diagonal: j - i of the middle of the band.
        band: greatest distance of j - i from that.
        level: distance that neither gains nor loses.
        gap: cost of a step in one stretch.
        place: int64 (5,), written: score, first and last + 1 of the first stretch, and of the second; all 0 if no cell gains.
    """
    rows, columns = distances.shape
    score = np.zeros(columns + 1, np.int64)
    begin = np.zeros((columns + 1, 2), np.int64)
    place[:] = 0
    for i in range(rows):
        before, before_i, before_j = np.int64(0), np.int64(0), np.int64(0)  # of (i - 1, j - 1)
        low, high = max(0, i + diagonal - band), min(columns, i + diagonal + band + 1)
        if low < high:
            before, before_i, before_j = score[low], begin[low, 0], begin[low, 1]
            score[low] = 0  # outside of the band
        for j in range(low, high):
            value, first_i, first_j = before, before_i, before_j
            if value <= 0:
                value, first_i, first_j = np.int64(0), np.int64(i), np.int64(j)
            value += level - distances[i, j]
            above, left = score[j + 1] - gap, score[j] - gap
            before, before_i, before_j = score[j + 1], begin[j + 1, 0], begin[j + 1, 1]
            if above > value:
                value, first_i, first_j = above, begin[j + 1, 0], begin[j + 1, 1]
            if left > value:
                value, first_i, first_j = left, begin[j, 0], begin[j, 1]
            score[j + 1] = max(value, 0)
            begin[j + 1, 0], begin[j + 1, 1] = first_i, first_j
            if value > place[0]:
                place[0] = value
                place[1], place[2], place[3], place[4] = first_i, i + 1, first_j, j + 1
