"""The best hits of a run, with sound."""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio.clips import clip_data_uri
from swsdist.audio.reader import probe
from swsdist.chains.search.decide import scored_name, trials_name
from swsdist.errors import AudioError
from swsdist.pipeline.state import State
from swsdist.report.data import Hit
from swsdist.store import parquet
from swsdist.store.reading import Store

_ORDER = [(name, "ascending") for name in ("query_id", "doc_id", "channel", "start")]


def best_rows(state: State, most: int) -> list[dict[str, Any]]:
    """The detections of highest score, at most three a query, each with its document's path; `verdict` where scored."""
    best: pa.Table | None = None
    for receipt in state.ended["decide"].receipts if "decide" in state.ended else []:
        if "detections" not in receipt.summary:
            continue
        table = parquet.read(state.run, scored_name(receipt.fingerprint))
        if table.num_rows == 0:
            continue
        verdicts = _verdicts(state, receipt.fingerprint) if "trials" in receipt.summary else {}
        rows = _top(table, 4 * most).to_pylist()
        words = [
            verdicts.get((r["query_id"], r["doc_id"], r["channel"], r["start"], r["end"]), "unknown") for r in rows
        ]
        part = pa.Table.from_pylist(rows, table.schema).append_column("verdict", pa.array(words, pa.string()))
        best = part if best is None else _top(pa.concat_tables([best, part]), 4 * most)
    if best is None or state.manifest is None:
        return []
    chosen: list[dict[str, Any]] = []
    of_query: dict[str, int] = {}
    for row in _top(best, 4 * most).to_pylist():
        of_query[row["query_id"]] = of_query.get(row["query_id"], 0) + 1
        if of_query[row["query_id"]] <= 3 and len(chosen) < most:
            chosen.append(row)
    keys = pa.array([row["doc_id"] for row in chosen], pa.string())
    documents = Store(state.store, state.manifest).documents(columns=["doc_id", "channel", "path", "duration"])
    places = {
        (row["doc_id"], row["channel"]): row
        for row in documents.filter(pc.is_in(documents["doc_id"], keys)).to_pylist()
    }
    return [{**row, **places[row["doc_id"], row["channel"]]} for row in chosen]


def best_hits(state: State) -> tuple[Hit, ...]:
    """For the page: with the sound of the hit and of the query."""
    queries: dict[str, dict[str, Any]] = {}
    if state.config.corpus.queries is not None:
        for row in state.queries.to_pylist():
            queries.setdefault(row["query_id"], row)
    hits = []
    for row in best_rows(state, state.config.report.clips):
        query = queries.get(row["query_id"], {})
        hits.append(
            Hit(
                query_id=row["query_id"],
                term=query.get("term"),
                doc_id=row["doc_id"],
                channel=row["channel"],
                start=row["start"],
                end=row["end"],
                score=row["score"],
                verdict=row["verdict"],
                audio=_sound(state, row["path"], row["channel"], row["start"], row["end"], 0.2),
                query_audio=_sound(state, query["path"], query["channel"], query.get("start"), query.get("end"), 0.0)
                if query
                else None,
            )
        )
    return tuple(hits)


def _sound(state: State, path: str, channel: int, start: float | None, end: float | None, pad: float) -> str | None:
    """A data URI; None where the recording has gone since it was indexed: the page then shows the hit without sound."""
    storage = state.config.storage
    try:
        last = probe(path, storage).duration if end is None else end
        return clip_data_uri(path, start or 0.0, last, channel=channel, pad=pad, storage=storage)
    except AudioError:
        return None


def _top(table: pa.Table, most: int) -> pa.Table:
    order = pc.sort_indices(table, [("score", "descending"), *_ORDER])
    return table.take(order[:most])


def _verdicts(state: State, fingerprint: str) -> dict[tuple[Any, ...], Literal["hit", "false alarm"]]:
    table = parquet.read(state.run, trials_name(fingerprint)).filter(pc.is_valid(pc.field("score")))
    columns = ("query_id", "doc_id", "channel", "start", "end")
    keys = zip(*(table[name].to_pylist() for name in columns), strict=True)
    return {
        key: "hit" if true else "false alarm"
        for key, true in zip(keys, pc.is_valid(table["ref_start"]).to_pylist(), strict=True)
    }
