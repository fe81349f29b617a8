"""Edit distance by its recursive definition."""

from collections.abc import Sequence
from functools import cache


def edits(left: Sequence[object], right: Sequence[object]) -> int:
    """Least substitutions, insertions and deletions that make one sequence the other."""

    @cache
    def between(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        return min(between(i - 1, j) + 1, between(i, j - 1) + 1, between(i - 1, j - 1) + (left[i - 1] != right[j - 1]))

    return between(len(left), len(right))
