"""Aligned lists of queries, for properties of measures."""

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


def parts_of_queries(whole: pa.Table, count: int, random: Any) -> list[pa.Table]:
    """The rows of a list in any order, the queries divided among parts."""
    shuffled = whole.take(pa.array(random.sample(range(len(whole)), len(whole)), pa.int64()))
    bucket = {query: random.randrange(count) for query in sorted(set(whole["query_id"].to_pylist()))}
    which = [bucket[query] for query in shuffled["query_id"].to_pylist()]
    return [shuffled.filter(pa.array([one == part for one in which], pa.bool_())) for part in range(count)]
