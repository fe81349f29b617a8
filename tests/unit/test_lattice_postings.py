"""Shards of lattices: postings of some labels or of all, and row groups that stay in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from swsdist.io.filesystem import Folder
from swsdist.lattices.lattice import Word, transcript
from swsdist.lattices.packed import Recipe, pack
from swsdist.store.lattice_shards import LatticeShardWriter, lattices_name, postings_of, read_lattices
from swsdist.store.manifest import File
from swsdist.store.memory import Memory


@pytest.fixture
def shard(tmp_path: Path) -> tuple[Folder, dict[str, File]]:
    """Three documents: `to be`, `be be`, `or`."""
    folder = Folder(str(tmp_path))
    writer = LatticeShardWriter(folder, lattices_name("x", 0))
    for k, text in enumerate(("to be", "be be", "or")):
        words = [Word(word, place, place + 0.5, 0.75) for place, word in enumerate(text.split())]
        writer.append(f"d{k}", 1, pack(transcript(f"d{k}", words), Recipe()))
    written = writer.publish()
    assert (written.documents, written.labels) == (3, 3)
    return folder, {"lattices": File(*written.lattices), "postings": File(*written.postings)}


def test_postings_are_of_the_labels_that_are_wanted(shard: tuple[Folder, dict[str, File]]) -> None:
    everything = postings_of(*shard)
    assert list(everything.numbers) == ["be", "or", "to"]
    assert sorted(everything.numbers.values()) == [1, 2, 3]
    assert {text: rows.tolist() for text, rows in everything.rows.items()} == {"be": [0, 1], "or": [2], "to": [0]}
    some = postings_of(*shard, {"or", "not", "a", "zoo"})
    assert some.numbers == {"or": everything.numbers["or"]}
    assert some.rows["or"].tolist() == [2]
    assert some.labels == everything.labels == 3
    assert postings_of(*shard, {"zoo"}).numbers == {}


def test_row_groups_stay_in_memory(shard: tuple[Folder, dict[str, File]]) -> None:
    memory = Memory(1 << 20)
    (first,) = (lattices for _, lattices in read_lattices(*shard, memory=memory))
    left = memory.room
    assert left < 1 << 20
    (again,) = (lattices for _, lattices in read_lattices(*shard, memory=memory))
    assert memory.room == left
    assert again.doc_ids == first.doc_ids == ["d0", "d1", "d2"]
    for one, other in zip(first[3:], again[3:], strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.shares_memory(first.steps, again.steps)
    assert list(read_lattices(*shard, rows=np.zeros(3, bool), memory=memory)) == []
