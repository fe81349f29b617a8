"""Looking after a store: is it whole, and can it be smaller."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.errors import StoreError
from swsdist.fingerprint import fingerprint
from swsdist.io.filesystem import Folder
from swsdist.store import parquet
from swsdist.store.manifest import Manifest, Shard, commit, state_name
from swsdist.store.reading import Store
from swsdist.store.sharding import cut
from swsdist.store.writing import ShardWriter, shard_name
from swsdist.types import DOCUMENTS, FRAMES


def check(store: Store) -> Iterator[str]:
    """Read everything, and yield what is wrong, a line each; nothing if the store is whole.

    The tables can be read and agree with the manifest. Of each shard: its size and SHA-256 are those of the manifest; its
    live documents' rows are consecutive, hold the frames that the documents table tells, and only finite numbers.
    """
    manifest = store.manifest
    tables = (manifest.documents, manifest.statistics, manifest.rejected)
    broken = {name: problem for name in tables if (problem := _unreadable(store.folder, name)) is not None}
    yield from (f"{store.folder.path(name)}: {problem}" for name, problem in broken.items())
    if manifest.documents in broken:
        return  # it tells what the shards should hold
    where = store.folder.path(manifest.documents)
    placed = store.documents(columns=["shard"])["shard"]
    if len(placed) != manifest.counts["documents"]:
        yield f"{where}: {len(placed)} documents, the manifest tells {manifest.counts['documents']}"
    for name in sorted({*placed.unique().to_pylist()} - {shard.name for shard in manifest.shards}):
        yield f"{where}: it places documents in {name}, which the manifest does not name"
    for shard in manifest.shards:
        where = store.folder.path(shard.name)
        try:
            yield from (f"{where}: {problem}" for problem in _check_bytes(store.folder, shard))
            yield from (f"{where}: {problem}" for problem in _check_rows(store, shard))
        except StoreError as error:
            yield f"{where}: {error.message}"
        except (pa.ArrowException, OSError, ValueError) as error:
            yield f"{where}: it cannot be read ({error})"


def _unreadable(folder: Folder, name: str) -> str | None:
    """Why a table cannot be read, or None."""
    try:
        for _ in parquet.rows(folder, name):
            pass
    except StoreError as error:
        return error.message
    except (pa.ArrowException, OSError) as error:
        return f"it cannot be read ({error})"
    return None


def _check_bytes(folder: Folder, shard: Shard) -> Iterator[str]:
    try:
        with folder.open(shard.name) as file:
            running = hashlib.sha256()
            while block := file.read(1 << 20):
                running.update(block)
            digest, size = running.hexdigest(), file.tell()
    except FileNotFoundError:
        raise StoreError("the file is missing") from None
    if size != shard.size:
        yield f"it has {size} bytes, the manifest tells {shard.size}"
    elif digest != shard.sha256:
        yield "its bytes are not those that were written (SHA-256 differs)"


def _check_rows(store: Store, shard: Shard) -> Iterator[str]:
    table = store.documents(shard.name, ["doc_id", "channel", "frames"])
    keys = zip(table["doc_id"].to_pylist(), table["channel"].to_pylist(), strict=True)
    left = dict(zip(keys, table["frames"].to_pylist(), strict=True))
    open_key: tuple[str, int] | None = None
    ended: set[tuple[str, int]] = set()
    next_frame = 0
    for block in store.blocks(shard.name, set(left)):
        key = (block.doc_id, block.channel)
        if key != open_key:
            if key in ended:
                yield f"document {key}: its rows do not stand together"
            open_key, next_frame = key, 0
            ended.add(key)
        if block.first_frame != next_frame:
            yield f"document {key}: frame {next_frame} is missing"
        if not np.isfinite(block.features).all():
            yield f"document {key}: a feature is not finite"
        next_frame = block.first_frame + len(block.features)
        left[key] -= len(block.features)
    for key, missing in sorted(left.items()):
        if missing != 0:
            yield f"document {key}: {missing} frames are missing"


class Compacted(NamedTuple):
    """Shards and bytes before and after."""

    shards_before: int
    shards: int
    bytes_before: int
    bytes: int


def compact(folder: Folder, hours: float) -> Compacted:
    """Write the live documents to new shards of about `hours` hours each, and remove what is then not needed.

    The old state stays whole until the new one is committed. Results do not change; searches of it are done again, since its
    shards have new names.
    """
    store = Store(folder)
    manifest = store.manifest
    rows = store.documents().to_pylist()
    place = {(row["doc_id"], row["channel"]): (row["shard"], k) for k, row in enumerate(rows)}
    rows.sort(key=lambda row: (row["doc_id"], row["channel"]))
    shards: list[Shard] = []
    placed: list[dict[str, object]] = []
    for chosen in cut([row["duration"] for row in rows], hours * 3600):
        # In the order in which they are read: so the name tells the bytes, and the documents table the order of rows.
        part = sorted(rows[chosen.start : chosen.stop], key=lambda row: place[row["doc_id"], row["channel"]])
        keys = [[row["doc_id"], row["channel"], row["identity"], row["sha256"]] for row in part]
        name = shard_name(fingerprint("compact", 1, manifest.extractor_fingerprint, keys))
        with folder.temporary(".parquet") as path:
            with parquet.writer(path, FRAMES) as file:
                writer = ShardWriter(file, manifest.dimension)
                by_shard: dict[str, set[tuple[str, int]]] = {}
                for row in part:
                    by_shard.setdefault(row["shard"], set()).add((row["doc_id"], row["channel"]))
                for source, live in by_shard.items():
                    for block in store.blocks(source, live):
                        writer.append(block.doc_id, block.channel, block.first_frame, block.features)
                writer.flush()
            output = parquet.describe(path, name)
            folder.publish(path, name)
        shard = Shard(name, output.size, output.sha256, len(part), sum(row["frames"] for row in part))
        shards.append(shard)
        placed += [{**row, "shard": name} for row in part]
    frozen = parquet.read(folder, manifest.statistics)
    after = commit(
        folder,
        manifest.extractor,
        manifest.dimension,
        manifest.shift,
        shards,
        pa.Table.from_pylist(placed, DOCUMENTS),
        store.rejected(),
        frozen,
    )
    _remove_unused(folder, after)
    size = sum(shard.size for shard in shards)
    return Compacted(len(manifest.shards), len(shards), sum(shard.size for shard in manifest.shards), size)


def _remove_unused(folder: Folder, manifest: Manifest) -> None:
    """Files of earlier states: shards, their lists, and tables that the manifest does not name."""
    used = {shard.name for shard in manifest.shards} | {manifest.documents, manifest.statistics, manifest.rejected}
    used.add(state_name(manifest.fingerprint))
    for name in folder.listing():
        if name in used or name == "manifest.json":
            continue
        if name.startswith(("shards/", "documents-", "statistics-", "rejected-", "manifest-")):
            folder.remove(name)
