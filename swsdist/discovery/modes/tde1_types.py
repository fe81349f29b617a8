"""Mode `tde1`: precision and recall of pairs by their types.

A type is the phone string of the second member of a pair. Its weight is its share of the different members of all pairs, first
or second; its ratio is the part of its pairs that is right. A type that is never second has a weight and no ratio.
"""

from __future__ import annotations

import numpy as np

from swsdist.discovery.units import Ints

#: Precision and recall; None where there are no pairs.
Ratios = tuple[float | None, float | None]


class PairsByType:
    """Counts of different pairs by type.

    Args:
        kind: number of the phone string of each member.
        kinds: number of phone strings.
    """

    def __init__(self, kind: Ints, kinds: int) -> None:
        self._kind, self._kinds = kind, kinds
        self._member = np.zeros(len(kind), bool)
        self._pairs = np.zeros(kinds, np.int64)

    def add(self, first: Ints, second: Ints) -> None:
        """Count pairs that were not counted yet."""
        self._member[first] = True
        self._member[second] = True
        self._pairs += self.count(second)

    def count(self, second: Ints) -> Ints:
        """Pairs of each type, by their second members."""
        return np.bincount(self._kind[second], minlength=self._kinds)

    def share(self, right: Ints) -> float | None:
        """The part of the pairs that is right, weighted; None without pairs.

        Args:
            right: number of right pairs of each type.
        """
        members = int(self._member.sum())
        if not members:
            return None
        weight = np.bincount(self._kind[self._member], minlength=self._kinds) / members
        second = self._pairs > 0
        return float((weight[second] * right[second] / self._pairs[second]).sum())
