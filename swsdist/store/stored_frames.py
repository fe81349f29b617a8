"""Frames that a store already has: of a recording that was renamed or copied after indexing, with the same bytes.

The row of such a document names their place under `held`, plain JSON::

    state       fingerprint of the state of the store
    shard       that contains them
    doc_id      of the stored document; its channel is the row's
    tracks      of the store, whose columns side by side are those of the extractor
    sha256      of the recording; None if its identity determines its bytes (S3)
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.audio.marks import unpack_marks
from swsdist.core.codes import store as codes
from swsdist.core.errors import StoreError
from swsdist.features.interface import Extractor, Precomputed
from swsdist.io.filesystem import Folder
from swsdist.store import parquet
from swsdist.store.reading import Store
from swsdist.store.writing import Reading, ReadResult


def reuse_frames(reading: Reading) -> Reading:
    """The same reading, but copies frames that the store has."""

    def read(
        document: dict[str, Any], extractor: Extractor | Precomputed, folder: Folder
    ) -> Generator[NDArray[np.float32], None, ReadResult]:
        stored = document.get("held")
        # A file may have changed since the work was planned.
        if stored is None or stored["sha256"] != document.get("sha256", stored["sha256"]):
            return (yield from reading(document, extractor, folder))
        try:
            return (yield from _copied(stored, document["channel"], folder))
        except StoreError as error:  # the recording itself may be readable
            raise codes.STORED_FRAMES_DAMAGED(where=error.where, error=error.message, advice=error.remedy) from error

    return read


def _copied(stored: dict[str, Any], channel: int, folder: Folder) -> Generator[NDArray[np.float32], None, ReadResult]:
    store = Store.at(folder.root, stored["state"], storage=folder.storage)
    columns = ["doc_id", "channel", "duration", "frames", "speech", "cut_off", "bandwidth"]
    table = store.documents(stored["shard"], columns, stored["tracks"][0])
    selected = pc.and_(pc.equal(table["doc_id"], stored["doc_id"]), pc.equal(table["channel"], channel))
    (row,) = table.filter(selected).to_pylist()
    for blocks in zip(*(_blocks(store, stored, channel, track) for track in stored["tracks"]), strict=True):
        yield blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)
    speech = None if row["speech"] is None else unpack_marks(row["speech"], row["frames"])
    return ReadResult(row["duration"], speech, cut_off=row["cut_off"], bandwidth=row["bandwidth"])


def _blocks(store: Store, stored: dict[str, Any], channel: int, track: str) -> Iterator[NDArray[np.float32]]:
    """Blocks of the document's frames in one track; a row group at a time."""
    entry, name = store.manifest.track(track), store.manifest.shard(stored["shard"]).files[track].name
    with parquet.reader(store.folder, name, keep=True) as file:
        for group in parquet.row_groups_with(file, "doc_id", stored["doc_id"]):
            rows = file.read_row_group(group, use_threads=False)
            selected = pc.and_(pc.equal(rows["doc_id"], stored["doc_id"]), pc.equal(rows["channel"], channel))
            for blob in rows["features"].filter(selected):
                frames = np.frombuffer(blob.as_buffer(), parquet.numbers(entry.dtype)).reshape(-1, entry.dimension)
                yield frames.astype(np.float32, copy=False)
