"""Aligned lists of queries, for properties of measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from swsdist.core.types import TRIALS


def aligned_list(lists: Mapping[str, tuple[int, Sequence[tuple[Any, ...]]]]) -> pa.Table:
    """By query, its references without detection, and its detections: score, whether it is a hit, and perhaps a decision."""
    rows: list[dict[str, Any]] = []
    for query, (missed, detections) in lists.items():
        rows += [{"query_id": query, "ref_start": 1.0} for _ in range(missed)]
        for score, hit, *decision in detections:
            row = {"query_id": query, "start": 1.0, "score": score, "ref_start": 1.0 if hit else None}
            rows.append({**row, "decision": decision[0] if decision else None})
    return pa.Table.from_pylist([row | {"doc_id": "d", "channel": 1} for row in rows], TRIALS)
