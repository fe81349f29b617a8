"""Detections in documents that are places in recordings become detections in the recordings.

Times become those of the recording, rounded to 1e-6 s. Documents of one recording may overlap, and give duplicate
detections: of two detections that overlap by more than a part of the shorter, the better is kept, as within a
document.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.core.types import DETECTIONS
from swsdist.reduce.spans import claim_places
from swsdist.reduce.spans import Names, Spans, in_order

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
