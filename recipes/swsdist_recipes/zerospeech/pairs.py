"""Pairs within groups, a block at a time: no list of all pairs is ever held."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from swsdist.core.arrays import Bools, Ints

#: Pairs a block has at most, but for a row with more partners than that.
BLOCK = 1 << 17

#: Two arrays of one length: the first and the second members of pairs.
Pairs = tuple[Ints, Ints]


def distinct(keys: Ints) -> Ints:
    """The different values, sorted."""
    keys = np.sort(keys)
    new = np.ones(len(keys), bool)
    new[1:] = keys[1:] != keys[:-1]
    return keys[new]


def among(keys: Ints, others: Ints) -> Bools:
    """Whether each key is one of others, which are sorted."""
    if not len(others):
        return np.zeros(len(keys), bool)
    at = np.minimum(np.searchsorted(others, keys), len(others) - 1)
    present: Bools = others[at] == keys
    return present


def counted(keys: Ints, weight: Ints) -> Pairs:
    """The different values, sorted, and the sum of the weights of each."""
    if not len(keys):
        return keys, weight
    order = np.argsort(keys)
    keys, weight = keys[order], weight[order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return keys[starts], np.add.reduceat(weight, starts)


def pairs_of_rows(group: Ints) -> Iterator[Pairs]:
    """All pairs i < j of rows of one group; `group` is sorted."""
    rows = len(group)
    later = np.searchsorted(group, group, "right") - np.arange(rows) - 1
    done = np.concatenate([[0], np.cumsum(later)])
    start = 0
    while start < rows:
        stop = max(start + 1, int(np.searchsorted(done, done[start] + BLOCK, "right")) - 1)
        first = np.repeat(np.arange(start, stop), later[start:stop])
        nth = np.arange(len(first)) - (done[first] - done[start])
        yield first, first + 1 + nth
        start = stop


def pairs_of_items(group: Ints, item: Ints) -> Iterator[Pairs]:
    """Pairs x < y of different items that share a group, each once.

    Args:
        group: of each row.
        item: of each row, from 0; an item may be in several groups, and in one of them several times.
    """
    items = int(item.max()) + 1 if len(item) else 1
    group, item = np.divmod(distinct(group * items + item), items)
    shared = np.bincount(item, minlength=items) > 1
    again = [np.zeros(0, np.int64)]
    for i, j in pairs_of_rows(group):
        x, y = item[i], item[j]
        repeated = shared[x] & shared[y]
        yield x[~repeated], y[~repeated]
        again.append(distinct(x[repeated] * items + y[repeated]))
    x, y = np.divmod(distinct(np.concatenate(again)), items)
    yield x, y


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
