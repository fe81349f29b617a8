"""Substring completion: which parts of two strings some cheapest way to edit one into the other aligns.

A pair of parts A[i:i2], B[j:j2] is completed if a cheapest path goes through (i, j) and (i2, j2):
``head(i, j) + mid(i, j -> i2, j2) + tail(i2, j2)`` is the whole distance. All costs are 1. Both parts have 3 to 20 phones.
Source: the ZeroSpeech 2017 description, P_disc*.

P_all: pairs of equal phone strings of 3 to 20 phones in runs. Only their members are needed, and they are never listed as
pairs.

A span is a member if its string occurs once more, without overlap: in another document, or before or after it. A string of
n + 1 phones that recurs begins with one of n that recurs, so the candidates shrink with the length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from swsdist.discovery.cells import Block, Kinds, distances
from swsdist.discovery.units import Flags, Ints, ids, partnered

#: Cells of the tables of a batch.
_CELLS = 1 << 17
#: Lengths are rounded up to multiples of this: padding costs less than batches.
_STEP = 2


@dataclass(frozen=True)
class Batch:
    """Kinds of pairs, their strings padded with symbols that equal no other.

    Attributes:
        kinds: index of each.
        shorter: (pairs, n), int64.
        longer: (pairs, m), int64.
        lengths: of the strings without padding, (pairs,) each.
    """

    kinds: Ints
    shorter: Ints
    longer: Ints
    lengths: tuple[Ints, Ints]

    def differ(self, *, backwards: bool = False) -> np.ndarray:
        """Whether symbols differ, (pairs, n, m); strings backwards begin with their last symbol."""
        shorter, longer = self.shorter, self.longer
        if backwards:
            shorter, longer = (_turned(*item) for item in zip((shorter, longer), self.lengths, strict=True))
        result: np.ndarray = shorter[:, :, None] != longer[:, None, :]
        return result


def batches(block: Block, kinds: Kinds, least: int) -> Iterator[Batch]:
    """The kinds of pairs whose strings both have some length.

    Args:
        block: with the spans.
        kinds: of pairs.
        least: phones of both strings.
    """
    spans, symbol = block.scene.spans, block.scene.gold.phones.symbol
    shorter, longer = (spans.last[which] - spans.first[which] for which in (kinds.shorter, kinds.longer))
    chosen = np.flatnonzero(shorter >= least)
    wide = 1 << 20
    shape = -(-shorter[chosen] // _STEP) * wide + -(-longer[chosen] // _STEP)
    chosen = chosen[np.argsort(shape, kind="stable")]
    shape = np.sort(shape)
    for begin, end in _equal(shape):
        n, m = (int(shape[begin]) // wide) * _STEP, (int(shape[begin]) % wide) * _STEP
        step = max(1, _CELLS // ((n + 1) * (m + 1)))
        for k in range(begin, end, step):
            rows = chosen[k : min(k + step, end)]
            first, second = spans.first[kinds.shorter[rows]], spans.first[kinds.longer[rows]]
            yield Batch(
                rows,
                _padded(symbol, first, shorter[rows], n, -1),
                _padded(symbol, second, longer[rows], m, -2),
                (shorter[rows], longer[rows]),
            )


def _equal(values: Ints) -> Iterator[tuple[int, int]]:
    """Ranges of equal values of a sorted array."""
    cuts = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    return pairwise(cuts) if len(values) else iter(())


def _padded(symbol: Ints, first: Ints, length: Ints, width: int, padding: int) -> Ints:
    column = np.arange(width)
    inside = column < length[:, None]
    at = np.minimum(first[:, None] + column, len(symbol) - 1)
    result: Ints = np.where(inside, symbol[at], padding)
    return result


def _turned(strings: Ints, length: Ints) -> Ints:
    """Strings with their symbols in the opposite order, and the padding at the end."""
    column = np.arange(strings.shape[1])
    at = np.where(column < length[:, None], length[:, None] - 1 - column, column)
    return np.take_along_axis(strings, at, axis=1)


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


def repeated(block: Block) -> Iterator[tuple[int, Ints]]:
    """The members of P_all, of all documents: a length, and the first phones of the members of this length."""
    gold = block.scene.gold
    symbol, run = gold.phones.symbol, gold.run
    live, key = np.arange(len(gold)), symbol
    for length in range(2, LONGEST + 1):
        longer = live + length <= len(gold)
        longer[longer] = run[live[longer]] == run[live[longer] + length - 1]
        live, key = live[longer], ids(key[longer], symbol[live[longer] + length - 1])
        if length < SHORTEST:
            continue
        some = in_pairs(block, key, live, live + length, gold.phones.document[live])
        live, key = live[some], key[some]
        if not len(live):
            return
        yield length, live


def in_pairs(block: Block, string: Ints, first: Ints, last: Ints, document: Ints) -> Flags:
    """Whether each span has a partner of the same string with which it does not overlap, and whose pair counts.

    Args:
        block: says which pairs count.
        string: numbers from 0.
        first, last: of each span.
        document: of each span.
    """
    talker = block.scene.talker
    if block.talkers == "all" or talker is None:
        return partnered(string, first, last)
    of = talker[document]
    if block.talkers == "within":
        return partnered(ids(string, of), first, last)
    strings = int(string.max()) + 1 if len(string) else 0
    least, most = np.full(strings, len(talker) + len(of)), np.full(strings, -1)
    np.minimum.at(least, string, of)
    np.maximum.at(most, string, of)
    several: Flags = (least < most)[string]
    return several
