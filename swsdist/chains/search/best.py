"""This module finds a run's detections of highest score."""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.io.filesystem import Folder
from swsdist.pipeline.task import Part
from swsdist.store import parquet
from swsdist.store.reading import Store

_ORDER = [(name, "ascending") for name in ("query_id", "doc_id", "channel", "start")]


def files(parts: list[Part]) -> list[list[Any]]:
    """Names of a table's files, each with its first slot, by which files of two tables are of one bucket."""
    return [[part.name, part.slots[0]] for part in parts]


def rows(
    run: Folder, scored: list[list[Any]], trials: list[list[Any]], store: Store, most: int
) -> list[dict[str, Any]]:
    """The detections of highest score, at most three a query, each with its document's path; `verdict` where scored.

    Args:
        run: the run folder.
        scored: files of DETECTIONS, as `files` gives them.
        trials: files of TRIALS, likewise; none where nothing was aligned.
        store: that was searched.
        most: how many at most.
    """
    best: pa.Table | None = None
    aligned = {slot: name for name, slot in trials}
    for name, slot in scored:
        table = parquet.read(run, name)
        if table.num_rows == 0:
            continue
        verdicts = _verdicts(run, aligned[slot]) if slot in aligned else {}
        top = _top(table, 4 * most).to_pylist()
        words = [verdicts.get((r["query_id"], r["doc_id"], r["channel"], r["start"], r["end"]), "unknown") for r in top]
        part = pa.Table.from_pylist(top, table.schema).append_column("verdict", pa.array(words, pa.string()))
        best = part if best is None else _top(pa.concat_tables([best, part]), 4 * most)
    if best is None:
        return []
    chosen: list[dict[str, Any]] = []
    of_query: dict[str, int] = {}
    for row in _top(best, 4 * most).to_pylist():
        of_query[row["query_id"]] = of_query.get(row["query_id"], 0) + 1
        if of_query[row["query_id"]] <= 3 and len(chosen) < most:
            chosen.append(row)
    paths = store.paths([row["doc_id"] for row in chosen])
    return [{**row, "path": paths[row["doc_id"], row["channel"]]} for row in chosen]


def _top(table: pa.Table, most: int) -> pa.Table:
    order = pc.sort_indices(table, [("score", "descending"), *_ORDER])
    return table.take(order[:most])


def _verdicts(run: Folder, name: str) -> dict[tuple[Any, ...], Literal["hit", "false alarm"]]:
    table = parquet.read(run, name).filter(pc.is_valid(pc.field("score")))
    columns = ("query_id", "doc_id", "channel", "start", "end")
    keys = zip(*(table[name].to_pylist() for name in columns), strict=True)
    return {
        key: "hit" if true else "false alarm"
        for key, true in zip(keys, pc.is_valid(table["ref_start"]).to_pylist(), strict=True)
    }
