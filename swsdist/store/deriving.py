"""A store, or a track, made of another: document by document, in the same partition.

A derived store names the state it was made of (`Manifest.source`). Its shards hold the documents of the source's, in their
order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.errors import DataError
from swsdist.features.blocks import regrouped
from swsdist.features.statistics import Statistics
from swsdist.fingerprint import fingerprint
from swsdist.io.filesystem import Folder
from swsdist.store import parquet
from swsdist.store.cache import keep
from swsdist.store.manifest import REJECTED_DOCUMENTS
from swsdist.store.reading import Store, pieces_of
from swsdist.store.writing import (
    Indexed,
    ShardWriter,
    documents_name,
    rejected_name,
    rejection,
    shard_name,
)
from swsdist.types import DOCUMENTS, FRAMES

#: Blocks of a document's frames, in order, to frames of something else, of the same tick.
Transform = Callable[[Iterator[NDArray[np.float32]]], Iterable[NDArray[np.float32]]]


def derived_fingerprint(recipe: str, source: Store, shard: str, track: str | None = None) -> str:
    """Names what is derived of a shard: of the recipe, the shard's bytes, and which of its documents live.

    Args:
        recipe: fingerprint of what is done to the frames, the models it uses included.
        source: the store.
        shard: its name.
        track: whose frames; by default the first's.
    """
    name = source.manifest.track(track).name
    return fingerprint(
        "derive", 1, recipe, source.manifest.shard(shard).files[name].sha256, sorted(source.live(shard, name))
    )


def derive_shard(
    source: Store,
    shard: str,
    transform: Transform,
    dimension: int,
    folder: Folder,
    name: str,
    *,
    track: str | None = None,
    partition: str | None = None,
) -> Indexed:
    """Map the documents of a shard to a shard of a derived store (or of a further track of the same one).

    Args:
        source: the store to read.
        shard: its name there.
        transform: called once a document.
        dimension: of what it yields.
        folder: the store to write.
        name: fingerprint that names the outputs (`derived_fingerprint`).
        track: whose frames are read; by default the first's.
        partition: name of the shard that the documents table tells; by default that of the file that is written.

    Returns:
        What `store.writing.write_tracks` returns of a track; a document whose transform raises a DataError is rejected.
    """
    rows = {(row["doc_id"], row["channel"]): row for row in source.documents(shard, track=track).to_pylist()}
    live: list[dict[str, object]] = []
    rejected, output = [], shard_name(name)
    with folder.temporary(".parquet") as path:
        with parquet.writer(path, FRAMES) as file:
            writer = ShardWriter(file, dimension)
            for blocks in pieces_of(source.blocks(shard, set(rows), track)):
                first = next(blocks)
                row = rows[first.doc_id, first.channel]
                frames = (block.features for block in chain([first], blocks))
                try:
                    made = _write(writer, row, transform(frames), dimension)
                except DataError as error:
                    rejected.append(rejection(row, error))
                else:
                    # Marks of speech are of the source's frames.
                    heard = row["speech"] if made["frames"] == row["frames"] else None
                    live.append({**row, **made, "speech": heard, "shard": partition or output})
            writer.flush()
        described = parquet.describe(path, output)
        keep(folder, path, described.size, described.sha256)
        folder.publish(path, output)
    table = pa.Table.from_pylist(live, DOCUMENTS)
    refused = pa.Table.from_pylist(rejected, REJECTED_DOCUMENTS)
    outputs = (
        described,
        parquet.publish(folder, documents_name(name), [table], DOCUMENTS),
        parquet.publish(folder, rejected_name(name), [refused], REJECTED_DOCUMENTS),
    )
    return Indexed(outputs, table, refused, sum(table["duration"].to_pylist()))


def _write(
    writer: ShardWriter, row: dict[str, object], frames: Iterable[NDArray[np.float32]], dimension: int
) -> dict[str, object]:
    """Append a document's frames; what of its row is other than the source's."""
    statistics, first, count = Statistics.zero(dimension), 0, 0
    for block in regrouped(frames):
        if block.shape[1] != dimension or not np.isfinite(block).all():
            raise DataError(
                f"what is derived of {row['doc_id']} is not finite, or has {block.shape[1]} columns, not {dimension}",
                remedy="look at what derives it",
            )
        writer.append(str(row["doc_id"]), int(str(row["channel"])), first, block)
        statistics = statistics + Statistics.of(block)
        first += len(block)
        count += 1
    if first == 0:
        raise DataError(f"nothing is derived of {row['doc_id']}", remedy="look at what derives it")
    mean, variance = statistics.mean.tolist(), statistics.variance.tolist()
    return {"frames": first, "rows": count, "mean": mean, "variance": variance}
