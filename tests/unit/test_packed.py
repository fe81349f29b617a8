"""Lattices as they are searched, and as shards hold them."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from swsdist.core.codes import families
from swsdist.io.filesystem import Folder
from swsdist.lattices.lattice import Lattice, Word, transcript
from swsdist.lattices.packed import Packed, Recipe, pack
from swsdist.lattices.terms import TermReader, Terms
from swsdist.store import lattice_shards
from swsdist.store.lattice_shards import (
    LatticeShardWriter,
    lattices_name,
    postings_name,
    postings_of,
    read_lattices,
    read_words,
    shard_rows,
)
from swsdist.store.maintaining import check, forget
from swsdist.store.manifest import File
from swsdist.store.reading import Store
from tests.oracles.phrases import paths
from tests.support.coded import raises
from tests.support.lattice_stores import chain, store_of
from tests.support.lattices import lattice, places_of
from tests.support.random_lattices import lattices


@settings(max_examples=60, deadline=None)
@given(lattices())
def test_shares_are_those_of_all_paths(item: Lattice) -> None:
    packed = pack(item, Recipe())
    every = paths(item)
    used = {arc for path in every for arc in path.arcs}
    mass = np.zeros(len(item.label))
    for path in every:
        mass[list(path.arcs)] += path.posterior
    assert len(packed.steps) == len(used)
    assert sorted(packed.expected()) == pytest.approx(sorted(mass[list(used)]), abs=1e-12)
    assert packed.arcs.sum() == len(packed.steps)
    assert (packed.steps >= 1).all()
    source = np.repeat(np.arange(len(packed.times)), packed.arcs)
    assert (source + packed.steps < len(packed.times)).all()
    assert (packed.times[source + packed.steps] >= packed.times[source]).all()
    assert packed.ticks == item.length * 10
    if every and used:
        assert packed.visits[0] == pytest.approx(1.0)
    assert packed.texts[0] == ""


CHOICE = lattice([(0, 1, 1, 1.0, 10.0), (0, 1, 2, 2.0, 0.0)], {1: (0.0, 0.0)}, [0, 7])


def test_scales_and_pruning() -> None:
    for recipe, odds in (
        *((Recipe(), 9.0), (Recipe(acoustic_scale=0.1), 0.0)),
        (Recipe(acoustic_scale=0.1, lm_scale=0), 1.0),
    ):
        chances = pack(CHOICE, recipe).chances
        assert chances[1] / chances[0] == pytest.approx(np.exp(odds))
    as_probabilities = pack(replace(CHOICE, probabilities=True), Recipe(acoustic_scale=0.1, lm_scale=0))
    assert as_probabilities.chances == pytest.approx(pack(CHOICE, Recipe()).chances)
    assert pack(CHOICE, Recipe()).times.tolist() == [0, 70]
    packed = pack(CHOICE, Recipe(least=0.01))
    assert packed.chances.tolist() == [pytest.approx(1 / (1 + np.exp(-9)))]
    assert len(pack(CHOICE, Recipe(beam=8.9)).chances) == 1
    assert len(pack(CHOICE, Recipe(beam=9.1)).chances) == 2
    nothing = pack(lattice([(0, 1, 1, 0, 0), (0, 1, 1, 0, 0), (0, 1, 1, 0, 0)], {1: (0, 0)}, [0, 3]), Recipe(least=0.5))
    assert (len(nothing.times), len(nothing.steps), nothing.ticks) == (0, 0, 30)


def test_labels_fillers_and_marks() -> None:
    words = [Word("Yes,", 0, 1), Word("<sil>", 1, 2), Word("yes", 2, 3), Word("-", 3, 4), Word("um", 4, 5)]
    packed = pack(transcript("t", words), Recipe(fillers=("<sil>", "um")))
    assert packed.texts == ("", "yes")
    assert packed.labels.tolist().count(1) == 2
    exact = pack(transcript("t", words), Recipe(spelling="exact", fillers=()))
    assert exact.texts == ("", "Yes,", "<sil>", "yes", "-", "um")
    for mark in ("<eps>", "[laughter]", "[Noise]", "<SIL>", "!sil", "<silence>"):
        words = [Word(text, k, k + 1) for k, text in enumerate(("new", mark, "york", "<UNK>", "city"))]
        terms = [("new", "york"), ("york", "city"), (mark.strip("<[]>!").casefold(),), ("unk",)]
        found = places_of([pack(transcript("t", words), Recipe())], terms, 1000)
        assert {term for term, *_ in found} == {0}, mark
        assert TermReader(Terms(), Recipe()).alternatives(f"new {mark} york")[0].labels == ("new", "york")
    phones = replace(CHOICE, labels=("", "s", "S"))
    with raises(families.DUPLICATE_NAME, where="key", first="s", second="S", text="s"):
        pack(phones, Recipe())
    assert pack(phones, Recipe(spelling="exact")).texts == ("", "s", "S")


def test_what_cannot_be_packed_and_no_paths() -> None:
    with raises(families.TOO_LARGE, where="key"):
        pack(replace(CHOICE, length=1 << 40), Recipe())
    circle = lattice([(0, 1, 1, 0, 0), (1, 0, 2, 0, 0)], {1: (0, 0)}, [0, 0])
    with raises(families.DAMAGED_LATTICE, where="key"):
        pack(circle, Recipe())
    for item in (lattice([], {}, [], start=-1), lattice([(0, 1, 1, 0, 0)], {}, [0, 3])):
        packed = pack(item, Recipe())
        assert len(packed.times) == len(packed.steps) == 0
    alone = pack(lattice([], {0: (1.0, 0.0)}, [4]), Recipe())
    assert (len(alone.steps), alone.ticks) == (0, 40)


TEXTS = ["a b c", "b b", "", "c a", "a a a b"]


def documents() -> list[Packed]:
    words = [[Word(text, k, k + 1, 0.5 + k / 8) for k, text in enumerate(line.split())] for line in TEXTS]
    return [pack(transcript(str(k), row), Recipe()) for k, row in enumerate(words)]


def write(folder: Folder, packed: Sequence[Packed], number: int = 0) -> Mapping[str, File]:
    writer = LatticeShardWriter(folder, lattices_name("fp", number))
    for k, item in enumerate(packed):
        writer.append(f"d{k}", 1 + k % 2, item)
    written = writer.publish()
    held = {item.texts[label] for item in packed for label in item.labels} - {""}
    assert (written.documents, written.labels) == (len(packed), len(held))
    return {"lattices": File(*written.lattices), "postings": File(*written.postings)}


@pytest.mark.parametrize("arcs", [1, 12, 1 << 16])
def test_written_and_read_back(arcs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lattice_shards, "ROW_GROUP_ARCS", arcs)
    monkeypatch.setattr(lattice_shards, "_LABELS", 2)
    folder, packed = Folder(str(tmp_path)), documents()
    files = write(folder, packed)
    assert files["lattices"].name == "shards/part-fp-0.parquet"
    assert files["postings"].name == postings_name("shards/part-fp-0.parquet") == "postings/part-fp-0.parquet"
    assert shard_rows(folder, files) == len(packed)
    groups = pq.ParquetFile(tmp_path / files["lattices"].name).num_row_groups
    assert groups == {1: 5, 12: 2, 1 << 16: 1}[arcs]
    numbers = postings_of(folder, files).numbers
    assert sorted(numbers.values()) == [1, 2, 3]
    texts = {number: text for text, number in numbers.items()} | {0: ""}
    rows = 0
    for first, group in read_lattices(folder, files):
        assert first == rows
        for k in range(len(group.doc_ids)):
            item = packed[rows]
            states = slice(*group.documents[k : k + 2])
            of = slice(group.first[states.start], group.first[states.stop])
            assert (group.doc_ids[k], group.channels[k], group.ticks[k]) == (f"d{rows}", 1 + rows % 2, item.ticks)
            assert group.times[states].tolist() == item.times.tolist()
            assert group.visits[states] == pytest.approx(item.visits, rel=1e-7)
            assert group.steps[of].tolist() == item.steps.tolist()
            assert group.chances[of] == pytest.approx(item.chances, rel=1e-7)
            assert [texts[label] for label in group.labels[of]] == [item.texts[label] for label in item.labels]
            rows += 1
    assert rows == len(packed)


def test_postings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And of lattices only the groups of rows with chosen documents are read."""
    monkeypatch.setattr(lattice_shards, "ROW_GROUP_ARCS", 1)
    folder = Folder(str(tmp_path))
    files = write(folder, documents())
    table = pq.read_table(tmp_path / files["postings"].name)
    found = {
        row["label"]: (
            np.frombuffer(row["document_rows"], "<i4").tolist(),
            np.frombuffer(row["expected"], "<f4").tolist(),
        )
        for row in table.to_pylist()
    }
    assert found == {
        "a": ([0, 3, 4], [0.5, 0.625, 1.875]),
        "b": ([0, 1, 4], [0.625, 1.125, 0.875]),
        "c": ([0, 3], [0.75, 0.5]),
    }
    rows = postings_of(folder, files, {"c", "zz", "a"}).rows
    assert {text: places.tolist() for text, places in rows.items()} == {"a": [0, 3, 4], "c": [0, 3]}
    assert postings_of(folder, files, {"zz"}).rows == {}
    chosen = np.array([False, True, False, False, True])
    assert [first for first, _ in read_lattices(folder, files, chosen)] == [1, 4]
    assert list(read_lattices(folder, files, np.zeros(5, bool))) == []


