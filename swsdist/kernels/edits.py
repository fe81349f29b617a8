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
