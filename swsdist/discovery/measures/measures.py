"""Measures of a scene: counted over blocks, one pass over the pairs for all measures, and added.

Interface of measures of term discovery: counts that add up, and ratios of them.

A measure is registered in `swsdist.registry.registries.DISCOVERY_MEASURES`. It is counted block by block; its parts are sums
over blocks, so how the documents are parted does not matter (`swsdist.testing.conformance.check_discovery_measure`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from swsdist.discovery.cells import Block, Cell, Talkers, cells
from swsdist.discovery.scene import Scene
from swsdist.discovery.units import Flags

#: A value of a result: counts are integers, ratios floats, None is undefined.
Value = int | float | None


def ratio(part: int | float, total: int) -> float | None:
    """Part of a total; None of nothing."""
    return part / total if total else None


def f_score(precision: float | None, recall: float | None) -> float | None:
    """``2 P R / (P + R)``; 0 if both are 0, None if one is None."""
    if precision is None or recall is None:
        return None
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def of_counts(hit: int, disc: int, gold: int) -> Mapping[str, Value]:
    """Counts, and the ratios of them, by the keys of results."""
    precision, recall = ratio(hit, disc), ratio(hit, gold)
    counts = {"n_hit": hit, "n_disc": disc, "n_gold": gold}
    return {**counts, "precision": precision, "recall": recall, "fscore": f_score(precision, recall)}


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


def counted(measures: Mapping[str, Measure], block: Block) -> dict[str, Parts]:
    """The parts of measures in a block, by name."""
    countings = {name: measure.count(block) for name, measure in measures.items()}
    for cell in cells(block):
        for counting in countings.values():
            counting.add(cell)
    return {name: counting.parts() for name, counting in countings.items()}


def added(parts: Sequence[Mapping[str, Parts]]) -> dict[str, Parts]:
    """The parts of measures over blocks."""
    totals: dict[str, Counter[str]] = {}
    for block in parts:
        for name, some in block.items():
            totals.setdefault(name, Counter()).update(some)
    return {name: dict(total) for name, total in totals.items()}


def evaluated(
    measures: Mapping[str, Measure],
    scene: Scene,
    talkers: Talkers = "all",
    blocks: Sequence[Flags] | None = None,
) -> dict[str, Mapping[str, Value]]:
    """The values of measures, by name.

    Args:
        measures: by name.
        scene: of a corpus or a fold.
        talkers: which pairs count.
        blocks: disjoint sets of documents, all together; None: one of all. The values are the same.
    """
    if blocks is None:
        last = max(int(scene.gold.phones.document.max(initial=-1)), -1) + 1
        blocks = [np.ones(last, bool)]
    parts = added([counted(measures, Block(scene, talkers, documents)) for documents in blocks])
    return {name: measure.values(parts[name]) for name, measure in measures.items()}
