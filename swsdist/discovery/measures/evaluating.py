"""Measures of a scene: counted over blocks, one pass over the pairs for all measures, and added."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from swsdist.discovery.cells import Block, Talkers, cells
from swsdist.discovery.measures.interface import Measure, Parts
from swsdist.discovery.ratios import Value
from swsdist.discovery.scene import Scene
from swsdist.discovery.units import Flags


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
