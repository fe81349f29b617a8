"""Stores of small lattices of one path."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from swsdist.core.types import DOCUMENTS
from swsdist.io.filesystem import Folder
from swsdist.lattices.packed import TICK, Packed
from swsdist.store.lattice_shards import LatticeShardWriter, lattices_name
from swsdist.store.manifest import REJECTED_DOCUMENTS, File, NewTrack, Shard, commit
from swsdist.store.reading import Store


def chain(labels: str, chance: float = 1.0) -> Packed:
    """A lattice of one path, 100 ms a label."""
    count = len(labels)
    texts = ("", *dict.fromkeys(label for label in labels if label != " "))
    return Packed(
        np.arange(count + 1, dtype=np.int32) * 100,
        np.ones(count + 1),
        np.array([1] * count + [0], np.int32),
        np.ones(count, np.int32),
        np.array([texts.index(label) if label != " " else 0 for label in labels], np.int32),
        np.full(count, chance),
        texts,
        count * 100,
    )


def store_of(folder: Path, documents: dict[str, Packed], cuts: int = 1) -> Store:
    """A store of lattices, in so many shards."""
    place, shards, rows = Folder(str(folder)), [], []
    names = list(documents)
    for k in range(cuts):
        writer = LatticeShardWriter(place, lattices_name("f", k))
        for name in names[k::cuts]:
            writer.append(name, 1, documents[name])
            row = dict.fromkeys(DOCUMENTS.names) | {"doc_id": name, "channel": 1, "path": "", "shard": writer.name}
            row |= {"duration": documents[name].ticks * TICK, "frames": documents[name].ticks, "rows": 1}
            rows.append(row | {"identity": "", "sha256": "", "mean": [0.0], "variance": [0.0]})
        written = writer.publish()
        files = {"lattices": File(*written.lattices), "postings": File(*written.postings)}
        shards.append(Shard(writer.name, files, written.documents, 1000))
    track = NewTrack("lattices", {"name": "test"}, 1, pa.Table.from_pylist(rows, DOCUMENTS))
    commit(place, track, TICK, shards, REJECTED_DOCUMENTS.empty_table(), kind="lattices", libraries={})
    return Store(place)
