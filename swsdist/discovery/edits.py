"""Levenshtein distances of many pairs of strings of equal shape at once."""

from __future__ import annotations

import numpy as np

from swsdist.discovery.units import Ints


def distances(differ: np.ndarray) -> np.ndarray:
    """All distances of beginnings, unit costs.

    Args:
        differ: whether symbol i of the one string is another than symbol j of the other; (pairs, n, m), bool.

    Returns:
        (pairs, n + 1, m + 1), int16; the last of each is the distance of the strings.
    """
    pairs, n, m = differ.shape
    table = np.zeros((pairs, n + 1, m + 1), np.int16)
    table[:, :, 0] = np.arange(n + 1)
    table[:, 0, :] = np.arange(m + 1)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            gap = np.minimum(table[:, i - 1, j], table[:, i, j - 1]) + 1
            table[:, i, j] = np.minimum(gap, table[:, i - 1, j - 1] + differ[:, i - 1, j - 1])
    return table


def rows_of(symbol: Ints, first: Ints, length: int) -> Ints:
    """Strings of one length as rows, (strings, length)."""
    strings: Ints = symbol[first[:, None] + np.arange(length)]
    return strings
