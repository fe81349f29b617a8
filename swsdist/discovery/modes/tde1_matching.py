"""Mode `tde1`: matching, by substring completion along diagonals.

The shorter string of a pair is laid along the longer at every offset; parts at one place, of 3 to 19 phones, are pairs. Gold
pairs are those of the gold classes. Both orders of each pair count.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from swsdist.discovery.modes.pairs import Pairs, among, distinct
from swsdist.discovery.modes.tde1_corpus import Members
from swsdist.discovery.modes.tde1_types import PairsByType, Ratios
from swsdist.discovery.units import Ints, Units, string_ids

#: Fewest and most phones of a part; the program's 20 is the open end of a range.
_LEAST, _MOST = 3, 19
_LENGTHS = _MOST - _LEAST + 1


class Completion:
    """Parts of discovered fragments, and gold fragments beside them.

    A part has the code ``first * _LENGTHS + length - _LEAST``, and the rank of its code among all parts as its number.

    Args:
        phones: sorted by document and time.
        disc: discovered fragments.
        gold: fragments of the gold classes.
    """

    def __init__(self, phones: Units, disc: Members, gold: Members) -> None:
        self._disc = disc
        codes = [_codes(disc.first[rows], length).ravel() for length, rows in _by_length(disc.last - disc.first)]
        self._codes = distinct(np.concatenate([np.zeros(0, np.int64), *codes]))
        first, length = np.divmod(self._codes, _LENGTHS)
        firsts, lasts = np.concatenate([first, gold.first]), np.concatenate([first + length + _LEAST, gold.last])
        kind = string_ids(phones.symbol, firsts, lasts)
        self._kind, self._gold_kind = np.split(kind, [len(first)])
        self._kinds = int(kind.max()) + 1 if len(kind) else 0
        self._gold_part = self._parts_of(phones, gold)

    def _parts_of(self, phones: Units, gold: Members) -> Ints:
        """The part that each gold fragment is, to the tick; -1 if it is none."""
        length = gold.last - gold.first
        some = np.flatnonzero((length >= _LEAST) & (length <= _MOST))
        first, last = gold.first[some], gold.last[some] - 1
        exact = (phones.onset[first] == gold.fragments.onset[some]) & (
            phones.offset[last] == gold.fragments.offset[some]
        )
        some, code = some[exact], (first * _LENGTHS + length[some] - _LEAST)[exact]
        present = among(code, self._codes)
        parts = np.full(len(length), -1, np.int64)
        parts[some[present]] = np.searchsorted(self._codes, code[present])
        return parts

    def keys(self, x: Ints, y: Ints) -> Ints:
        """Different pairs of parts of pairs of fragments: ``a * parts + b``, a <= b, sorted."""
        length = self._disc.last - self._disc.first
        surplus = length[x] - length[y]
        offsets = np.abs(surplus) + 1
        pair = np.repeat(np.arange(len(x)), offsets)
        offset = np.arange(len(pair)) - np.repeat(np.cumsum(offsets) - offsets, offsets)
        a = self._disc.first[x][pair] + np.where(surplus[pair] > 0, offset, 0)
        b = self._disc.first[y][pair] + np.where(surplus[pair] < 0, offset, 0)
        keys = [np.zeros(0, np.int64)]
        for shorter, rows in _by_length(np.minimum(length[x], length[y])[pair]):
            first = np.searchsorted(self._codes, _codes(a[rows], shorter)).ravel()
            second = np.searchsorted(self._codes, _codes(b[rows], shorter)).ravel()
            keys.append(np.minimum(first, second) * len(self._codes) + np.maximum(first, second))
        return distinct(np.concatenate(keys))

    def ratios(self, keys: Ints, gold_pairs: Iterable[Pairs]) -> Ratios:
        """Precision and recall.

        Args:
            keys: of all pairs of parts.
            gold_pairs: pairs of gold fragments, each once.
        """
        disc, gold = PairsByType(self._kind, self._kinds), PairsByType(self._gold_kind, self._kinds)
        a, b = np.divmod(keys, len(self._codes) or 1)
        disc.add(a, b)
        disc.add(b[a != b], a[a != b])
        right = np.zeros(self._kinds, np.int64)
        for x, y in gold_pairs:
            gold.add(x, y)
            gold.add(y, x)
            a, b = self._gold_part[x], self._gold_part[y]
            hit = (a >= 0) & (b >= 0) & among(np.minimum(a, b) * len(self._codes) + np.maximum(a, b), keys)
            right += gold.count(x[hit]) + gold.count(y[hit])
        return disc.share(right), gold.share(right)


def _by_length(length: Ints) -> list[tuple[int, Ints]]:
    """Each length that has parts, and its rows."""
    order = np.argsort(length, kind="stable")
    ends = np.flatnonzero(np.diff(length[order], append=-1)) + 1
    groups = np.split(order, ends[:-1]) if len(order) else []
    return [(int(length[rows[0]]), rows) for rows in groups if length[rows[0]] >= _LEAST]


def _codes(first: Ints, length: int) -> Ints:
    """Codes of all parts of stretches of one length, (stretches, parts), in one order of parts."""
    parts = [
        start * _LENGTHS + np.arange(min(length - start, _MOST) - _LEAST + 1) for start in range(length - _LEAST + 1)
    ]
    return first[:, None] * _LENGTHS + np.concatenate(parts)
