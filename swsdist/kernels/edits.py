"""Edit distances between sequences of symbols."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.compiled import compiled


@compiled("int32[::1](int32[::1], int32[::1], int64[::1])")
def edits_to_all(
    pattern: NDArray[np.int32], symbols: NDArray[np.int32], starts: NDArray[np.int64]
) -> NDArray[np.int32]:
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


@compiled("int64[::1](int32[::1], int32[::1])")
def pairs_of_least_edits(pattern: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.int64]:
    """Which symbol of another sequence stands for each of one, by the fewest substitutions, insertions and deletions.

    Args:
        pattern: int32 (n,).
        other: int32 (m,); n x m bytes are used.

    Returns:
        int64 (n,): a place in `other`, rising; -1: a deletion.
    """
    rows, columns = len(pattern), len(other)
    move = np.zeros((rows + 1, columns + 1), np.uint8)  # 0: both; 1: a symbol of the pattern alone; 2: of the other
    move[1:, 0], move[0, 1:] = 1, 2
    row = np.arange(columns + 1)
    for i in range(rows):
        diagonal = row[0]
        row[0] = i + 1
        for j in range(columns):
            best, step = diagonal + (0 if pattern[i] == other[j] else 1), 0
            diagonal = row[j + 1]
            if diagonal + 1 < best:
                best, step = diagonal + 1, 1
            if row[j] + 1 < best:
                best, step = row[j] + 1, 2
            row[j + 1], move[i + 1, j + 1] = best, step
    result = np.full(rows, -1)
    i, j = rows, columns
    while i > 0:
        step = move[i, j]
        if step != 2:
            i -= 1
        if step != 1:
            j -= 1
        if step == 0:
            result[i] = j
    return result
