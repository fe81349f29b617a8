"""Recall of a first pass: the part of the exact search's best hits that it keeps."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from swsdist.reduce.detections import Bucket

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
