"""Queries that were cut from recordings which are searched find themselves there: their own places can be left out of what is
found, and of what there is to be found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

#: Of a place without an end (s).
_END = 1e9

#: Where a query's examples were cut from: by query, recording and channel, spans in s.
OwnPlaces = Mapping[tuple[str, str, int], list[tuple[float, float]]]


def own_places(queries: Iterable[Mapping[str, Any]], documents: pa.Table, *, by_path: bool) -> OwnPlaces:
    """The places, in the names and times of recordings.

    Args:
        queries: rows of QUERIES; those that name a document.
        documents: CORPUS or PLACED.
        by_path: also those that only name a document's file.
    """
    queries = [row for row in queries if row["doc_id"] is not None or (by_path and row["path"] is not None)]
    if not queries:
        return {}
    rows = documents.select([n for n in ("doc_id", "channel", "path", "recording") if n in documents.column_names])
    named: dict[tuple[str, int], str] = {}
    for row in rows.to_pylist():
        recording = row.get("recording") or row["doc_id"]
        named[row["doc_id"], row["channel"]] = named[recording, row["channel"]] = recording
        if row["path"]:
            named.setdefault((f"\0{row['path']}", row["channel"]), recording)
    found: dict[tuple[str, str, int], list[tuple[float, float]]] = {}
    for row in queries:
        key = row["doc_id"] if row["doc_id"] is not None else f"\0{row['path']}"
        if (recording := named.get((key, row["channel"]))) is not None:
            span = (row["start"] or 0.0, _END if row["end"] is None else row["end"])
            found.setdefault((row["query_id"], recording, row["channel"]), []).append(span)
    return found


def elsewhere(table: pa.Table, places: OwnPlaces) -> pa.Table:
    """Rows that do not lie at their own query's place: that overlap with it by no more than half of the shorter one.

    Args:
        table: with query_id, doc_id (of a recording), channel, start and end: DETECTIONS, REFERENCES.
        places: of its queries.
    """
    if not places or not table.num_rows:
        return table
    keys = zip(*(table[name].to_pylist() for name in ("query_id", "doc_id", "channel")), strict=True)
    start, end = table["start"].to_numpy(), table["end"].to_numpy()
    kept = np.ones(table.num_rows, bool)
    for k, key in enumerate(keys):
        for first, last in places.get(key, ()):
            common = min(end[k], last) - max(start[k], first)
            kept[k] &= common <= min(end[k] - start[k], last - first) / 2
    return table.filter(pa.array(kept))
