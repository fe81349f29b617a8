"""A run's highest-scoring detections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.io.filesystem import Folder
from swsdist.pipeline.task import Part
from swsdist.store import parquet
from swsdist.store.reading import Recording, Store

_KEY = ("query_id", "doc_id", "channel", "start", "end")
_BY_SCORE = [("score", "descending"), *((name, "ascending") for name in _KEY)]


def files(parts: Sequence[Part]) -> list[list[Any]]:
    """Names of a table's files, each with its first slot, which matches files of two tables by bucket."""
    return [[part.name, part.slots[0]] for part in parts]


def rows(
    run: Folder, scored: list[list[Any]], trials: list[list[Any]], store: Store, most: int
) -> list[dict[str, Any]]:
    """The highest-scoring detections, each with its document's path; `verdict` if scored.

    They alternate between queries: the best of each before any second, and so on. Fewer than `most` are returned only
    if there are no more detections.

    Args:
        run: the run folder.
        scored: files of DETECTIONS, from `files`: all detections of a query are in one file.
        trials: files of TRIALS, likewise; empty if not aligned.
        store: the searched store.
        most: greatest number of rows.

    Returns:
        Rows of DETECTIONS with verdict, path (empty if the store does not know the recording) and duration, highest
        score first.
    """
    best: pa.Table | None = None
    aligned = {slot: name for name, slot in trials}
    for name, slot in scored if most else ():
        table = parquet.read(run, name)
        if table.num_rows == 0:
            continue
        verdicts = _verdicts(run, aligned[slot]) if slot in aligned else {}
        top = _first(_with_turns(table), most)
        result = top.to_pylist()
        words = [verdicts.get(tuple(row[item] for item in _KEY), "unknown") for row in result]
        part = top.append_column("verdict", pa.array(words, pa.string()))
        best = part if best is None else _first(pa.concat_tables([best, part]), most)
    if best is None:
        return []
    chosen = best.take(pc.sort_indices(best, _BY_SCORE)).drop_columns(["turn"]).to_pylist()
    found_in = store.recordings([row["doc_id"] for row in chosen])
    # This store may lack documents searched by another system of a fusion: such a hit has no audio.
    return [
        {**row, **found_in.get((row["doc_id"], row["channel"]), Recording("", row["end"]))._asdict()} for row in chosen
    ]


def _with_turns(table: pa.Table) -> pa.Table:
    """Add a column `turn`: 0 for the best detection of each query, then 1, 2, ..."""
    table = table.take(pc.sort_indices(table, [("query_id", "ascending"), *_BY_SCORE]))
    codes = table["query_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    first = np.searchsorted(codes, codes)  # ascending, since ids were sorted before numbering
    turns = np.arange(len(codes)) - first
    return table.append_column("turn", pa.array(turns, pa.int64()))


def _first(table: pa.Table, most: int) -> pa.Table:
    """The rows with the lowest turns."""
    return table.take(pc.sort_indices(table, [("turn", "ascending"), *_BY_SCORE])[:most])


def _verdicts(run: Folder, name: str) -> dict[tuple[Any, ...], Literal["hit", "false alarm"]]:
    table = parquet.read(run, name).filter(pc.is_valid(pc.field("score")))
    keys = zip(*(table[name].to_pylist() for name in _KEY), strict=True)
    return {
        key: "hit" if true else "false alarm"
        for key, true in zip(keys, pc.is_valid(table["ref_start"]).to_pylist(), strict=True)
    }
