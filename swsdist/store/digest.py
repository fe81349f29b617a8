"""Digests of rows: equal digests prove equal results, independent of how rows are cut."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.store.reading import Store


def of_store(store: Store) -> dict[str, str]:
    """SHA-256 of a store's live documents, and of their frames; of a further track under `documents.TRACK`,
    `features.TRACK`.

    Excludes storage details (paths, shards, rows).
    """
    result: dict[str, str] = {}
    for k, track in enumerate(store.manifest.tracks):
        end = f".{track.name}" if k else ""
        result |= {f"{name}{end}": value for name, value in _of_track(store, track.name).items()}
    return result


def _of_track(store: Store, track: str) -> dict[str, str]:
    columns = ["doc_id", "channel", "duration", "frames", "sha256", "speaker", "mean", "variance", "speech"]
    table = store.documents(columns=[*columns, "recording", "start"], track=track)
    if table["start"].null_count == table.num_rows:  # only places in recordings have these columns
        table = table.drop_columns(["recording", "start"])
    table = table.sort_by([("doc_id", "ascending"), ("channel", "ascending")])
    frames: dict[tuple[str, int], Any] = {}
    for shard in store.manifest.shards:
        if track not in shard.files:
            continue  # its task has failed, so the table has none of its documents
        for block in store.blocks(shard.name, track=track):
            # A running hash per document: its frames are consecutive, so blocks add up.
            running = frames.setdefault((block.doc_id, block.channel), hashlib.sha256())
            running.update(block.features.tobytes())
    total = hashlib.sha256()
    for key in sorted(frames):
        total.update(f"{key[0]}\0{key[1]}\0{frames[key].hexdigest()}\n".encode())
    return {"documents": of_rows(table), "features": total.hexdigest()}


def of_rows(table: pa.Table) -> str:
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
                running.update(hashlib.sha256(value.as_buffer()).digest() if value.is_valid else b"null")
        else:
            running.update(json.dumps(column.to_pylist(), default=str).encode())
    return running.hexdigest()


def combined(parts: dict[str, str]) -> str:
    """One SHA-256 of several, by name."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
