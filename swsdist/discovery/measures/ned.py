"""NED: the mean of Levenshtein / longest over P_disc, exact: parts are the pairs by (distance, longest)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from swsdist.discovery.cells import Block, Cell
from swsdist.discovery.edits import Strings
from swsdist.discovery.measures.evaluating import Parts
from swsdist.discovery.measures.evaluating import Value

_WIDE = 1 << 20


class Ned:
    """Normalised edit distance of the pairs that do not overlap."""

    def count(self, block: Block) -> _Counting:
        """Begin to count a block."""
        return _Counting(block)

    def values(self, parts: Parts) -> Mapping[str, Value]:
        """`ned`, and the number of pairs; None without pairs."""
        total, number = Fraction(), 0
        for key, pairs in parts.items():
            total += pairs * Fraction(key)
            number += pairs
        return {"ned": float(total / number) if number else None, "n_pairs": number}


class _Counting:
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
