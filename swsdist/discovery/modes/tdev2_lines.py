"""Mode `tdev2`: the fragments that have phones, as lines of classes and as intervals; and F as the program has it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsdist.discovery.measures import Value, f_score
from swsdist.discovery.modes.tdev2_phones import spans
from swsdist.discovery.units import Fragments, Intervals, Ints, Units, ids, places, representatives, string_ids


@dataclass(frozen=True)
class Lines:
    """Fragments with phones.

    Attributes:
        phones: of the corpus.
        group: class of each line, sorted; lines of a class are in the order of the file.
        item: number of the interval of each line.
        intervals: the different intervals, sorted.
        first: first phone of each interval.
        last: one after its last phone.
        kind: number of the phone string of each interval.
    """

    phones: Units
    group: Ints
    item: Ints
    intervals: Intervals
    first: Ints
    last: Ints
    kind: Ints

    @classmethod
    def of(cls, phones: Units, classes: Fragments) -> Lines:
        """Of the lines of classes; lines without phones are dropped."""
        first, last = spans(phones, classes)
        rows = np.flatnonzero(last > first)
        rows = rows[np.argsort(classes.group[rows], kind="stable")]
        kept, first, last = classes.take(rows), first[rows], last[rows]
        item = ids(places(kept.document, kept.onset), kept.offset)
        example = representatives(item)
        intervals = Intervals(kept.document[example], kept.onset[example], kept.offset[example])
        kind = string_ids(phones.symbol, first[example], last[example])
        return cls(phones, kept.group, item, intervals, first[example], last[example], kind)

    def onsets(self) -> Ints:
        """Place of the onset of each interval."""
        return places(self.intervals.document, self.intervals.onset)

    def offsets(self) -> Ints:
        """Place of the offset of each interval."""
        return places(self.intervals.document, self.intervals.offset)


#: Values of a measure by key, and names of exceptions.
Measure = dict[str, Value | str]


def with_f(precision: float | None, recall: float | None) -> Measure:
    """Precision, recall and F; where both are 0 the program divides by 0."""
    fails = precision == 0 and recall == 0
    return f_or_error(precision, recall, "ZeroDivisionError" if fails else None)


def f_or_error(precision: float | None, recall: float | None, error: str | None) -> Measure:
    """Precision, recall and F; None for F if the program raises an error there, which is named."""
    f = f_score(precision, recall) if error is None else None
    return {"precision": precision, "recall": recall, "fscore": f, "tool_fscore_error": error}