def test_empty_documents_have_a_row_and_a_shard_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    writer = LatticeShardWriter(folder, lattices_name("fp", 0))
    writer.append("d0", 1, documents()[0])
    assert not writer.full
    writer.discard()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    nothing = pack(lattice([], {}, [], start=-1), Recipe())
    files = write(folder, [nothing, pack(transcript("t", []), Recipe())])
    assert postings_of(folder, files).numbers == {}
    assert postings_of(folder, files, {"a"}).rows == {}
    ((_, group),) = read_lattices(folder, files)
    assert (group.documents.tolist(), len(group.labels)) == ([0, 0, 2], 1)


def test_words_are_kept_as_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lattice_shards, "ROW_GROUP_ARCS", 1)
    said = [Word("Hello,", 1.0, 1.25, 0.25), Word("World!", 0.5, 0.7509, 1.0)]
    arcs = [(0, 1, 1, 0.0, 0.0), (1, 2, 2, 1.0, 0.0), (1, 2, 3, 2.0, 0.0), (2, 3, 2, 0.0, 0.0)]
    heard = lattice(arcs, {3: (0, 0)}, [0, 10, 30, 45], labels=("", "<s>", "Be", "Bee"))
    written = dataclasses.replace(heard, words=(Word("be.", 0.1, 0.3, 0.5),))
    documents = {"said": transcript("said", said), "heard": heard, "written": written, "none": transcript("none", [])}
    store = store_of(tmp_path, {name: pack(item, Recipe()) for name, item in documents.items()}, cuts=2)
    table = store.documents(columns=["doc_id", "channel", "shard"])
    rows = [tuple(row.values()) for row in table.select(["doc_id", "channel", "shard"]).to_pylist()]
    words = read_words(store, rows)
    assert words["said", 1] == [Word("World!", 0.5, 0.751, 1.0), Word("Hello,", 1.0, 1.25, 0.25)]
    assert [word[:3] for word in words["heard", 1]] == [("Be", 0.1, 0.3), ("Be", 0.3, 0.45)]
    assert [word.confidence for word in words["heard", 1]] == pytest.approx([1 / (1 + np.exp(-1)), 1.0])
    assert words["written", 1] == [Word("be.", 0.1, 0.3, 0.5)]
    assert words["none", 1] == []
    (shard,) = (shard for name, _, shard in rows if name == "heard")
    assert read_words(store, [("heard", 1, shard), ("heard", 2, shard)]) == {("heard", 1): words["heard", 1]}
    assert list(check(store)) == []


