"""The pairs of spans of the classes, cell by cell, never all at once; a pair in two classes comes once.

An island is a longest series of spans that hang together by common phones: the parts of a span lie in its island. A cell is two
ranges of islands, or one with itself. All pairs with one span in the one range and one in the other are in its cell, so that
pairs, and pairs of parts of spans, can be told apart within a cell, and counted by sums over cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from swsdist.discovery.scene import Scene
from swsdist.discovery.units import Flags, Ints, representatives

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
    documents: Flags

    @cached_property
    def phone(self) -> Flags:
        """Whether each phone is in the block."""
        return self.documents[self.scene.gold.phones.document]

    @cached_property
    def span(self) -> Flags:
        """Whether each span of fragments is in the block."""
        return self.documents[self.scene.spans.document]

    def counts(self, left: Ints, right: Ints) -> Flags:
        """Whether pairs of documents count, by their talkers."""
        if self.talkers == "all" or self.scene.talker is None:
            return np.ones(len(left), bool)
        same: Flags = self.scene.talker[left] == self.scene.talker[right]
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
    def alike(self) -> Flags:
        """Whether the two have the same phone string."""
        string = self.block.scene.spans.string
        result: Flags = string[self.first] == string[self.second]
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
        """Of the pairs of a cell."""
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
