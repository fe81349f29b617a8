"""The places that queries were cut from, which can be excluded from detections and references.

A place is excluded on all channels of its recording, which may carry the same sound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: End of a place without an end, s.
_END = 1e9

#: Sources of a query's examples: by query and recording, spans in s, ascending.
SourcePlaces = Mapping[tuple[str, str], list[tuple[float, float]]]


def source_places(queries: Iterable[Mapping[str, Any]], documents: pa.Table, *, by_path: bool) -> SourcePlaces:
    """The places, in the names and times of recordings.

    Args:
        queries: rows of QUERIES; rows without a document are ignored.
        documents: CORPUS or PLACED.
        by_path: include rows that name only a document's file.
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
    results: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in queries:
        recording = by_name.get(row["doc_id"]) if row["doc_id"] is not None else by_file.get(row["path"])
        if recording is not None:
            span = (row["start"] or 0.0, _END if row["end"] is None else row["end"])
            results.setdefault((row["query_id"], recording), []).append(span)
    return {key: sorted(spans) for key, spans in sorted(results.items())}


def outside_places(table: pa.Table, places: SourcePlaces) -> pa.Table:
    """Rows outside of their query's source places: with an overlap of at most half of the shorter.

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
