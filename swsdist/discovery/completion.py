"""Substring completion: which parts of two strings some cheapest way to edit one into the other aligns.

A pair of parts A[i:i2], B[j:j2] is completed if a cheapest path goes through (i, j) and (i2, j2):
``head(i, j) + mid(i, j -> i2, j2) + tail(i2, j2)`` is the whole distance. All costs are 1. Both parts have 3 to 20 phones.
Source: the ZeroSpeech 2017 description, P_disc*.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from swsdist.discovery.batches import Batch
from swsdist.discovery.edits import distances
from swsdist.discovery.units import Flags, Ints

#: Phones of a part.
SHORTEST, LONGEST = 3, 20

_FAR = np.int16(1 << 12)

#: (pairs, rows, columns), int16.
_Table = np.ndarray


class Parts(NamedTuple):
    """Completed pairs of parts, all with one end.

    Attributes:
        pair: row of the batch.
        begin: of the part of the shorter string; int64.
        other: of the part of the longer.
        ends: of both parts.
        equal: whether the parts are the same string.
    """

    pair: Ints
    begin: Ints
    other: Ints
    ends: tuple[int, int]
    equal: Flags


def completed(batch: Batch, least: int = SHORTEST) -> Iterator[Parts]:
    """The completed parts of a batch's pairs, each pair of parts once for each pair of strings; parts have `least` phones."""
    differ = batch.differ()
    head, tail = distances(differ), _tails(batch)
    distance = tail[:, :1, :1]
    on_path = head + tail == distance
    n, m = differ.shape[1:]
    above: list[_Table | None] = [None] * (m + 1)
    for i in range(n + 1):
        row: list[_Table | None] = []
        for j in range(m + 1):
            left, corner = row[j - 1] if j else None, above[j - 1] if j else None
            live = on_path[:, i, j]
            table = _middle(above[j], left, corner, differ[:, i - 1, j - 1] if i and j else None, i, j, len(differ))
            row.append(table if live.any() else None)
            if min(i, j) >= least and live.any():
                yield from _parts(table, head, tail[:, i, j], distance, live, (i, j), least)
        above = row


def _tails(batch: Batch) -> _Table:
    """Distances of the ends of strings from each place; far beyond a string."""
    turned: _Table = distances(batch.differ(backwards=True))
    n, m = batch.lengths
    rows, columns = (np.arange(size) for size in turned.shape[1:])
    n_left, m_left = n[:, None] - rows, m[:, None] - columns
    table: _Table = turned[
        np.arange(len(turned))[:, None, None], np.maximum(n_left, 0)[:, :, None], np.maximum(m_left, 0)[:, None]
    ]
    table[(n_left < 0)[:, :, None] | (m_left < 0)[:, None, :]] = _FAR
    return table


def _lowest(i: int) -> int:
    """The first place where a part that ends at i can begin."""
    return max(0, i - LONGEST)


def _middle(
    above: _Table | None, left: _Table | None, corner: _Table | None, differ: Flags | None, i: int, j: int, pairs: int
) -> _Table:
    """Distances from each place where parts that end at (i, j) can begin: (pairs, i - lowest + 1, j - lowest + 1)."""
    rows, columns = i - _lowest(i) + 1, j - _lowest(j) + 1
    table = np.full((pairs, rows, columns), _FAR, np.int16)
    table[:, -1, -1] = 0
    # A neighbour's table begins one place before where its end is one before and a part can have no more phones.
    if above is not None:
        _lower(table[:, : rows - 1, :], above[:, 1 - rows :, :], 1)
    if left is not None:
        _lower(table[:, :, : columns - 1], left[:, :, 1 - columns :], 1)
    if corner is not None and differ is not None:
        _lower(table[:, : rows - 1, : columns - 1], corner[:, 1 - rows :, 1 - columns :], differ[:, None, None])
    return table


def _lower(table: _Table, other: _Table, cost: int | Flags) -> None:
    np.minimum(table, other + np.int16(cost) if isinstance(cost, int) else other + cost, out=table)


def _parts(
    table: _Table, head: _Table, tail: np.ndarray, distance: np.ndarray, live: Flags, ends: tuple[int, int], least: int
) -> Iterator[Parts]:
    """The parts with these ends."""
    rows = np.flatnonzero(live)
    i, j = ends
    low, other = _lowest(i), _lowest(j)
    middle = table[rows, : i - least - low + 1, : j - least - other + 1]
    before = head[rows, low : i - least + 1, other : j - least + 1]
    pair, row, column = np.nonzero(before + middle + tail[rows, None, None] == distance[rows])
    if len(pair):
        yield Parts(rows[pair], row + low, column + other, ends, middle[pair, row, column] == 0)
