"""Pairs of spans and their common substrings, counted in parts that fit in memory.

Cells: the pairs of spans of the classes, cell by cell, never all at once; a pair in two classes comes once. An island
is a longest series of spans connected by common phones, so the parts of a span lie in its island. A cell is two ranges
of islands, or one with itself. All pairs with one span in the one range and one in the other are in its cell, so that
pairs, and pairs of parts of spans, can be told apart within a cell, and counted by sums over cells.

Substring completion (P_disc*): the parts of two strings that some cheapest way to edit one into the other aligns. A
pair of parts A[i:i2], B[j:j2] is completed if a cheapest path goes through (i, j) and (i2, j2): ``head(i, j) + mid(i, j
-> i2, j2) + tail(i2, j2)`` is the whole distance. All costs are 1. Both parts have 3 to 20 phones.

P_all: pairs of equal phone strings of 3 to 20 phones in runs. Only their members are needed, and they are never listed
as pairs. A span is a member if its string occurs once more, without overlap: in another document, or before or after
it. A string of n + 1 phones that recurs begins with one of n that recurs, so the candidates shrink with the length.

Source: the ZeroSpeech 2017 description.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from swsdist.core.arrays import Bools, Ints
from swsdist.discovery.scene import Scene
from swsdist.discovery.units import ids, partnered, representatives

#: Which pairs count: all, those of one talker, those of two.
Talkers = Literal["all", "within", "across"]

#: Pairs of a cell, unless its islands cannot be parted.
MOST = 1 << 16


@dataclass(frozen=True)
class Block:
    """Some documents of a scene, of which measures are counted; the counts of disjoint blocks add up.

    A pair is counted where its first span is. A span is counted where it is, by all of its pairs.

    Attributes:
        scene: that contains the documents.
        talkers: which pairs count.
        documents: whether each document is in the block.
    """

    scene: Scene
    talkers: Talkers
    documents: Bools

    @cached_property
    def phone(self) -> Bools:
        """Whether each phone is in the block."""
        return self.documents[self.scene.gold.phones.document]

    @cached_property
    def span(self) -> Bools:
        """Whether each span of fragments is in the block."""
        return self.documents[self.scene.spans.document]

    def counts(self, left: Ints, right: Ints) -> Bools:
        """Whether pairs of documents count, by their talkers."""
        if self.talkers == "all" or self.scene.talker is None:
            return np.ones(len(left), bool)
        same: Bools = self.scene.talker[left] == self.scene.talker[right]
        return same if self.talkers == "within" else ~same


@dataclass(frozen=True)
class Cell:
    """Distinct pairs of spans, the first before the second, of which one at least is in the block.

    Attributes:
        block: of the pairs.
        first: index of a span; int64.
        second: int64.
    """

    block: Block
    first: Ints
    second: Ints

    @cached_property
    def apart(self) -> Cell:
        """The pairs that do not overlap."""
        spans = self.block.scene.spans
        apart = spans.last[self.first] <= spans.first[self.second]
        return Cell(self.block, self.first[apart], self.second[apart])

    @cached_property
    def alike(self) -> Bools:
        """Whether the two have the same phone string."""
        string = self.block.scene.spans.string
        result: Bools = string[self.first] == string[self.second]
        return result

    @property
    def number(self) -> int:
        """The number of pairs that are counted in the block."""
        return int(self.block.span[self.first].sum())

    @cached_property
    def kinds(self) -> Kinds:
        """The pairs by their phone strings."""
        return Kinds.of(self)


@dataclass(frozen=True)
class Kinds:
    """Kinds of pairs: pairs of one kind have the same two phone strings.

    Attributes:
        shorter, longer: spans with the two strings of each kind; int64.
        kind: of each pair.
        left, right: the spans of each pair in the order of its kind's strings.
    """

    shorter: Ints
    longer: Ints
    kind: Ints
    left: Ints
    right: Ints

    @classmethod
    def of(cls, cell: Cell) -> Kinds:
        """The kinds of the pairs of a cell."""
        spans = cell.block.scene.spans
        length = spans.last - spans.first
        strings = int(spans.string.max()) + 1 if len(spans) else 1
        rank = length * strings + spans.string
        swap = rank[cell.first] > rank[cell.second]
        left, right = np.where(swap, cell.second, cell.first), np.where(swap, cell.first, cell.second)
        key, kind = np.unique(spans.string[left] * strings + spans.string[right], return_inverse=True)
        example = representatives(spans.string)
        return cls(example[key // strings], example[key % strings], kind, left, right)


def cells(block: Block, most: int = MOST) -> Iterator[Cell]:
    """The pairs of the classes that count, in cells.

    Args:
        block: of which they are counted.
        most: pairs of a cell.
    """
    spans = block.scene.spans
    if not len(spans):
        return
    begins = np.ones(len(spans), bool)
    begins[1:] = spans.first[1:] >= np.maximum.accumulate(spans.last)[:-1]
    yield from _Splitter(block, np.append(np.flatnonzero(begins), len(spans)), most).cells()


class _Splitter:
    """Cuts the pairs of islands into cells."""

    def __init__(self, block: Block, islands: Ints, most: int) -> None:
        self._block, self._islands, self._most = block, islands, most
        group, self._span = block.scene.members
        new = np.ones(len(group), bool)
        new[1:] = group[1:] != group[:-1]
        self._starts = np.flatnonzero(new)
        self._class = np.cumsum(new) - 1
        self._key = self._class * (len(block.scene.spans) + 1) + self._span
        size = np.diff(np.append(self._starts, len(group)))
        # Partners of all members up to each span: where it is halved, both sides have as many.
        partners = np.bincount(self._span, size[self._class] - 1.0, len(block.scene.spans))
        self._partners = np.append(0.0, np.cumsum(partners))
        self._repeated = len(np.unique(self._span)) < len(self._span)

    def cells(self) -> Iterator[Cell]:
        islands = (0, len(self._islands) - 1)
        todo = [(islands, islands)]
        while todo:
            left, right = todo.pop()
            rows, begins, counts = self._partners_of(left, right)
            total = int(counts.sum())
            halves = self._halved(left, right) if total > self._most else []
            todo += halves[::-1]
            if total and not halves:
                yield self._cell(rows, begins, counts)

    def _partners_of(self, left: tuple[int, int], right: tuple[int, int]) -> tuple[Ints, Ints, Ints]:
        """Members of the left range; the first of their partners in the right one, and their number."""
        left_bounds, right_bounds = self._bounds(left), self._bounds(right)
        size = left_bounds[1] - left_bounds[0]
        group = np.repeat(np.arange(len(size)), size)
        rows = np.arange(len(group)) - np.repeat(np.cumsum(size) - size, size) + left_bounds[0][group]
        begins = rows + 1 if left == right else right_bounds[0][group]
        return rows, begins, right_bounds[1][group] - begins

    def _bounds(self, islands: tuple[int, int]) -> tuple[Ints, Ints]:
        """The members of a range in each class: first, and one after the last."""
        base = np.arange(len(self._starts)) * (len(self._block.scene.spans) + 1)
        spans = (self._islands[island] for island in islands)
        first, last = (np.searchsorted(self._key, base + span) for span in spans)
        return first, last

    def _halved(self, left: tuple[int, int], right: tuple[int, int]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """Two cells, or three, in the place of one; none if the islands cannot be parted."""
        if left == right:
            lower, upper = self._cut(left)
            return [(lower, lower), (lower, upper), (upper, upper)] if upper[0] < upper[1] else []
        wide = max(left, right, key=lambda islands: (islands[1] - islands[0] > 1, self._weight(islands)))
        lower, upper = self._cut(wide)
        if upper[0] == upper[1]:
            return []
        return [(lower, right), (upper, right)] if wide == left else [(left, lower), (left, upper)]

    def _weight(self, islands: tuple[int, int]) -> float:
        first, last = self._islands[list(islands)]
        return float(self._partners[last] - self._partners[first])

    def _cut(self, islands: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
        """Two ranges of about the same weight; the second is empty if there is one island."""
        begin, end = islands
        if end - begin < 2:
            return islands, (end, end)
        weights = self._partners[self._islands[begin + 1 : end]]
        middle = (self._partners[self._islands[begin]] + self._partners[self._islands[end]]) / 2
        at = begin + 1 + min(int(np.searchsorted(weights, middle)), end - begin - 2)
        return (begin, at), (at, end)

    def _cell(self, rows: Ints, begins: Ints, counts: Ints) -> Cell:
        left = np.repeat(self._span[rows], counts)
        before = np.cumsum(counts) - counts
        right = self._span[np.arange(len(left)) + np.repeat(begins - before, counts)]
        if self._repeated:
            spans = len(self._block.scene.spans)
            key = np.unique(left * spans + right)
            left, right = key // spans, key % spans
        document = self._block.scene.spans.document
        keep = self._block.counts(document[left], document[right])
        keep &= self._block.span[left] | self._block.span[right]
        return Cell(self._block, left[keep], right[keep])


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
    equal: Bools


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
    above: _Table | None, left: _Table | None, corner: _Table | None, differ: Bools | None, i: int, j: int, pairs: int
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


def _lower(table: _Table, other: _Table, cost: int | Bools) -> None:
    np.minimum(table, other + np.int16(cost) if isinstance(cost, int) else other + cost, out=table)


def _parts(
    table: _Table, head: _Table, tail: np.ndarray, distance: np.ndarray, live: Bools, ends: tuple[int, int], least: int
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


def in_pairs(block: Block, string: Ints, first: Ints, last: Ints, document: Ints) -> Bools:
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
    several: Bools = (least < most)[string]
    return several
