"""Reading a feature store, a bounded piece at a time.

Anyone with pyarrow can do the same: read manifest.json, the documents table it names, and of the shards the rows whose
(doc_id, channel) that table places there (docs/concepts/feature-store.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.errors import StoreError
from swsdist.features.statistics import Statistics
from swsdist.io.filesystem import Folder
from swsdist.store import parquet
from swsdist.store.manifest import Manifest, require


class Block(NamedTuple):
    """Consecutive frames of a document; features are float32 (frames, dimension), read-only."""

    doc_id: str
    channel: int
    first_frame: int
    features: NDArray[np.float32]


class Store:
    """One state of a feature store.

    Args:
        folder: where it is.
        manifest: the state; the current one by default.

    Raises:
        StoreError: there is no store.
    """

    def __init__(self, folder: Folder, manifest: Manifest | None = None) -> None:
        self.folder = folder
        self.manifest = manifest or require(folder)

    def documents(self, shard: str | None = None, columns: list[str] | None = None) -> pa.Table:
        """The live documents, of one shard or all; DOCUMENTS."""
        if shard is None:
            return parquet.read(self.folder, self.manifest.documents, columns)
        wanted = None if columns is None else sorted({*columns, "shard"})
        with parquet.reader(self.folder, self.manifest.documents) as file:
            # The table is in the order of shards: only the row groups that mention this one are read.
            groups = parquet.holding(file, "shard", shard)
            table = file.read_row_groups(groups, columns=wanted, use_threads=False)
        return table.filter(pc.equal(table["shard"], shard))

    def statistics(self) -> dict[tuple[str, str], Statistics]:
        """Frozen statistics by (scope, name): ("collection", "") and ("speaker", name)."""
        table = parquet.read(self.folder, self.manifest.statistics)
        return {
            (row["scope"], row["name"]): Statistics.from_variance(row["frames"], row["mean"], row["variance"])
            for row in table.to_pylist()
        }

    def rejected(self) -> pa.Table:
        """Documents that could not be used; REJECTED_DOCUMENTS."""
        return parquet.read(self.folder, self.manifest.rejected)

    def blocks(self, shard: str, live: set[tuple[str, int]] | None = None) -> Iterator[Block]:
        """Frames of the documents in a shard, in their order; at most a row group in memory.

        Args:
            shard: its name.
            live: keys (doc_id, channel) to yield; rows of others are dead. By default all live documents.
        """
        if live is None:
            keys = self.documents(shard, ["doc_id", "channel"])
            live = set(zip(keys["doc_id"].to_pylist(), keys["channel"].to_pylist(), strict=True))
        dimension = self.manifest.dimension
        for batch in parquet.rows(self.folder, shard, batch=16):
            doc_ids, channels, firsts = (batch.column(n).to_pylist() for n in ("doc_id", "channel", "first_frame"))
            for k, blob in enumerate(batch.column("features")):
                if (doc_ids[k], channels[k]) in live:
                    features = np.frombuffer(blob.as_buffer(), "<f4").reshape(-1, dimension)
                    yield Block(doc_ids[k], channels[k], firsts[k], features)

    def features(self, doc_id: str, channel: int = 1) -> NDArray[np.float32]:
        """All frames of one document, float32 (frames, dimension).

        Raises:
            StoreError: it is not in the store.
        """
        table = self.documents(columns=["doc_id", "channel", "shard"])
        found = table.filter(pc.and_(pc.equal(table["doc_id"], doc_id), pc.equal(table["channel"], channel)))
        if found.num_rows == 0:
            raise StoreError(
                f"there is no document {doc_id!r}, channel {channel}",
                where=self.folder.path(),
                remedy="`swsdist store info --documents` lists those there are",
            )
        blocks = self.blocks(found["shard"][0].as_py(), {(doc_id, channel)})
        return np.concatenate([block.features for block in blocks])
