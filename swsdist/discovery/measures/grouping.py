"""Grouping: pairs of a class (P_clus, overlapping ones too) against pairs of equal strings (P_goldclus); weights cancel."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from swsdist.discovery.cells import Block, Cell
from swsdist.discovery.completion import in_pairs
from swsdist.discovery.measures.evaluating import OfCounts, Parts, Value
from swsdist.discovery.units import Ints, ids


class Grouping(OfCounts):
    """Precision, recall and F of members of pairs."""

    def count(self, block: Block) -> _Counting:
        """Begin to count a block."""
        return _Counting(block)

    def values(self, parts: Parts) -> Mapping[str, Value]:
        """With the numbers of pairs."""
        pairs = {"n_pairs_clus": parts["pairs_clus"], "n_pairs_goldclus": parts["pairs_goldclus"]}
        return {**super().values(parts), **pairs}


class _Counting:
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
