"""Queries that were cut from recordings which are searched find themselves there: their own places can be left out of what is
found, and of what there is to be found.

A place is left out on all channels of its recording: the same sound is on both where there are two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: Of a place without an end (s).
_END = 1e9

#: Where a query's examples were cut from: by query and recording, spans in s, rising.
SourcePlaces = Mapping[tuple[str, str], list[tuple[float, float]]]


def source_places(queries: Iterable[Mapping[str, Any]], documents: pa.Table, *, by_path: bool) -> SourcePlaces:
    """The places, in the names and times of recordings.

    Args:
        queries: rows of QUERIES; those that name a document.
        documents: CORPUS or PLACED.
        by_path: also those that only name a document's file.
    """
    queries = [row for row in queries if row["doc_id"] is not None or (by_path and row["path"] is not None)]
    if not queries:
        return {}
    ids = pa.array({row["doc_id"] for row in queries if row["doc_id"] is not None}, pa.string())
    paths = pa.array({row["path"] for row in queries if row["doc_id"] is None}, pa.string())
    meant = pc.or_(pc.is_in(documents["doc_id"], ids), pc.is_in(documents["path"], paths))
    columns = ["doc_id", "path"]
    if "recording" in documents.column_names:
        meant = pc.or_(meant, pc.is_in(documents["recording"], ids))
        columns.append("recording")
    by_name: dict[str, str] = {}
    by_file: dict[str, str] = {}
    for row in documents.select(columns).filter(meant).to_pylist():
        recording = row.get("recording") or row["doc_id"]
        by_name[row["doc_id"]] = by_name[recording] = by_file[row["path"]] = recording
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in queries:
        recording = by_name.get(row["doc_id"]) if row["doc_id"] is not None else by_file.get(row["path"])
        if recording is not None:
            span = (row["start"] or 0.0, _END if row["end"] is None else row["end"])
            found.setdefault((row["query_id"], recording), []).append(span)
    return {key: sorted(spans) for key, spans in sorted(found.items())}


def outside_places(table: pa.Table, places: SourcePlaces) -> pa.Table:
    """Rows that do not lie at their own query's place: that overlap with it by no more than half of the shorter one.

    Args:
        table: with query_id, doc_id (of a recording), start and end: DETECTIONS, REFERENCES.
        places: of its queries.
    """
    if not places or not table.num_rows:
        return table
    keys = zip(table["query_id"].to_pylist(), table["doc_id"].to_pylist(), strict=True)
    start, end = table["start"].to_numpy(), table["end"].to_numpy()
    kept = np.ones(table.num_rows, bool)
    for k, key in enumerate(keys):
        for first, last in places.get(key, ()):
            common = min(end[k], last) - max(start[k], first)
            kept[k] &= common <= min(end[k] - start[k], last - first) / 2
    return table.filter(pa.array(kept))
