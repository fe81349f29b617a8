"""The sweep chain's stages have a version each, which is raised when their bytes change: held by constants.

The list is made of integers alone (a linear congruential generator), and what is computed of it of correctly rounded
operations, so the constants are the same everywhere. When this fails, see tests/golden/test_stage_digests.py for what to do.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pyarrow as pa

from swsdist.calibrate.rescoring import Rescoring, compact_list, rescore_fitted
from swsdist.chains.sweep.chain import ScorePoints, SortScores
from swsdist.core.types import DETECTIONS, REFERENCES
from swsdist.score.align import align, score_limits

GOLDEN = {
    "sort-scores": (1, "a3bd4f48d46f9c53989e0fc13a7c6d714f3f3389135d6fa42bfd73758e986fc1"),
    "score_points": (1, "e69c5b14af0b76bdd3abf2483ce602166bcaf25f8d798fa0af374b5ddd334ad4"),
}


def _list() -> pa.Table:
    state, rows, true = 20141, [], []

    def draw(below: int) -> int:
        nonlocal state
        state = (1103515245 * state + 12345) % (1 << 31)
        return (state >> 8) % below

    for _ in range(600):
        query, start = f"q{draw(12):02d}", draw(400)
        place = {"query_id": query, "doc_id": f"d{draw(3)}", "channel": 1}
        rows.append({**place, "start": start / 4, "end": start / 4 + 0.5, "score": draw(1024) / 1024})
        if draw(5) == 0:
            true.append({**place, "start": (start + draw(3)) / 4, "end": (start + 3) / 4 + 0.25})
    names = ["query_id", "doc_id", "channel", "start", "end", "score"]
    found = pa.Table.from_pylist(rows, pa.schema([DETECTIONS.field(name) for name in names]))
    low, high = score_limits(found["score"].to_numpy())
    return align(found, pa.Table.from_pylist(true, REFERENCES), tolerance=0.5, low=low, high=high)


def _digest(values: object) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def test_bytes_change_with_versions() -> None:
    part = compact_list(_list(), tolerance=0.5, conventions="stdeval")
    whole = Rescoring.of([part], tolerance=0.5, conventions="stdeval")
    assert len(whole.probability) > 20
    points: list[object] = []
    for method in ("kst", "sto", "oracle-kst"):
        found = whole.at(method, [0.5, 1.5], [10.0, 66.5], trials=900)
        points += [found.points.twv.tolist(), found.hits.tolist(), found.false_alarms.tolist()]
    fitted = rescore_fitted(whole, 3, np.array([1.0, 66.5]), trials=900, rejects_all=True)
    maxima = [*fitted.best.points, fitted.threshold]
    points += [fitted.decided.points.twv.tolist(), [column.tolist() for column in maxima]]
    now = {
        "sort-scores": (SortScores.version, _digest([table.to_pylist() for table in part])),
        "score_points": (ScorePoints.version, _digest(points)),
    }
    assert now == GOLDEN, now
