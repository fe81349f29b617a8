"""Coverage: what members of P_disc cover, against what members of P_all cover; in phones, or in their time.

The part found need not be in P_all, so coverage may exceed 1, as by the formula of the seed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from swsdist.discovery.cells import Block, Cell
from swsdist.discovery.completion import SHORTEST, in_pairs, repeated
from swsdist.discovery.measures.evaluating import OfCounts, Parts, Value, ratio
from swsdist.discovery.units import Flags, Ints, ids


class Coverage:
    """Coverage in phones."""

    _time = False

    def count(self, block: Block) -> _Counting:
        """Begin to count a block."""
        return _Counting(block, self._time)

    def values(self, parts: Parts) -> Mapping[str, Value]:
        """`coverage`, and its counts; None where nothing recurs."""
        disc, recurring = parts["disc"], parts["all"]
        return {"coverage": ratio(disc, recurring), "n_all": recurring, "n_disc": disc}


class CoverageInTime(Coverage):
    """Coverage in the time of the phones: frames so short that none holds two. Counts are ticks of 1 us."""

    _time = True


class _Counting:
    def __init__(self, block: Block, time: bool) -> None:
        self._block, self._time = block, time
        self._member = np.zeros(len(block.scene.spans), bool)

    def add(self, cell: Cell) -> None:
        """Mark the members of pairs that do not overlap."""
        self._member[cell.apart.first] = self._member[cell.apart.second] = True

    def parts(self) -> Parts:
        """Covered phones or ticks of the block."""
        return {"disc": self._measured(self._discovered()), "all": self._measured(self._there())}

    def _measured(self, covered: Flags) -> int:
        phones = self._block.scene.gold.phones
        counted = covered & self._block.phone
        return int((phones.offset - phones.onset)[counted].sum() if self._time else counted.sum())

    def _discovered(self) -> Flags:
        spans = self._block.scene.spans
        change = np.zeros(len(self._block.scene.gold) + 1, np.int64)
        np.add.at(change, spans.first[self._member], 1)
        np.add.at(change, spans.last[self._member], -1)
        covered: Flags = np.cumsum(change)[:-1] > 0
        return covered

    def _there(self) -> Flags:
        """By strings of 3 phones, for a longer one consists of them."""
        covered = np.zeros(len(self._block.scene.gold), bool)
        _, first = next(repeated(self._block), (0, np.zeros(0, np.int64)))
        for k in range(SHORTEST):
            covered[first + k] = True
        return covered


class Grouping(OfCounts):
    """Precision, recall and F of members of pairs."""

    def count(self, block: Block) -> _grouping_Counting:
        """Begin to count a block."""
        return _grouping_Counting(block)

    def values(self, parts: Parts) -> Mapping[str, Value]:
        """With the numbers of pairs."""
        pairs = {"n_pairs_clus": parts["pairs_clus"], "n_pairs_goldclus": parts["pairs_goldclus"]}
        return {**super().values(parts), **pairs}


class _grouping_Counting:
    def __init__(self, block: Block) -> None:
        self._block = block
        self._disc = np.zeros(len(block.scene.spans), bool)
        self._hit = np.zeros(len(block.scene.spans), bool)
        self._pairs = 0

    def add(self, cell: Cell) -> None:
        """Mark members of pairs, and of those of equal strings that do not overlap."""
        self._pairs += cell.number
        self._disc[cell.first] = self._disc[cell.second] = True
        alike = cell.apart.alike
        self._hit[cell.apart.first[alike]] = self._hit[cell.apart.second[alike]] = True

    def parts(self) -> Parts:
        """Members of the block, and pairs whose first span is in it."""
        block, spans = self._block, self._block.scene.spans
        gold = in_pairs(block, spans.string, spans.first, spans.last, spans.document)
        later = _later(spans.string, spans.first, spans.last)
        if block.talkers != "all" and block.scene.talker is not None:
            of_talker = ids(spans.string, block.scene.talker[spans.document])
            same = _later(of_talker, spans.first, spans.last)
            later = same if block.talkers == "within" else later - same
        return {
            "hit": int((self._hit & block.span).sum()),
            "disc": int((self._disc & block.span).sum()),
            "gold": int((gold & block.span).sum()),
            "pairs_clus": self._pairs,
            "pairs_goldclus": int(later[block.span].sum()),
        }


def _later(group: Ints, first: Ints, last: Ints) -> Ints:
    """How many spans of its group begin at or after the end of each."""
    wide = int(last.max()) + 1 if len(last) else 1
    starts = np.sort(group * wide + first)
    ends = np.searchsorted(starts, (group + 1) * wide)
    result: Ints = ends - np.searchsorted(starts, group * wide + last)
    return result
