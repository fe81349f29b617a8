"""Interface of measures of term discovery: counts that add up, and ratios of them.

A measure is registered in `swsdist.registry.registries.DISCOVERY_MEASURES`. It is counted block by block; its parts are sums
over blocks, so how the documents are parted does not matter (`swsdist.testing.conformance.check_discovery_measure`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from swsdist.discovery.cells import Block, Cell
from swsdist.discovery.ratios import Value, of_counts

#: Integers by name; the parts of disjoint blocks are added.
Parts = Mapping[str, int]


class Counting(Protocol):
    """The counting of one measure in one block."""

    def add(self, cell: Cell) -> None:
        """Count the pairs of a cell. Each cell of the block comes once, in any order."""
        ...

    def parts(self) -> Parts:
        """What was counted, after all cells."""
        ...


class Measure(Protocol):
    """A measure."""

    def count(self, block: Block) -> Counting:
        """Begin to count a block."""
        ...

    def values(self, parts: Parts) -> Mapping[str, Value]:
        """Counts and ratios of the parts of all blocks; a ratio without denominator is None."""
        ...


class WithoutPairs:
    """A counting that needs no pairs.

    Args:
        parts: all of them.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def add(self, cell: Cell) -> None:
        """Nothing to count."""

    def parts(self) -> Parts:
        """As given."""
        return self._parts


class OfCounts:
    """Values of a measure whose parts are `hit`, `disc` and `gold`."""

    def values(self, parts: Parts) -> Mapping[str, Value]:
        """Precision, recall, F and their counts."""
        return of_counts(parts["hit"], parts["disc"], parts["gold"])
