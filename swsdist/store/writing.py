"""From audio to one shard of a feature store.

Documents lie whole, in consecutive rows of one shard; a row holds at most BLOCK_FRAMES frames, a row group a few rows. A
document that cannot be used is rejected with its reason and the others go on; rows of it that were already written are
dead, as are those of documents removed later: the documents table says which rows live.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.audio.reader import read_blocks, sha256
from swsdist.errors import AudioError, DataError
from swsdist.features.registry import Extractor, in_blocks
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder
from swsdist.store import parquet
from swsdist.store.manifest import REJECTED_DOCUMENTS
from swsdist.types import DOCUMENTS, FRAMES

#: Bytes of features in a row group: what a reader holds at least.
ROW_GROUP_BYTES = 8_000_000


class Indexed(NamedTuple):
    """What came of a shard's documents."""

    outputs: tuple[parquet.Output, ...]
    documents: pa.Table
    rejected: pa.Table
    seconds: float
    bytes_read: int


class ShardWriter:
    """Appends frames of documents to a Parquet file, a bounded row group at a time."""

    def __init__(self, file: Any, dimension: int) -> None:
        self._file = file
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0
        self._dimension = dimension

    def append(self, doc_id: str, channel: int, first_frame: int, frames: NDArray[np.float32]) -> None:
        """Add a row: float32 (frames, dimension), which come after those appended before."""
        self._rows.append(
            {
                "doc_id": doc_id,
                "channel": channel,
                "first_frame": first_frame,
                "frames": len(frames),
                "features": np.ascontiguousarray(frames, "<f4").tobytes(),
            }
        )
        self._bytes += frames.nbytes
        if self._bytes >= ROW_GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """End the row group."""
        if self._rows:
            self._file.write_table(pa.Table.from_pylist(self._rows, FRAMES))
            self._rows, self._bytes = [], 0


def shard_name(fingerprint: str) -> str:
    """Where a shard lies in its store."""
    return f"shards/part-{fingerprint}.parquet"


def documents_name(fingerprint: str) -> str:
    """Where the documents of a shard that waits for its commit are listed."""
    return f"shards/part-{fingerprint}.documents.parquet"


def rejected_name(fingerprint: str) -> str:
    """Where the documents that were rejected on the way are listed."""
    return f"shards/part-{fingerprint}.rejected.parquet"


def write_shard(folder: Folder, fingerprint: str, documents: Iterable[dict[str, Any]], extractor: Extractor) -> Indexed:
    """Compute the features of documents and publish them as a shard.

    Args:
        folder: the store.
        fingerprint: of this task; names the outputs.
        documents: rows of CORPUS with the file's `identity` added.
        extractor: computes the features.
    """
    live: list[dict[str, Any]] = []
    rejected: list[dict[str, Any]] = []
    seconds, bytes_read = 0.0, 0
    name = shard_name(fingerprint)
    with folder.temporary(".parquet") as path:
        with parquet.writer(path, FRAMES) as file:
            shard = ShardWriter(file, extractor.dimension)
            for document in documents:
                try:
                    row = _write_document(shard, document, extractor, folder)
                except DataError as error:
                    rejected.append(rejection(document, error))
                else:
                    live.append({**row, "shard": name})
                    seconds += row["duration"]
                    bytes_read += int(document["identity"].partition(":")[0] or 0)
            shard.flush()
        table = pa.Table.from_pylist(live, DOCUMENTS)
        refused = pa.Table.from_pylist(rejected, REJECTED_DOCUMENTS)
        shard_output = parquet.describe(path, name)
        folder.publish(path, name)
    outputs = (
        shard_output,
        parquet.publish(folder, documents_name(fingerprint), [table], DOCUMENTS),
        parquet.publish(folder, rejected_name(fingerprint), [refused], REJECTED_DOCUMENTS),
    )
    return Indexed(outputs, table, refused, seconds, bytes_read)


def _write_document(
    shard: ShardWriter, document: dict[str, Any], extractor: Extractor, folder: Folder
) -> dict[str, Any]:
    statistics = Statistics.zero(extractor.dimension)
    samples = rows = first = 0
    digest = sha256(document["path"], folder.storage)

    def counted() -> Iterable[NDArray[np.float32]]:
        nonlocal samples
        for block in read_blocks(
            document["path"], channel=document["channel"], rate=extractor.sample_rate, storage=folder.storage
        ):
            samples += len(block)
            yield block

    for frames in in_blocks(extractor, counted()):
        shard.append(document["doc_id"], document["channel"], first, frames)
        statistics = statistics + Statistics.of(frames)
        first += len(frames)
        rows += 1
    return {
        "doc_id": document["doc_id"],
        "channel": document["channel"],
        "path": document["path"],
        "duration": samples / extractor.sample_rate,
        "frames": first,
        "rows": rows,
        "identity": document["identity"],
        "sha256": digest,
        "speaker": document["speaker"],
        "mean": statistics.mean.tolist(),
        "variance": statistics.variance.tolist(),
    }


def rejection(document: dict[str, Any], error: DataError) -> dict[str, Any]:
    """The row of REJECTED_DOCUMENTS for a document that could not be used."""
    return {
        "kind": "document",
        "id": document["doc_id"],
        "part": document["channel"],
        "path": document["path"],
        "reason": error.reason if isinstance(error, AudioError) else "unreadable",
        "message": error.message,
        "remedy": error.remedy,
        "identity": document["identity"],
    }
