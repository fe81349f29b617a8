"""Frames that a store has already: of a recording that was renamed or copied since it was indexed, with the same bytes.

A row of such a document names where they are under `held`, plain JSON::

    state       fingerprint of the state of the store
    shard       in which they lie
    doc_id      of the document that has them; its channel is the row's
    tracks      of the store, whose columns stand side by side as the extractor gives them
    sha256      of the recording; None where its bytes are told by its identity (S3)
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
    """The same; frames that the store has are copied."""

    def read(
        document: dict[str, Any], extractor: Extractor | Precomputed, folder: Folder
    ) -> Generator[NDArray[np.float32], None, ReadResult]:
        held = document.get("held")
        # A file may have changed since the work was planned.
        if held is None or held["sha256"] != document.get("sha256", held["sha256"]):
            return (yield from reading(document, extractor, folder))
        try:
            return (yield from _copied(held, document["channel"], folder))
        except StoreError as error:  # it says nothing against the recording
            raise codes.STORED_FRAMES_DAMAGED(where=error.where, error=error.message, advice=error.remedy) from error

    return read


def _copied(held: dict[str, Any], channel: int, folder: Folder) -> Generator[NDArray[np.float32], None, ReadResult]:
    store = Store.at(folder.root, held["state"], storage=folder.storage)
    columns = ["doc_id", "channel", "duration", "frames", "speech", "cut_off", "bandwidth"]
    table = store.documents(held["shard"], columns, held["tracks"][0])
    mine = pc.and_(pc.equal(table["doc_id"], held["doc_id"]), pc.equal(table["channel"], channel))
    (row,) = table.filter(mine).to_pylist()
    for blocks in zip(*(_blocks(store, held, channel, track) for track in held["tracks"]), strict=True):
        yield blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)
    speech = None if row["speech"] is None else unpack_marks(row["speech"], row["frames"])
    return ReadResult(row["duration"], speech, cut_off=row["cut_off"], bandwidth=row["bandwidth"])


def _blocks(store: Store, held: dict[str, Any], channel: int, track: str) -> Iterator[NDArray[np.float32]]:
    """Blocks of frames of the document, of one track; a row group at a time."""
    dimension, name = store.manifest.track(track).dimension, store.manifest.shard(held["shard"]).files[track].name
    with parquet.reader(store.folder, name, keep=True) as file:
        for group in parquet.row_groups_with(file, "doc_id", held["doc_id"]):
            rows = file.read_row_group(group, use_threads=False)
            mine = pc.and_(pc.equal(rows["doc_id"], held["doc_id"]), pc.equal(rows["channel"], channel))
            for blob in rows["features"].filter(mine):
                yield np.frombuffer(blob.as_buffer(), "<f4").reshape(-1, dimension)
