"""Detections as Audacity's labels, one file per document: YES decisions, or else the best few of each query."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.exports.interface import Material
from swsdist.io.labels import write_labels

#: Sort key of a detection within its query: its score, and minus its row.
_Place = tuple[float, int]


def write(material: Material, folder: Path) -> None:
    """Write `labels/`.

    Raises:
        UserError: a name is not valid in a label.
    """
    (folder / "labels").mkdir()
    write_labels(shown(material), folder / "labels")


def shown(material: Material) -> Iterator[pa.RecordBatch]:
    """YES decisions and, of each query, the best `material.undecided` detections without decision; DETECTIONS."""
    least = _least(material)
    for batch, undecided in _undecided(material):
        keep = pc.fill_null(batch.column("decision"), False).to_pylist()
        for row, query, place in undecided:
            keep[row] = query in least and place >= least[query]
        yield batch.filter(pa.array(keep, pa.bool_()))


def _least(material: Material) -> dict[str, _Place]:
    """By query: the last of its best undecided detections."""
    best: dict[str, list[_Place]] = {}
    for _, undecided in _undecided(material) if material.undecided else ():
        for _, query, place in undecided:
            places = best.setdefault(query, [])
            if len(places) < material.undecided:
                heapq.heappush(places, place)
            else:
                heapq.heappushpop(places, place)
    return {query: places[0] for query, places in best.items()}


def _undecided(material: Material) -> Iterator[tuple[pa.RecordBatch, list[tuple[int, str, _Place]]]]:
    """Each batch with its undecided rows: row in the batch, query and sort key."""
    count = 0
    for batch in material.batches():
        decision = batch.column("decision")
        rows: list[int] = pc.indices_nonzero(pc.is_null(decision)).to_pylist() if decision.null_count else []
        some = batch.take(pa.array(rows, pa.int64()))
        queries, scores = (some.column(name).to_pylist() for name in ("query_id", "score"))
        yield (
            batch,
            [(row, query, (score, -count - row)) for row, query, score in zip(rows, queries, scores, strict=True)],
        )
        count += batch.num_rows
