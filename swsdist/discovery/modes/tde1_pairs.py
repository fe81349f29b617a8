"""Mode `tde1`: the measures of pairs: NED, matching, grouping.

A pair is two different fragments of a class that do not overlap, looking at times only: fragments of two documents at one time
are no pair.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from swsdist.discovery.cells import Strings
from swsdist.discovery.modes.pairs import PairCounts, Pairs, distinct, pairs_of_items
from swsdist.discovery.modes.tde1_corpus import Members
from swsdist.discovery.modes.tde1_matching import Completion
from swsdist.discovery.modes.tde1_overlap import overlap
from swsdist.discovery.modes.tde1_types import PairsByType, Ratios
from swsdist.discovery.units import Flags, Intervals, Ints, Units, representatives, string_ids


class PairMeasures:
    """NED, matching and grouping in folds.

    Args:
        phones: sorted by document and time.
        disc: discovered fragments.
        gold: fragments of the gold classes.
    """

    def __init__(self, phones: Units, disc: Members, gold: Members) -> None:
        self._disc, self._gold = disc, gold
        self._kind = string_ids(phones.symbol, disc.first, disc.last)
        example = representatives(self._kind)
        self._strings = Strings(phones.symbol, disc.first[example], disc.last[example])
        self._completion = Completion(phones, disc, gold)

    def fold(self, disc: Flags, gold: Flags) -> tuple[PairCounts, Ratios, Ratios]:
        """Pairs by their strings, matching and grouping of the fragments in one fold."""
        group, item = self._disc.rows(disc)
        ned, grouping = PairCounts(self._strings.count), PairsByType(self._kind, self._strings.count)
        right, parts = np.zeros(self._strings.count, np.int64), [np.zeros(0, np.int64)]
        for x, y in _pairs(self._disc.fragments, group, item):
            ned.add(self._kind[x], self._kind[y])
            grouping.add(x, y)
            right += grouping.count(y[self._equal(x, y)])
            parts.append(self._completion.keys(x, y))
        gold_pairs = _pairs(self._gold.fragments, *self._gold.rows(gold))
        matching = self._completion.ratios(distinct(np.concatenate(parts)), gold_pairs)
        return ned, matching, (grouping.share(right), self._gold_grouping(group, item).share(right))

    def ned(self, folds: list[PairCounts]) -> list[float | None]:
        """Mean normalised distance of the pairs of each fold; None without pairs.

        Raises:
            ZeroDivisionError: two fragments of a pair have no phones.
        """
        keys = [counts.keys for counts in folds]
        x, y = np.divmod(np.concatenate(keys), self._strings.count)
        longest = np.maximum(self._strings.length[x], self._strings.length[y])
        if not longest.all():
            raise ZeroDivisionError
        rates = np.split(self._strings.distances(x, y) / longest, np.cumsum([len(some) for some in keys[:-1]]))
        return [
            float((rate * counts.weight).sum()) / int(counts.weight.sum()) if len(rate) else None
            for rate, counts in zip(rates, folds, strict=True)
        ]

    def _gold_grouping(self, group: Ints, item: Ints) -> PairsByType:
        """Pairs of fragments of equal phones, of classes that have two lines in the fold."""
        several = np.bincount(group, minlength=1)[group] > 1
        pairs = PairsByType(self._kind, self._strings.count)
        item = item[several]
        for x, y in _pairs(self._disc.fragments, self._kind[item], item):
            apart = self._equal(x, y)
            pairs.add(x[apart], y[apart])
        return pairs

    def _equal(self, x: Ints, y: Ints) -> Flags:
        """Whether pairs are of equal phones and share no time of one document at all."""
        a, b = self._disc.fragments.take(x), self._disc.fragments.take(y)
        common = np.minimum(a.offset, b.offset) > np.maximum(a.onset, b.onset)
        equal: Flags = (self._kind[x] == self._kind[y]) & ~((a.document == b.document) & common)
        return equal


def _pairs(fragments: Intervals, group: Ints, item: Ints) -> Iterator[Pairs]:
    """Pairs that share a group and do not overlap; the first is earlier in the order of documents and times."""
    for x, y in pairs_of_items(group, item):
        kept = ~overlap(fragments.take(x), fragments.take(y))
        yield x[kept], y[kept]
