"""Which detections can be counted where only some places were judged: those that overlap one judged `yes` or `no`.

What nobody judged is neither a hit nor a false alarm.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_KEY = ("query_id", "doc_id", "channel")


def is_judged(detections: pa.Table, judged: pa.Table) -> NDArray[np.bool_]:
    """Whether each detection overlaps a judged place of its query, bool (detections,).

    Args:
        detections: query_id, doc_id, channel, start, end (s).
        judged: the same columns, of places judged `yes` or `no`.
    """
    places: dict[tuple[str, str, int], list[tuple[float, float]]] = {}
    for query_id, doc_id, channel, start, end in _rows(judged):
        places.setdefault((query_id, doc_id, channel), []).append((start, end))
    result = np.zeros(detections.num_rows, bool)
    names = pc.unique(judged["doc_id"].cast(pa.string())).cast(pa.string())
    near = pc.is_in(detections["doc_id"].cast(pa.string()), value_set=names).to_numpy()
    rows = np.flatnonzero(near)
    for row, (query_id, doc_id, channel, start, end) in zip(
        rows.tolist(), _rows(detections.take(pa.array(rows))), strict=True
    ):
        of_key = places.get((query_id, doc_id, channel), ())
        result[row] = any(start < last and first < end for first, last in of_key)
    return result


def _rows(table: pa.Table) -> list[tuple[str, str, int, float, float]]:
    return list(zip(*(table[name].to_pylist() for name in (*_KEY, "start", "end")), strict=True))
