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
from swsdist.reduce.overlaps import Merge, merged
from swsdist.reduce.spans import Best, Kept, Names, spans_of
from swsdist.reduce.talkers import Talkers


class Reduced(NamedTuple):
    """The detections of a bucket (DETECTIONS, in total order) and its queries' statistics (QUERY_STATISTICS)."""

    detections: pa.Table
    statistics: pa.Table


def reduce_bucket(
    candidates: Iterable[pa.Table],
    *,
    tick: float,
    overlap: float,
    nbest: int,
    system: str,
    merge: Merge = "best",
    statistics: Sequence[str] = (),
    talkers: Talkers | None = None,
    kept: Kept | None = None,
) -> Reduced:
    """Merge one bucket's candidates.

    Args:
        candidates: CANDIDATES, one table a file.
        tick: s a unit of `first` and `last`.
        overlap: of two candidates that overlap by more than this part of the shorter, the better stays.
        nbest: detections kept per query.
        system: name to put into their column.
        merge: what becomes of the others: `best` drops them, `sum` adds their posteriors.
        statistics: names of those that calibration wants.
        talkers: of the documents, where a statistic is by speaker.
        kept: of a document's detections these are; None: all.

    Raises:
        ConfigError: there is no such statistic.
        DataError: posteriors are to be summed, and a score is not in [0, 1].
    """
    names = Names()
    best = Best(names, nbest, kept)
    wanted = made(statistics)
    parts: dict[str, list[Tally]] = {name: [Tally(each.quantities)] for name, each in wanted.items()}
    for table in candidates:
        known = table if talkers is None else talkers.added(table)
        for name, each in wanted.items():
            parts[name].append(each.of(known))
        # What is not among the best cannot take a better one's place, so it may go before overlaps are looked at.
        spans = spans_of(table, names, best.may_hold if merge == "best" else None)
        best.add(merged(spans, overlap, merge))
    return Reduced(best.table(tick, system), to_table({name: summed(some) for name, some in parts.items()}))
