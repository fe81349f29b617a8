"""The phones of a corpus by time, their runs, and the phones that a stretch touches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsdist.discovery.units import BEYOND, Intervals, Ints, Units, places


@dataclass(frozen=True)
class Gold:
    """Phones, sorted by document and time, disjoint.

    A span is a pair of indices (first, last + 1) of phones of one document: equal spans are the same fragment.

    Attributes:
        phones: of all documents.
        run: number of the run of each phone: a longest series in which each begins exactly where the one before ends; int64.
    """

    phones: Units
    run: Ints

    @classmethod
    def of(cls, phones: Units) -> Gold:
        """Of phones in any order."""
        phones = phones.take(np.lexsort((phones.onset, phones.document)))
        new = np.ones(len(phones), bool)
        new[1:] = (phones.document[1:] != phones.document[:-1]) | (phones.onset[1:] != phones.offset[:-1])
        return cls(phones, np.cumsum(new) - 1)

    def __len__(self) -> int:
        return len(self.phones)


def touched(units: Intervals, stretches: Intervals) -> tuple[Ints, Ints]:
    """First unit that shares time with each stretch, and the one after the last; equal if there is none.

    Args:
        units: sorted by document and time, disjoint.
        stretches: in any order.
    """
    lo = np.searchsorted(places(units.document, units.offset), places(stretches.document, stretches.onset), "right")
    hi = np.searchsorted(places(units.document, units.onset), places(stretches.document, stretches.offset), "left")
    begins = np.searchsorted(units.document, stretches.document, "left")
    ends = np.searchsorted(units.document, stretches.document, "right")
    lo, hi = np.maximum(lo, begins), np.minimum(hi, ends)
    return lo, np.maximum(lo, hi)


def partnered(group: Ints, first: Ints, last: Ints) -> np.ndarray:
    """Whether each span has a partner: another of its group that does not overlap it.

    One other document, or the first and the last occurrence apart: the least end and the greatest start of a group tell.

    Args:
        group: numbers from 0.
        first: of each span.
        last: one after the last of each span, in the units of `first`.
    """
    groups = int(group.max()) + 1 if len(group) else 0
    latest = np.full(groups, -1, np.int64)
    np.maximum.at(latest, group, first)
    earliest = np.full(groups, BEYOND, np.int64)
    np.minimum.at(earliest, group, last)
    return (latest[group] >= last) | (earliest[group] <= first)
