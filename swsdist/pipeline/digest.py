"""What a run computed, as one SHA-256: equal digests prove equal results, however the work was cut.

Over the rows of the tables from the store to the scores, each in canonical order, and the measures. What tells how or where the
work was done (paths, identities of files, shards, rows, costs) is left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.chains.search.align import aligned_name
from swsdist.chains.search.decide import scored_name, trials_name
from swsdist.chains.search.normalise import normalised_name
from swsdist.chains.search.queries import examples_name
from swsdist.chains.search.reduce import candidates_of, detections_name, statistics_name
from swsdist.chains.search.score import measures_name, terms_name
from swsdist.chains.search.search import candidates_name
from swsdist.chains.search.stages import STAGES
from swsdist.errors import StoreError
from swsdist.io.filesystem import Folder
from swsdist.pipeline.plan import Plan, load_plan
from swsdist.pipeline.task import receipt_name
from swsdist.store import parquet
from swsdist.store.manifest import Manifest
from swsdist.store.reading import Store

#: Tables whose parts hold their queries whole, in total order: table -> stage, and the name of a part.
_PARTS: dict[str, tuple[str, Callable[[str], str]]] = {
    "queries": ("queries", examples_name),
    "statistics": ("reduce", statistics_name),
    "detections": ("reduce", detections_name),
    "normalised": ("normalise", normalised_name),
    "aligned": ("align", aligned_name),
    "scored": ("decide", scored_name),
    "trials": ("decide", trials_name),
    "terms": ("score", terms_name),
}

#: What the report shows: the end of the way, which is quick to read.
FINAL = ("scored", "terms", "measures")

_CANDIDATES = [(name, "ascending") for name in ("query_id", "example", "doc_id", "channel", "last", "first")]


def digests(run: Folder, store: Folder, only: tuple[str, ...] | None = None) -> dict[str, str]:
    """SHA-256 of each table that the run's current plan made, by name.

    Args:
        run: the run folder.
        store: its store.
        only: names of tables; all by default.
    """
    plan = load_plan(run)
    _complete(run, plan)
    found: dict[str, str] = {}
    if only is None:
        if plan.manifest is not None:
            found["documents"], found["features"] = _store(store, plan.manifest)
        names = [candidates_name(one) for one in plan.stages.get("search", [])]
        if names:
            found["candidates"] = _by_query(_candidates(run, names))
    listing = run.listing("tables")
    for table, (stage, name_of) in _PARTS.items():
        names = [name for one in plan.stages.get(stage, []) if (name := name_of(one)) in listing]
        if names and (only is None or table in only):
            found[table] = _by_query(parquet.read(run, name) for name in names)
    for one in plan.stages.get("score", []):
        found["measures"] = hashlib.sha256(run.read_bytes(measures_name(one))).hexdigest()
    return found


def _complete(run: Folder, plan: Plan) -> None:
    """Raises StoreError if a planned task is not done: half a digest would prove nothing."""
    receipts = run.listing("receipts")
    for stage, fingerprints in plan.stages.items():
        left = sum(receipt_name(stage, one) not in receipts for one in fingerprints)
        if left and not STAGES[stage].in_store:
            raise StoreError(
                f"stage {stage} is not done: {left} of {len(fingerprints)} tasks are left",
                where=run.path(),
                remedy="run it again to its end; then it has a digest",
            )


def combined(parts: dict[str, str]) -> str:
    """One SHA-256 of several, by name."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _store(folder: Folder, manifest: Manifest) -> tuple[str, str]:
    store = Store(folder, manifest)
    columns = ["doc_id", "channel", "duration", "frames", "sha256", "speaker", "mean", "variance"]
    table = store.documents(columns=columns).sort_by([("doc_id", "ascending"), ("channel", "ascending")])
    frames: dict[tuple[str, int], Any] = {}
    for shard in manifest.shards:
        for block in store.blocks(shard.name):
            # One running hash a document: frames of one are consecutive, so blocks add up to the whole.
            running = frames.setdefault((block.doc_id, block.channel), hashlib.sha256())
            running.update(block.features.tobytes())
    whole = hashlib.sha256()
    for key in sorted(frames):
        whole.update(f"{key[0]}\0{key[1]}\0{frames[key].hexdigest()}\n".encode())
    return _rows(table), whole.hexdigest()


def _candidates(folder: Folder, names: list[str]) -> Iterator[pa.Table]:
    """All files' candidates of one slot after the other, each in canonical order."""
    files: dict[int, set[str]] = {}
    for name in names:
        for batch in parquet.rows(folder, name, ["slot"]):
            for slot in pc.unique(batch.column("slot")).to_pylist():
                files.setdefault(slot, set()).add(name)
    for slot, holders in sorted(files.items()):
        tables = [candidates_of(folder, name, range(slot, slot + 1)) for name in sorted(holders)]
        yield pa.concat_tables(tables).drop_columns(["slot"]).sort_by(_CANDIDATES)


def _by_query(parts: Iterable[pa.Table]) -> str:
    """SHA-256 of the SHA-256 of each query's rows, by query_id: how queries are spread over parts does not matter."""
    found: dict[str, str] = {}
    columns: list[str] = []
    for table in parts:
        columns = table.column_names
        ids = table["query_id"].to_pylist()
        first = 0
        for query_id, group in groupby(ids):
            count = sum(1 for _ in group)
            found[query_id] = _rows(table.slice(first, count))
            first += count
    return hashlib.sha256(json.dumps([columns, sorted(found.items())]).encode()).hexdigest()


def _rows(table: pa.Table) -> str:
    """SHA-256 of a table's rows in their order, column by column."""
    running = hashlib.sha256()
    for name in table.column_names:
        column = table[name].combine_chunks()
        running.update(f"{name} {column.type} {len(column)}\n".encode())
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
            running.update(pc.is_valid(column).to_numpy(zero_copy_only=False).tobytes())
            running.update(pc.fill_null(column, 0).to_numpy().tobytes())
        elif pa.types.is_large_binary(column.type):
            for value in column:
                running.update(hashlib.sha256(value.as_buffer()).digest())
        else:
            running.update(json.dumps(column.to_pylist(), default=str).encode())
    return running.hexdigest()
