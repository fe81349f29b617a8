"""Pairs of phone strings in batches of similar lengths, padded so that one table of edits serves a batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from swsdist.discovery.cells import Block, Kinds
from swsdist.discovery.units import Ints

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
