"""Mode `tde1`: phones and words in runs, and the fragments of classes beside them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsdist.discovery.modes.tde1_overlap import common_seconds, in_run, overlapped
from swsdist.discovery.units import Flags, Fragments, Intervals, Ints, Units, ids, places, representatives, touched

#: Neighbours less than this apart are in one run, in ticks.
_GAP = 10


@dataclass(frozen=True)
class InRuns:
    """Phones or words without silences, and their runs.

    Attributes:
        units: sorted by document and time, disjoint.
        run: number of the run of each unit, rising.
    """

    units: Units
    run: Ints

    @classmethod
    def of(cls, units: Units) -> InRuns:
        """Of all units of a corpus."""
        new = np.ones(len(units), bool)
        new[1:] = (units.document[1:] != units.document[:-1]) | (np.abs(units.onset[1:] - units.offset[:-1]) >= _GAP)
        return cls(units, np.cumsum(new) - 1)

    def take(self, rows: Flags) -> InRuns:
        """Some units; a run that has a gap then is one run still."""
        return InRuns(self.units.take(rows), self.run[rows])

    def spans(self, stretches: Intervals) -> tuple[Flags, Ints, Ints]:
        """The units of stretches.

        Returns:
            Whether a stretch is near a run at all; its first unit; the one after its last, equal to the first if there is none.
        """
        begins = np.flatnonzero(np.diff(self.run, prepend=-1))
        ends = np.flatnonzero(np.diff(self.run, append=-1)) + 1
        units = self.units
        run = in_run(Intervals(units.document[begins], units.onset[begins], units.offset[ends - 1]), stretches)
        near = run >= 0
        lo, hi = touched(units, stretches)
        lo[near] = np.maximum(lo[near], begins[run[near]])
        hi[near] = np.minimum(hi[near], ends[run[near]])
        lo, hi = overlapped(units, lo, np.maximum(lo, hi), stretches)
        return near, lo, hi


@dataclass(frozen=True)
class Members:
    """The fragments of classes that are near phones.

    Attributes:
        group: class of each line; int64.
        item: number of the fragment of each line; int64.
        fragments: the different ones, by document and time.
        first: first phone of each fragment; int64.
        last: one after its last phone, equal to `first` if it has none; int64.
    """

    group: Ints
    item: Ints
    fragments: Intervals
    first: Ints
    last: Ints

    @classmethod
    def of(cls, lines: Fragments, phones: InRuns) -> Members:
        """Of the lines of classes; instants and those elsewhere are dropped."""
        lines = lines.take(lines.onset < lines.offset)
        item = ids(places(lines.document, lines.onset), lines.offset)
        example = representatives(item)
        fragments = Intervals(lines.document[example], lines.onset[example], lines.offset[example])
        near, first, last = phones.spans(fragments)
        kept, number = near[item], np.cumsum(near) - 1
        return cls(lines.group[kept], number[item[kept]], fragments.take(near), first[near], last[near])

    def rows(self, chosen: Flags) -> tuple[Ints, Ints]:
        """Class and fragment of the lines of some fragments."""
        kept = chosen[self.item]
        return self.group[kept], self.item[kept]


def cut(fragments: Fragments, split: Intervals) -> Fragments:
    """Cut each fragment to the stretch of speech of which it has most, the first of equals; drop those in none.

    Args:
        fragments: of any documents.
        split: disjoint.
    """
    split = split.take(np.lexsort((split.onset, split.document)))
    lo, hi = touched(split, fragments)
    best, most = lo.copy(), np.zeros(len(fragments))
    some, nth = np.flatnonzero(lo < hi), 0
    while len(some):
        at = lo[some] + nth
        common = common_seconds(split.take(at), fragments.take(some))
        better = common > most[some]
        best[some[better]], most[some[better]] = at[better], common[better]
        nth += 1
        some = some[lo[some] + nth < hi[some]]
    kept = np.flatnonzero(most > 0)
    inside, fragments = split.take(best[kept]), fragments.take(kept)
    onset, offset = np.maximum(fragments.onset, inside.onset), np.minimum(fragments.offset, inside.offset)
    return Fragments(fragments.document, onset, offset, fragments.group, fragments.names)
