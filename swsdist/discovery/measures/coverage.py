"""Coverage: what members of P_disc cover, against what members of P_all cover; in phones, or in their time.

The part found need not be in P_all, so coverage may exceed 1, as by the formula of the seed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from swsdist.discovery.cells import Block, Cell
from swsdist.discovery.completion import SHORTEST, repeated
from swsdist.discovery.measures.evaluating import Parts, Value, ratio
from swsdist.discovery.units import Flags


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
