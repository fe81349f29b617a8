"""The places that queries were cut from, which can be excluded from detections and references.

A place is excluded on all channels of its recording, which may carry the same sound.

Detections in documents that are places in recordings become detections in the recordings.

Times become those of the recording, rounded to 1e-6 s. Documents of one recording may overlap, and give duplicate
detections: of two detections that overlap by more than a part of the shorter, the better is kept, as within a
document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.types import DETECTIONS
from swsdist.reduce.spans import Names, Spans, claim_places, in_order

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


#: Columns of DOCUMENTS that say where documents lie.
WHERE = ("doc_id", "channel", "recording", "start")

#: Units of a second in which overlaps are counted.
_FINE = 1_000_000


def in_recordings(detections: pa.Table, documents: pa.Table, overlap: float) -> pa.Table:
    """Detections by recording, in total order.

    Args:
        detections: DETECTIONS, by document.
        documents: columns WHERE of DOCUMENTS; all documents of the detections.
        overlap: of two that overlap by more than this part of the shorter, the better stays.
    """
    placed_documents = pc.and_(
        pc.is_valid(documents["recording"]), pc.is_in(documents["doc_id"], pc.unique(detections["doc_id"]))
    )
    keys, names, starts = _recording_starts(documents.filter(placed_documents))
    if not keys or detections.num_rows == 0:
        return detections
    rows = [
        keys.get(key, -1)
        for key in zip(detections["doc_id"].to_pylist(), detections["channel"].to_pylist(), strict=True)
    ]
    at = np.array(rows, np.int64)
    recording_ids = pa.array([names[row] if row >= 0 else None for row in rows], pa.string())
    doc_id = pc.coalesce(recording_ids, detections["doc_id"].combine_chunks())
    offset = np.where(at >= 0, np.array(starts)[at], 0.0)
    start, end = (np.round(detections[name].to_numpy() + offset, 6) for name in ("start", "end"))
    placed = detections
    for name, values in (("doc_id", doc_id), ("start", pa.array(start)), ("end", pa.array(end))):
        placed = placed.set_column(DETECTIONS.get_field_index(name), DETECTIONS.field(name), values)
    codes, none = Names(), np.zeros(len(at), np.int64)
    spans = Spans(
        query=codes.queries(placed["query_id"]),
        document=codes.documents(placed["doc_id"]),
        channel=placed["channel"].to_numpy().astype(np.int64),
        example=placed["example"].fill_null(0).to_numpy().astype(np.int64),
        first=np.rint(start * _FINE).astype(np.int64),
        last=np.rint(end * _FINE).astype(np.int64) - 1,
        cost=np.arange(len(at)),  # the row, to find it again
        scale=none,
        score=np.array(placed["score"].to_numpy()),
    )
    spans, order, owner = claim_places(spans, overlap)
    kept = in_order(spans.take(order[owner == np.arange(spans.rows)]), codes)
    return placed.take(pa.array(kept.cost))


def _recording_starts(documents: pa.Table) -> tuple[dict[tuple[str, int], int], list[str], list[float]]:
    """Rows by document and channel, and of each row recording and start."""
    columns = [documents[name].to_pylist() for name in WHERE]
    keys = {key: row for row, key in enumerate(zip(columns[0], columns[1], strict=True))}
    return keys, columns[2], columns[3]
