"""Matching: P_disc with completed substrings against P_all; of the substrings, those of two phones may count or not.

The weights by type of the seed cancel: ``sum_t freq(t, P) |match(t, P & Q)| / |match(t, P)| = |flat(P & Q)| / |flat(P)|``. So
precision and recall are of the members of pairs, whose marks are kept by first phone and length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction

import numpy as np

from swsdist.discovery.cells import Block, Cell, Kinds
from swsdist.discovery.completion import LONGEST, SHORTEST, Batch, batches, completed, repeated
from swsdist.discovery.edits import Strings
from swsdist.discovery.measures.evaluating import OfCounts, Parts, Value
from swsdist.discovery.units import Ints

_LENGTHS = LONGEST + 1


class Matching(OfCounts):
    """Precision, recall and F of members of completed pairs."""

    #: Phones of the shortest part.
    least = SHORTEST

    def count(self, block: Block) -> _Counting:
        """Begin to count a block."""
        return _Counting(block, self.least)

    def values(self, parts: Parts) -> Mapping[str, Value]:
        """With the number of distinct completed pairs."""
        return {**super().values(parts), "n_pairs_completed": parts["pairs"]}


class MatchingFromTwo(Matching):
    """The same with parts of two phones, as in the example of the description; P_all has none, so that they are wrong."""

    least = 2


class _Counting:
    def __init__(self, block: Block, least: int) -> None:
        self._block, self._least = block, least
        phones = len(block.scene.gold)
        #: Whether the part of a length that begins at a phone, at phone * _LENGTHS + length, is a member of a pair.
        self._disc = np.zeros(phones * _LENGTHS, bool)
        self._hit = np.zeros(phones * _LENGTHS, bool)
        self._pairs = 0

    def add(self, cell: Cell) -> None:
        """Mark the completed parts of pairs that do not overlap, and count their distinct pairs."""
        kinds = cell.apart.kinds
        order = np.argsort(kinds.kind, kind="stable")
        starts = np.searchsorted(kinds.kind[order], np.arange(len(kinds.shorter) + 1))
        pairs = [np.zeros(0, np.int64)]
        for batch in batches(self._block, kinds, self._least):
            pairs += [
                self._marked(left, right, alike)
                for left, right, alike in _placed(self._block, batch, kinds, order, starts, self._least)
            ]
        self._pairs += self._counted(np.unique(np.concatenate(pairs)))

    def _marked(self, left: Ints, right: Ints, alike: np.ndarray) -> Ints:
        """Mark parts; their pairs, as integers."""
        self._disc[left] = self._disc[right] = True
        alike = alike & (left % _LENGTHS >= SHORTEST)
        left_, right_ = left[alike], right[alike]
        in_runs = self._in_run(left_) & self._in_run(right_)
        self._hit[left_[in_runs]] = self._hit[right_[in_runs]] = True
        pairs: Ints = np.minimum(left, right) * len(self._disc) + np.maximum(left, right)
        return pairs

    def _in_run(self, part: Ints) -> np.ndarray:
        run = self._block.scene.gold.run
        first, length = part // _LENGTHS, part % _LENGTHS
        result: np.ndarray = run[first] == run[first + length - 1]
        return result

    def _counted(self, pairs: Ints) -> int:
        return int(self._block.phone[pairs // max(len(self._disc), 1) // _LENGTHS].sum())

    def parts(self) -> Parts:
        """Members of the block, and pairs whose first part is in it."""
        counted = np.repeat(self._block.phone, _LENGTHS)
        gold = sum(int(self._block.phone[first].sum()) for _, first in repeated(self._block))
        return {
            "hit": int((self._hit & counted).sum()),
            "disc": int((self._disc & counted).sum()),
            "gold": gold,
            "pairs": self._pairs,
        }


def _placed(
    block: Block, batch: Batch, kinds: Kinds, order: Ints, starts: Ints, least: int
) -> Iterator[tuple[Ints, Ints, np.ndarray]]:
    """The completed parts of all pairs of a batch's kinds, as phone * _LENGTHS + length; whether they are the same string."""
    first = block.scene.spans.first
    for parts in completed(batch, least):
        kind = batch.kinds[parts.pair]
        count = starts[kind + 1] - starts[kind]
        row = np.repeat(np.arange(len(kind)), count)
        pair = order[np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(starts[kind], count)]
        left = _part(first[kinds.left[pair]], parts.begin[row], parts.ends[0])
        right = _part(first[kinds.right[pair]], parts.other[row], parts.ends[1])
        yield left, right, parts.equal[row]


def _part(first: Ints, begin: Ints, end: int) -> Ints:
    return (first + begin) * _LENGTHS + end - begin


_WIDE = 1 << 20


class Ned:
    """Normalised edit distance of the pairs that do not overlap."""

    def count(self, block: Block) -> _ned_Counting:
        """Begin to count a block."""
        return _ned_Counting(block)

    def values(self, parts: Parts) -> Mapping[str, Value]:
        """`ned`, and the number of pairs; None without pairs."""
        total, number = Fraction(), 0
        for key, pairs in parts.items():
            total += pairs * Fraction(key)
            number += pairs
        return {"ned": float(total / number) if number else None, "n_pairs": number}


class _ned_Counting:
    def __init__(self, block: Block) -> None:
        self._block = block
        self._pairs: Counter[str] = Counter()

    def add(self, cell: Cell) -> None:
        """Count pairs by distance and longest."""
        kinds = cell.apart.kinds
        weight = np.bincount(kinds.kind[self._block.span[cell.apart.first]], minlength=len(kinds.shorter))
        spans, symbol = self._block.scene.spans, self._block.scene.gold.phones.symbol
        strings = Strings(symbol, spans.first, spans.last)
        distance = strings.distances(kinds.shorter, kinds.longer)
        values, place = np.unique(distance * _WIDE + strings.length[kinds.longer], return_inverse=True)
        pairs = np.zeros(len(values), np.int64)
        np.add.at(pairs, place, weight)
        for value, number in zip(values.tolist(), pairs.tolist(), strict=True):
            if number:
                self._pairs[f"{value // _WIDE}/{value % _WIDE}"] += number

    def parts(self) -> Parts:
        """Pairs by `distance/longest`."""
        return self._pairs
