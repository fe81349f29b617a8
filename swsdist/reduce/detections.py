"""This module turns candidates into detections, one bucket of queries at a time: the second half of a map-reduce.

A bucket reads its own rows of each file of candidates. A document lies whole in one shard, and a query's examples in one
group, so overlaps are merged file by file (`swsdist.reduce.overlaps`), and the best N of each query are kept. All orders are
total (score descending, then doc_id, channel, first, last, example), so neither the order nor the number of the files
matters. Memory holds one file's rows of the bucket and some N detections a query.

Statistics for calibration (`swsdist.calibrate.statistics`) are taken over all candidates that came in, before any was removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pyarrow as pa

from swsdist.calibrate.statistics import Tally, made, summed, to_table
from swsdist.reduce.overlaps import Merge, merge_overlaps
from swsdist.reduce.spans import Best, Names, SpanFilter, spans_of
from swsdist.reduce.speakers import Speakers


class Reduced(NamedTuple):
    """The detections of a bucket (DETECTIONS, in total order) and its queries' statistics (QUERY_STATISTICS)."""

    detections: pa.Table
    statistics: pa.Table


class Bucket:
    """Candidates of one bucket, a table a file, in any order; what has come so far can be asked for at any time.

    Args:
        tick: s a unit of `first` and `last`.
        overlap: of two candidates that overlap by more than this part of the shorter, the better stays.
        nbest: detections kept per query.
        system: name to put into their column.
        merge: what becomes of the others: `best` drops them, `sum` adds their posteriors.
        statistics: names of those that calibration wants.
        speakers: of the documents, where a statistic is by speaker.
        span_filter: of a document's detections these are; None: all.

    Raises:
        ConfigError: there is no such statistic.
    """

    def __init__(
        self,
        *,
        tick: float,
        overlap: float,
        nbest: int,
        system: str,
        merge: Merge = "best",
        statistics: Sequence[str] = (),
        speakers: Speakers | None = None,
        span_filter: SpanFilter | None = None,
    ) -> None:
        self._named, self._overlap, self._merge, self._speakers = (tick, system), overlap, merge, speakers
        self._names = Names()
        self._best = Best(self._names, nbest, span_filter)
        self._wanted = made(statistics)
        self._parts: dict[str, list[Tally]] = {name: [Tally(each.quantities)] for name, each in self._wanted.items()}

    def add(self, candidates: pa.Table) -> None:
        """Merge the CANDIDATES of a file, in which its documents are whole.

        Raises:
            DataError: posteriors are to be summed, and a score is not in [0, 1].
        """
        known = candidates if self._speakers is None else self._speakers.added(candidates)
        for name, each in self._wanted.items():
            self._parts[name].append(each.of(known))
        # What is not among the best cannot take a better one's place, so it may go before overlaps are looked at.
        spans = spans_of(candidates, self._names, self._best.may_hold if self._merge == "best" else None)
        self._best.add(merge_overlaps(spans, self._overlap, self._merge))

    def all_of(self, candidates: Iterable[pa.Table]) -> Reduced:
        """What comes of some files, and of what was added before; see `add`."""
        for table in candidates:
            self.add(table)
        return self.reduced()

    def reduced(self, *, last: bool = True) -> Reduced:
        """What came of all of them.

        Args:
            last: no others are added, so that the memory of these is free.
        """
        statistics = to_table({name: summed(some) for name, some in self._parts.items()})
        return Reduced(self._best.table(*self._named, last=last), statistics)
