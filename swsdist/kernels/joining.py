"""Join spans of several systems at one place, greedily, best first, with at most one span per system."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.compiled import compiled


@compiled(
    "void(int64[::1], float64[::1], int64[::1], int64[::1], int64[::1], int64, float64, boolean, int64[::1], int64[::1])"
)
def join(
    bounds: NDArray[np.int64],
    score: NDArray[np.float64],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    system: NDArray[np.int64],
    systems: int,
    share: float,
    by_middle: bool,
    order: NDArray[np.int64],
    owner: NDArray[np.int64],
) -> None:
    """Form places: each remaining best span starts one, and the best remaining span of each other system that meets it
    joins.

    The better of two spans has the higher score; ties are broken by the lower first, then last, then system. Two spans
    meet if they share more than a fraction of the shorter one; or if the midpoint of one lies in the other, both
    borders included.

    Args:
        bounds: int64 (groups + 1,), spans bounds[g]..bounds[g + 1] may be joined with each other only.
        score: float64 (spans,), finite.
        first, last: int64 (spans,), both inclusive.
        system: int64 (spans,), from 0.
        systems: number of systems.
        share: 0 to 1; unused with `by_middle`.
        by_middle: whether spans meet by their midpoints.
        order: int64 (spans,), written: the spans of each group, best first.
        owner: int64 (spans,), written: for each place in `order`, the place of the span it belongs to, or its own.
    """
    seen = np.empty(systems, np.bool_)
    for g in range(len(bounds) - 1):
        begin, end = bounds[g], bounds[g + 1]
        order[begin:end] = begin + np.argsort(-score[begin:end], kind="mergesort")
        for i in range(begin + 1, end):  # insertion sort: sorted by score, so only ties are exchanged
            row = order[i]
            j = i
            while j > begin:
                other = order[j - 1]
                if score[other] != score[row]:
                    break
                if first[other] != first[row]:
                    better = first[row] < first[other]
                elif last[other] != last[row]:
                    better = last[row] < last[other]
                else:
                    better = system[row] < system[other]
                if not better:
                    break
                order[j] = other
                j -= 1
            order[j] = row
        for i in range(begin, end):
            owner[i] = -1
        for i in range(begin, end):
            if owner[i] >= 0:
                continue
            owner[i] = i
            row = order[i]
            seen[:] = False
            seen[system[row]] = True
            left = systems - 1
            for j in range(i + 1, end):
                if left == 0:
                    break
                other = order[j]
                if owner[j] >= 0 or seen[system[other]]:
                    continue
                if by_middle:
                    # Twice the midpoints, as integers.
                    middle, other_middle = first[row] + last[row] + 1, first[other] + last[other] + 1
                    meets = (2 * first[other] <= middle <= 2 * (last[other] + 1)) or (
                        2 * first[row] <= other_middle <= 2 * (last[row] + 1)
                    )
                else:
                    common = min(last[row], last[other]) - max(first[row], first[other]) + 1
                    shorter = min(last[row] - first[row], last[other] - first[other]) + 1
                    meets = common > share * shorter
                if meets:
                    owner[j] = i
                    seen[system[other]] = True
                    left -= 1
