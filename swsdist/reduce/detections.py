"""Candidates to detections, one bucket of queries at a time: the second half of a map-reduce.

A bucket reads its rows of each file of candidates. A document is in one shard only, and a query's examples in one
group, so overlaps are merged file by file (`swsdist.reduce.spans`), and the best N of each query are kept. All orders are
total (score descending, then doc_id, channel, first, last, example), so neither the order nor the number of the files
matters. Memory holds one file's rows of the bucket and some N detections a query.

Statistics for calibration (`swsdist.calibrate.statistics`) are over all candidates, before any is removed; after a first pass
over those of a sample of the documents (`swsdist.methods.sample`), or of a query that has none there over all that it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from swsdist.calibrate.statistics import Statistic, Tally, completed, load_statistics, summed, to_table
from swsdist.methods.sample import in_sample
from swsdist.reduce.spans import Best, Merge, Names, SpanFilter, merge_overlaps, spans_of
from swsdist.reduce.speakers import Speakers


class Reduced(NamedTuple):
    """The detections of a bucket (DETECTIONS, in total order) and its queries' statistics (QUERY_STATISTICS)."""

    detections: pa.Table
    statistics: pa.Table


class Sums:
    """Statistics of candidates that are added table by table.

    Args:
        wanted: statistics by name.
        sample: see `Bucket`.
    """

    def __init__(self, wanted: Mapping[str, Statistic], sample: int | None) -> None:
        self._wanted, self._sample = wanted, sample
        self._everything: dict[str, list[Tally]] = {name: [Tally(item.quantities)] for name, item in wanted.items()}
        self._sampled: dict[str, list[Tally]] = {name: [Tally(item.quantities)] for name, item in wanted.items()}

    def add(self, candidates: pa.Table) -> None:
        """Add CANDIDATES, with a column `speaker` if a statistic wants it."""
        drawn = None if self._sample is None else candidates.filter(pa.array(in_sample(candidates, self._sample)))
        for name, item in self._wanted.items():
            self._everything[name].append(item.of(candidates))
            if drawn is not None:
                self._sampled[name].append(item.of(drawn))

    def tallies(self, parts: int = 1) -> dict[str, Tally]:
        """The statistics so far, of the sample; of keys that lack it in their first `parts` parts of everything."""
        result = {name: summed(some) for name, some in self._everything.items()}
        if self._sample is None:
            return result
        return {name: completed(summed(self._sampled[name]), every, parts) for name, every in result.items()}

    def table(self) -> pa.Table:
        """The same: QUERY_STATISTICS."""
        return to_table(self.tallies())


class Bucket:
    """The candidates of one bucket, added file by file in any order, and their detections at any time.

    Args:
        tick: s a unit of `first` and `last`.
        overlap: of two candidates that overlap by more than this part of the shorter, the better stays.
        nbest: detections kept per query.
        system: name to put into their column.
        merge: of the others: `best` drops them, `sum` adds their posteriors.
        statistics: names of those that calibration needs.
        speakers: of the documents, for statistics by speaker.
        span_filter: chooses among a document's detections; None: all.
        sample: limit of the documents that statistics are over (`swsdist.methods.sample`); None: all.

    Raises:
        ConfigError: no such statistic.
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
        sample: int | None = None,
    ) -> None:
        self._named, self._overlap, self._merge, self._speakers = (tick, system), overlap, merge, speakers
        self._names = Names()
        self._best = Best(self._names, nbest, span_filter)
        self._sums = Sums(load_statistics(statistics), sample)

    def add(self, candidates: pa.Table) -> None:
        """Merge the CANDIDATES of a file, in which its documents are whole.

        Raises:
            DataError: posteriors are to be summed, and a score is not in [0, 1].
        """
        with_speakers = candidates if self._speakers is None else self._speakers.of_candidates(candidates)
        self._sums.add(with_speakers)
        # Candidates below the N best suppress no better one, so they can be dropped before overlaps are removed.
        spans = spans_of(candidates, self._names, self._best.may_hold if self._merge == "best" else None)
        self._best.add(merge_overlaps(spans, self._overlap, self._merge))

    def all_of(self, candidates: Iterable[pa.Table]) -> Reduced:
        """The detections of some files, and of those added before; see `add`."""
        for table in candidates:
            self.add(table)
        return self.reduced()

    def reduced(self, *, last: bool = True) -> Reduced:
        """The detections and statistics so far.

        Args:
            last: no more candidates follow, so their memory is freed.
        """
        return Reduced(self._best.table(*self._named, last=last), self._sums.table())


#: Best hits of a query that are looked for.
BEST = 20

#: Columns that tell detections apart, without what the list was named.
_HIT = ["query_id", "doc_id", "channel", "start", "end", "cost", "example"]


def best_found(
    exact: Iterable[pa.Table], proposed: Iterable[pa.Table], *, tick: float, overlap: float
) -> tuple[int, int]:
    """The number of best hits of an exact search, and of those among them that are the other search's best hits too.

    Args:
        exact, proposed: tables of CANDIDATES of the same queries in the same documents; a document in one of them.
        tick, overlap: see `Bucket`.
    """
    hits = []
    for tables in (exact, proposed):
        best = Bucket(tick=tick, overlap=overlap, nbest=BEST, system="").all_of(tables).detections
        hits.append(set(zip(*(best[name].to_pylist() for name in _HIT), strict=True)))
    return len(hits[0]), len(hits[0] & hits[1])
