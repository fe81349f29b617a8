"""Edit distances between sequences of symbols."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Ints
from swsdist.kernels.compiled import compiled


@compiled("int32[::1](int32[::1], int32[::1], int64[::1])")
def edits_to_all(pattern: NDArray[np.int32], symbols: NDArray[np.int32], starts: Ints) -> NDArray[np.int32]:
    """Least substitutions, insertions and deletions between a sequence and each of many.

    Args:
        pattern: int32.
        symbols: int32, the sequences one after the other.
        starts: int64 (sequences + 1,), the first symbol of each.

    Returns:
        int32 (sequences,).
    """
    result = np.empty(len(starts) - 1, np.int32)
    row = np.empty(len(pattern) + 1, np.int32)
    for k in range(len(result)):
        for i in range(len(row)):
            row[i] = i
        for j in range(starts[k], starts[k + 1]):
            diagonal = row[0]
            row[0] += 1
            for i in range(len(pattern)):
                change = diagonal + (0 if pattern[i] == symbols[j] else 1)
                diagonal = row[i + 1]
                row[i + 1] = min(change, row[i] + 1, diagonal + 1)
        result[k] = row[-1]
    return result


#: Costs of two unlike symbols as a pair, of a symbol alone, and of each stretch of those.
UNLIKE, ALONE, STRETCH = 2, 1, 2


@compiled("int64[::1](int32[::1], int32[::1])")
def cheapest_pairs(pattern: NDArray[np.int32], other: NDArray[np.int32]) -> Ints:
    """Which symbol of another sequence stands for each of one, where symbols without one are in few stretches (Gotoh 1982).

    Args:
        pattern: int32 (n,).
        other: int32 (m,); n x m bytes are used.

    Returns:
        int64 (n,): a place in `other`, rising; -1: none. Of all, `UNLIKE`, `ALONE` and `STRETCH` cost least.
    """
    rows, columns = len(pattern), len(other)
    # What a path ends with: 0: both; 1: a symbol of the pattern alone; 2: of the other. What comes before each is in two bits.
    before = np.zeros((rows + 1, columns + 1), np.uint8)
    costs = np.full((columns + 1, 3), 1 << 30)
    costs[0, 0] = 0
    diagonal, here = np.empty(3, np.int64), np.empty(3, np.int64)
    for i in range(rows + 1):
        for j in range(columns + 1):
            if i == j == 0:
                diagonal[:] = costs[0]
                continue
            here[:] = 1 << 30
            steps = 0
            for state in range(3):
                if (i == 0 and state != 2) or (j == 0 and state != 1):
                    continue
                best, source = 1 << 30, 0
                for last in range(3):
                    if state == 0:
                        cost = diagonal[last] + (0 if pattern[i - 1] == other[j - 1] else UNLIKE)
                    else:
                        cost = (costs[j, last] if state == 1 else costs[j - 1, last]) + ALONE
                        cost += 0 if last == state else STRETCH
                    if cost < best:
                        best, source = cost, last
                here[state] = best
                steps |= source << (2 * state)
            diagonal[:] = costs[j]
            costs[j] = here
            before[i, j] = steps
    result = np.full(rows, -1)
    i, j, state = rows, columns, int(np.argmin(costs[columns]))
    while i > 0:
        source = (before[i, j] >> (2 * state)) & 3
        if state != 2:
            i -= 1
        if state != 1:
            j -= 1
        if state == 0:
            result[i] = j
        state = source
    return result