def test_a_store_of_an_earlier_version_is_sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_words = lattice_shards.LATTICES.remove(lattice_shards.LATTICES.get_field_index("words"))
    monkeypatch.setattr(lattice_shards, "LATTICES", without_words)
    assert list(check(store_of(tmp_path, {"d": chain("abc")}))) == []


def test_a_document_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lattice_shards, "ROW_GROUP_ARCS", 4)
    held = {name: chain(labels) for name, labels in {"a": "xyz", "b": "pq", "c": "zqx", "d": "xx", "e": "yr"}.items()}
    store = store_of(tmp_path / "with", held, 2)  # a c e | b d
    before = {shard.name: shard for shard in store.manifest.shards}
    first = store.manifest.shards[0]
    forget(store.folder, {"c"}, {first.files["lattices"].name})
    now, other = Store(store.folder), store_of(tmp_path / "without", {"a": held["a"], "e": held["e"]})
    assert list(check(now)) == []
    (shard,) = [shard for shard in now.manifest.shards if shard.name not in before]
    assert (len(now.manifest.shards), now.manifest.counts["documents"], shard.documents) == (2, 4, 2)

    def content(store: Store, files: Mapping[str, File]) -> list[object]:
        postings = postings_of(store.folder, files)
        texts = {number: text for text, number in postings.numbers.items()} | {0: ""}
        assert sorted(texts) == list(range(postings.labels + 1))
        rows = {text: places.tolist() for text, places in postings.rows.items()}
        columns: tuple[list[object], ...] = ([], [], [])
        for _, group in read_lattices(store.folder, files):
            for column, some in zip(
                columns, (group.doc_ids, [texts[k] for k in group.labels], group.times), strict=True
            ):
                column.extend(some)
        return [rows, columns]

    assert content(now, shard.files) == content(other, other.manifest.shards[0].files)
    assert "q" not in postings_of(now.folder, shard.files).numbers
