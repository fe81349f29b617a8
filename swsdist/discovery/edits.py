"""Levenshtein distances of many pairs of strings at once, unit costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsdist.discovery.units import Ints

#: Pairs of strings whose rows of distances are in memory at once.
_ROWS = 1 << 15


def distances(differ: np.ndarray) -> np.ndarray:
    """All distances of beginnings of strings of equal shape.

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


@dataclass(frozen=True)
class Strings:
    """Strings ``symbol[first:last]``, each once."""

    symbol: Ints
    first: Ints
    last: Ints

    @property
    def count(self) -> int:
        """Number of strings."""
        return len(self.first)

    @property
    def length(self) -> Ints:
        """Symbols of each string."""
        return self.last - self.first

    def distances(self, x: Ints, y: Ints) -> Ints:
        """Distances of pairs of strings."""
        length = self.length
        result = np.zeros(len(x), np.int64)
        widest = int(length.max()) + 1 if len(length) else 1
        shape = length[x] * widest + length[y]
        order = np.argsort(shape)
        for rows in np.split(order, np.flatnonzero(np.diff(shape[order])) + 1) if len(order) else []:
            for begin in range(0, len(rows), _ROWS):
                some = rows[begin : begin + _ROWS]
                result[some] = _of_one_shape(self._columns(x[some]), self._columns(y[some]))
        return result

    def _columns(self, strings: Ints) -> Ints:
        """Symbols of strings of one length, (length, strings)."""
        first = self.first[strings]
        length = int(self.last[strings[0]] - first[0])
        columns: Ints = self.symbol[first + np.arange(length)[:, None]]
        return columns


def _of_one_shape(a: Ints, b: Ints) -> Ints:
    """Distances of the columns of a, (n, pairs), to those of b, (m, pairs); pairs come last, so each step is one loop."""
    n, m = len(a), len(b)
    small = np.int8 if max(n, m) < 127 else np.int16
    row = np.repeat(np.arange(m + 1, dtype=small)[:, None], a.shape[1], axis=1)
    for i in range(n):
        before = row[0].copy()
        row[0] = i + 1
        for j in range(m):
            changed = before + (a[i] != b[j])
            before = row[j + 1].copy()
            np.minimum(changed, np.minimum(row[j], before) + small(1), out=row[j + 1])
    distance: Ints = row[-1].astype(np.int64)
    return distance
