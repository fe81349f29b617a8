"""Numbers for equal rows, and for equal strings of symbols; no hashes, so nothing collides."""

from __future__ import annotations

import numpy as np

from swsdist.discovery.units import Ints


def ids(first: Ints, *more: Ints) -> Ints:
    """The rank of each row among the different rows, from 0; the arrays are columns of equal length."""
    key = np.unique(first, return_inverse=True)[1]
    for column in more:
        values, column = np.unique(column, return_inverse=True)
        key = np.unique(key * len(values) + column, return_inverse=True)[1]
    return key


def string_ids(symbol: Ints, first: Ints, last: Ints) -> Ints:
    """A number for each string ``symbol[first:last]``; equal strings have equal numbers, from 0."""
    length = last - first
    result = ids(length)
    longest = int(length.max()) if len(length) else 0
    for k in range(longest):
        # Strings of other lengths have other numbers already, so the end needs no mark of its own.
        live = np.flatnonzero(length > k)
        result[live] = _spread(result, live, symbol[first[live] + k])
    return ids(result)


def _spread(numbers: Ints, live: Ints, symbol: Ints) -> Ints:
    """Numbers of (number so far, symbol) of the live rows, beyond all numbers so far."""
    return int(numbers.max()) + 1 + ids(numbers[live], symbol)


def representatives(numbers: Ints) -> Ints:
    """The index of one row of each number, of numbers 0, 1, ..., n - 1 that all occur."""
    rows = np.zeros(int(numbers.max()) + 1 if len(numbers) else 0, np.int64)
    rows[numbers] = np.arange(len(numbers))
    return rows
