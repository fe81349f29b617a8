"""What a run computed, as one SHA-256: equal digests prove equal results, however the work was cut.

Over the rows of the tables from the store to the scores, each in canonical order, and the measures. What tells how or where the
work was done (paths, identities of files, shards, rows, costs) is left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from swsdist.io.filesystem import Folder
from swsdist.run.plan import load_plan
from swsdist.run.stages.align import aligned_name
from swsdist.run.stages.decide import scored_name, trials_name
from swsdist.run.stages.normalise import normalised_name
from swsdist.run.stages.queries import examples_name
from swsdist.run.stages.reduce import detections_name, statistics_name
from swsdist.run.stages.score import measures_name, terms_name
from swsdist.run.stages.search import candidates_name
from swsdist.store import parquet
from swsdist.store.manifest import Manifest
from swsdist.store.reading import Store

_KEYS = {
    "queries": ("query_id", "example"),
    "candidates": ("query_id", "example", "doc_id", "channel", "end_frame"),
    "statistics": ("query_id", "example"),
}
_LIST = ("query_id", "doc_id", "channel", "start", "end", "ref_start", "ref_end", "score", "example")


def digests(run: Folder, store: Folder) -> dict[str, str]:
    """SHA-256 of each table that the run's current plan made, by name."""
    plan = load_plan(run)
    found: dict[str, str] = {}
    if plan.manifest is not None:
        documents, features = _store(store, plan.manifest)
        found["documents"], found["features"] = documents, features
    tables = {
        "queries": ("queries", examples_name),
        "candidates": ("search", candidates_name),
        "statistics": ("reduce", statistics_name),
        "detections": ("reduce", detections_name),
        "normalised": ("normalise", normalised_name),
        "aligned": ("align", aligned_name),
        "scored": ("decide", scored_name),
        "trials": ("decide", trials_name),
        "terms": ("score", terms_name),
    }
    listing = run.listing("tables")
    for table, (stage, name_of) in tables.items():
        names = [name_of(one) for one in plan.stages.get(stage, [])]
        names = [name for name in names if name in listing]
        if names:
            found[table] = _table(run, names, _KEYS.get(table, _LIST), drop=("bucket",))
    for one in plan.stages.get("score", []):
        found["measures"] = hashlib.sha256(run.read_bytes(measures_name(one))).hexdigest()
    return found


def digest(run: Folder, store: Folder) -> str:
    """One SHA-256 of all of them."""
    return combined(digests(run, store))


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
    return _rows(table.to_batches(), table.schema.names), whole.hexdigest()


def _table(folder: Folder, names: Iterable[str], keys: tuple[str, ...], drop: tuple[str, ...]) -> str:
    """SHA-256 of the sorted SHA-256 of rows: order-free, and no more in memory than 32 bytes a row."""
    hashes = bytearray()
    columns: list[str] = []
    for name in names:
        for batch in parquet.rows(folder, name):
            columns = [column for column in batch.schema.names if column not in drop]
            for row in zip(*(_values(batch.column(column)) for column in columns), strict=True):
                hashes += hashlib.blake2b(json.dumps(row).encode(), digest_size=32).digest()
    ordered = np.sort(np.frombuffer(bytes(hashes), "S32"))
    return hashlib.sha256(json.dumps(columns).encode() + ordered.tobytes()).hexdigest()


def _rows(batches: Iterable[Any], columns: list[str]) -> str:
    """SHA-256 of rows in their order."""
    running = hashlib.sha256()
    for batch in batches:
        for row in zip(*(_values(batch.column(column)) for column in columns), strict=True):
            running.update(json.dumps(row).encode() + b"\n")
    return running.hexdigest()


def _values(column: Any) -> Iterator[Any]:
    """Plain values; floats by their shortest exact decimal, blobs by their hash."""
    for value in column.to_pylist():
        if isinstance(value, bytes):
            yield hashlib.sha256(value).hexdigest()
        elif isinstance(value, float | int | str | bool | list) or value is None:
            yield value
        else:
            yield str(value)
