"""Edit distances of many pairs of phone strings, and sums of normalised ones."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from swsdist.discovery.modes.pairs import counted
from swsdist.discovery.units import Ints

#: Pairs of strings whose rows of distances are in memory at once.
_ROWS = 1 << 15


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
        """Levenshtein distances of pairs of strings, unit costs."""
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


@dataclass
class PairCounts:
    """How many pairs of fragments there are of each pair of strings.

    Attributes:
        strings: number of different strings.
        keys: ``x * strings + y`` of pairs of strings x <= y, sorted.
        weight: pairs of each.
    """

    strings: int
    keys: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    weight: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, x: Ints, y: Ints) -> None:
        """Count pairs of fragments by their strings."""
        keys = np.minimum(x, y) * self.strings + np.maximum(x, y)
        keys, weight = counted(keys, np.ones(len(keys), np.int64))
        self.keys, self.weight = counted(np.concatenate([self.keys, keys]), np.concatenate([self.weight, weight]))
