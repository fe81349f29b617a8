"""Lattices as they are searched and shards hold them, and written terms as sequences of their labels."""

import dataclasses
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.core.codes import families
from swsdist.core.codes import lattices as codes
from swsdist.core.errors import TermError
from swsdist.io.filesystem import Folder
from swsdist.lattices.lattice import BREAK, Lattice, Word, transcript
from swsdist.lattices.packed import Packed, Recipe, pack
from swsdist.lattices.terms import MOST, TermReader, Terms, Vocabulary, by_rules, read_dictionary, read_rules
from swsdist.lattices.words import pieces, spelled
from swsdist.lattices.words import written as joined
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
from swsdist.store.memory import Memory
from swsdist.store.reading import Store
from tests.oracles.edits import edits
from tests.oracles.phrases import paths, pattern
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


def test_scales_pruning_and_what_cannot_be_packed() -> None:
    for r, odds in ((Recipe(), 9.0), (Recipe(acoustic_scale=0.1), 0.0), (Recipe(acoustic_scale=0.1, lm_scale=0), 1.0)):
        chances = pack(CHOICE, r).chances
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
    memory = Memory(1 << 20)
    (one, *_) = (group for _, group in read_lattices(folder, files, memory=memory))
    left = memory.room
    (other, *_) = (group for _, group in read_lattices(folder, files, memory=memory))
    assert memory.room == left < 1 << 20
    assert one.doc_ids == other.doc_ids
    assert np.shares_memory(one.steps, other.steps)
    assert list(read_lattices(folder, files, rows=np.zeros(5, bool), memory=memory)) == []


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
            for c, some in zip(columns, (group.doc_ids, [texts[k] for k in group.labels], group.times), strict=True):
                c.extend(some)
        return [rows, columns]

    assert content(now, shard.files) == content(other, other.manifest.shards[0].files)
    assert "q" not in postings_of(now.folder, shard.files).numbers


DICTIONARY = "read R EH D\nread R IY D\nthe 0.5 DH AH\nred R EH D\nbook B UH K\n"


@pytest.fixture
def options(tmp_path: Path) -> Any:
    (tmp_path / "words.txt").write_text(DICTIONARY)
    (tmp_path / "rules.txt").write_text("r R\ne EH\nd D\nb B\noo UH\nk K\n")

    def made(*, dictionary: bool = True, rules: bool = False, **values: Any) -> Terms:
        files = {"dictionary": "words.txt"} if dictionary else {}
        files |= {"rules": "rules.txt"} if rules else {}
        return Terms(**{name: str(tmp_path / path) for name, path in files.items()}, **values)

    return made


def labels(term: str, options: Terms | None = None, recipe: Recipe | None = None) -> list[str]:
    alternatives = TermReader(options or Terms(), recipe or Recipe()).alternatives(term)
    return [" ".join(item.labels) for item in alternatives]


def test_words_patterns_and_words_like_one(options: Any) -> None:
    assert labels("  Good   morning! ") == ["good morning"]
    assert labels("well - yes") == ["well yes"]
    assert labels("a <sil> b") == ["a b"]
    assert labels("Good,", recipe=Recipe(spelling="exact")) == ["Good,"]
    assert labels("a? (b") == ["a b"]  # no pattern unless it is said
    assert labels("um yes", recipe=Recipe(fillers=("um",))) == ["yes"]
    for nearest in (0, 8):
        assert sorted(labels("日本", Terms(nearest=nearest))) == ["日 本", "日本"]
    for term in ("", "   ", "-", "<sil>", "?!"):
        with raises(codes.EMPTY_TERM, where=term, term=term):
            labels(term)
    for term in ("?", "* *", "? ? ?", "(a|)", "()", "- (|-)"):
        with raises(codes.EMPTY_TERM, term=term):
            labels(term, Terms(patterns=True))
    assert {term: sorted(labels(term, Terms(patterns=True))) for term in PATTERNS} == {
        term: sorted(found) for term, found in PATTERNS.items()
    }
    wide = Terms(patterns=True)
    for term, how in (("(a|b) " * 13, wide), ("read " * 13, options(units="phones")), ("a" + " *" * 7, wide)):
        with raises(codes.TOO_MANY_ALTERNATIVES, most=MOST):
            labels(term.strip(), how)
    assert len(labels(" ".join(["(a|b)"] * 12), wide)) == MOST
    reader = TermReader(Terms(nearest=8), Recipe(), known=["a-a", "a", *(f"a'{k}" for k in range(100))])
    assert 1 < len(reader.alternatives(" ".join(["a"] * 40))) <= MOST
    assert reader.alternatives(" ".join(["b"] * 3000))
    reader = TermReader(Terms(), Recipe(), known={"librarian", "libraries", "librray", "liberty", "lib", "museum"})
    assert reader.similar("library") == ["librray", "librarian", "libraries"]
    assert reader.similar("lip") == ["lib"]
    # Without a dictionary: the word, and words of the documents of which a third of the letters differ, cheapest first.
    near = Terms(units="words", nearest=2, edit_cost=0.5)
    reader = TermReader(near, Recipe(), known=["velkren", "velkrine", "velvet", "red"])
    found = [(item.labels, item.cost) for item in reader.alternatives("Velkran")]
    assert found == [(("velkran",), 0.0), (("velkren",), 0.5), (("velkrine",), 1.0)]
    assert len(reader.alternatives(" ".join(["velkran"] * 9))) <= MOST
    nearest = options(nearest=2, rules=True, edit_cost=2.0)
    reader = TermReader(nearest, Recipe())
    assert [(item.labels, item.cost) for item in reader.alternatives("bed")] == [(("read",), 2.0), (("red",), 2.0)]
    assert labels("the book", nearest) == ["the book"]  # words of the dictionary are searched as they are
    with raises(codes.NO_PRONUNCIATION, word="zz"):
        labels("zz", nearest)


PATTERNS = {
    "a ? b": ["a ? b"],
    "a * b": ["a b", "a ? b", "a ? ? b", "a ? ? ? b"],
    "(one two|three) four": ["one two four", "three four"],
    "((a|b) c|d)": ["a c", "b c", "d"],
    "a (b|)": ["a", "a b"],
    "Hel?o 'wor*'": ["hel?o wor*"],
    "(a|A|a)": ["a"],
    "a(b|c)d": ["a b d", "a c d"],
}


@settings(max_examples=200)
@given(st.lists(st.sampled_from([*"ab?*()|", "a?"]), min_size=1, max_size=8).map(" ".join))
def test_any_pattern_is_that_of_its_expression(term: str) -> None:
    """Balanced or not: what the expression takes is what the sequences match; `?` stands for itself."""
    try:
        expected = pattern(term)
    except re.error:
        with raises(codes.UNBALANCED_PATTERN, where=term, term=term):
            labels(term, Terms(patterns=True))
        return
    try:
        ours = labels(term, Terms(patterns=True))
    except TermError:  # without a word, or with too many alternatives
        assert expected.fullmatch("") or not set(term) & {"a", "b"} or term.count("*") > 5, term
        return
    assert all(expected.fullmatch(f"{sequence} ") for sequence in ours), term
    for words in (["a"], ["b"], ["a", "b"], ["b", "a"], ["a", "a", "b"]):
        ways = [way for way in map(str.split, ours) if len(way) == len(words)]
        covered = any(all(map(_matches, way, words)) for way in ways)
        assert covered == (expected.fullmatch(" ".join([*words, ""])) is not None), (term, words)


def _matches(glob: str, word: str) -> bool:
    return glob == "?" or (glob == word if "?" not in glob else len(word) == len(glob) and word.startswith("a"))


def test_phones_rows_and_identities(options: Any, tmp_path: Path) -> None:
    phones = options(units="phones")
    reader = TermReader(phones, Recipe(spelling="exact"))
    assert [(" ".join(item.labels), round(item.cost, 6)) for item in reader.alternatives("The read")] == [
        ("DH AH R EH D", 0.693147),
        ("DH AH R IY D", 0.693147),
    ]
    with raises(codes.NO_PRONUNCIATION, where="deed", word="deed"):
        labels("deed", phones)
    assert labels("bed", options(units="phones", rules=True)) == ["B EH D"]
    assert labels("read", options(units="phones", rules=True)) == ["R EH D", "R IY D"]  # the dictionary before rules
    assert labels("bed", options(units="phones", dictionary=False, rules=True)) == ["B EH D"]
    assert labels("B EH  D", Terms(units="phones"), Recipe(spelling="exact")) == ["B EH D"]
    assert labels("the ? book", options(units="phones", patterns=True)) == ["DH AH ? B UH K"]
    terms = options(units="phones")
    rows = TermReader(terms, Recipe()).rows({"query_id": "q1", "example": 1, "term": "read"})
    assert [(row["query_id"], row["example"], row["labels"], row["patterns"]) for row in rows] == [
        ("q1", 1, ["R", "EH", "D"], False),
        ("q1", 1, ["R", "IY", "D"], False),
    ]
    before = terms.identities({})
    assert terms.identities({}) == before
    (tmp_path / "words.txt").write_text(DICTIONARY + "more M AO R\n")
    assert terms.identities({}) != before


KNOWN = ["l'école", "sixty-five", "twenty-sixty-five", "sixty", "rock'n'roll", "ecole", "fairground", "fair", "ground"]
KNOWN += ["maybe", "may"]
PARTS = {
    "école": {"école", "l'école"},
    "L’école": {"l'école", "l école"},
    "sixty five": {"sixty five", "sixty-five", "twenty-sixty-five"},
    "sixty-five": {"sixty five", "sixty-five", "twenty-sixty-five"},
    "the sixty five men": {"the sixty five men", "the sixty-five men"},
    "county fair ground": {"county fair ground", "county fairground"},
    "fairground": {"fairground", "fair ground"},
    "may be": {"may be"},
    "five men": {"five men", "sixty-five men", "twenty-sixty-five men"},
    "men five": {"men five"},
    "rock roll": {"rock roll"},
}


def test_parts_of_a_label_and_labels_that_alternatives_depend_on() -> None:
    """A part finds the label, words apart find it, and it finds words apart; each at no cost. In phrases nothing is between."""
    reader = TermReader(Terms(), Recipe(), known=KNOWN)
    for term, expected in PARTS.items():
        found = {" ".join(item.labels): item.cost for item in reader.alternatives(term)}
        assert found == dict.fromkeys(expected, 0.0), term
    # With `parts: false`, `exact` spelling, phones or patterns a label is one label.
    exact = Recipe(spelling="exact")
    others = [(Terms(parts=False), Recipe()), (Terms(), exact), (Terms(units="phones"), exact)]
    for options, recipe in [*others, (Terms(patterns=True), Recipe())]:
        reader = TermReader(options, recipe, known=[*KNOWN, "five"])
        assert [item.labels for item in reader.alternatives("sixty five")] == [("sixty", "five")]
    known = [*KNOWN, "velkren", "velvet", "red", "école"]
    terms, options = ["velkran école", "sixty - <sil> five"], Terms(nearest=8)
    among = TermReader(options, Recipe(), known=known).among_labels(terms)
    assert among == {"velkren", "l'école", "ecole", "sixty-five", "twenty-sixty-five"}
    for term in terms:
        whole, part = (TermReader(options, Recipe(), known=some).alternatives(term) for some in (known, among))
        assert whole == part


def written(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_dictionary_its_numbers_and_mistakes(tmp_path: Path) -> None:
    path = written(
        tmp_path / "words.txt",
        ";;; a comment\n# another\n\nThe DH AH\nTHE(2)\tDH IY\nread 0.75 R EH D\nread 2.5e-1 R IY D\nx 1.0 E K S\n"
        "oui .5 2 i\ny 2 i\n<sil> SIL\nthe DH AH\n",
    )
    read = read_dictionary(path, None, "folded")
    assert {word: {item.labels for item in items} for word, items in read.items()} == {
        "the": {("DH", "AH"), ("DH", "IY")},
        "read": {("R", "EH", "D"), ("R", "IY", "D")},
        "x": {("E", "K", "S")},
        "oui": {("2", "i")},
        "y": {("2", "i")},  # a phone may be a number
        "sil": {("SIL",)},
    }
    assert [item.cost for item in read["read"]] == pytest.approx([-math.log(0.75), math.log(4)])
    assert read["x"][0].cost == 0.0
    assert "THE" in read_dictionary(path, None, "exact")
    acoustic = "a 0.5 0.2 1.3 0.9 A\nb 1 0.1 1 0.25 B C\n"
    for text, word, phones, probability in (
        ("în 1 n\n", "în", ("1", "n"), 1),
        ("în 1 n\na a\nb 0.5 b\n", "în", ("1", "n"), 1),
        ("o 0\n", "o", ("0",), 1),
        ("a 1 A\nb 0.5 B\n", "a", ("A",), 1),
        (acoustic, "a", ("A",), 0.5),
        (acoustic, "b", ("B", "C"), 1),
        ("a 9.98e-05 AH\nb 1e-3 B\n", "a", ("AH",), 9.98e-5),
    ):
        (read,) = read_dictionary(written(tmp_path / "d.txt", text), None, "folded")[word]
        assert (read.labels, math.exp(-read.cost)) == (phones, pytest.approx(probability))
    for text in ("a A\nb 0.0 B\n", "a A\nb 0.5\n"):
        with raises(families.MALFORMED_LINE, where="d.txt:2", word="b"):
            read_dictionary(written(tmp_path / "d.txt", text), None, "folded")
    with raises(families.DUPLICATE_NAME, where="r.txt:3", letters="ch"):
        read_rules(written(tmp_path / "r.txt", "ch C\nh\nCH K\n"), None, "folded")
    rules = read_rules(written(tmp_path / "r.txt", "c k\nch C\nh\na a\nsch S\n' \n"), None, "folded")
    said = {"chac": ("C", "a", "k"), "scha": ("S", "a"), "ha'": ("a",), "h": None, "ab": None}
    assert {word: by_rules(word, rules) for word in said} == said
    assert by_rules("a", {}) is None


def test_nearest_words_and_texts_as_they_are_compared() -> None:
    words = {"cat": [("k", "a", "t")], "cut": [("k", "u", "t")], "at": [("a", "t"), ("e", "t")]}
    words["long"] = [tuple("longer")]
    spoken = [("k", "a", "p"), ("e", "t")]
    expected = sorted((min(edits(item, p) for item in items for p in spoken), word) for word, items in words.items())
    vocabulary = Vocabulary(words)
    assert vocabulary.nearest(spoken, 9) == [(word, distance) for distance, word in expected]
    assert vocabulary.nearest(spoken, 2) == [("at", 0), ("cat", 1)]
    for most in range(8):
        within = [(word, distance) for distance, word in expected if distance <= most]
        assert vocabulary.nearest(spoken, 9, most) == within
    assert Vocabulary({}).nearest(spoken, 2, 1) == []
    assert {text: spelled(text, "folded") for text in FOLDED} == FOLDED
    for text, folded in FOLDED.items():
        assert spelled(folded, "folded") == folded
        assert spelled(text, "exact") == text
    assert spelled("'he?*'", "folded", keep="?*") == "he?*"
    assert spelled("?he", "folded") == "he"
    words = {"你好AI": ["你", "好", "AI"], "ที่นี่": ["ที่", "นี่"], "hello": ["hello"], "naïve": ["naïve"], "": []}
    assert {word: pieces(word) for word in words} == words
    assert joined(["你", "好", "world", "of", "中", "国"]) == "你好 world of 中国"
    assert joined(["你", "好", "。", "我", "ok", "。", "go"]) == "你好。我 ok 。 go"


#: Texts as they are compared.
FOLDED = {"Hello,": "hello", "«Straße»": "strasse", "it's": "it's", "'tis": "tis", "x-ray": "x-ray", "—": "", "...": ""}
FOLDED |= {"ＡＢＣ": "abc", "50%": "50", unicodedata.normalize("NFD", "Café"): "café", "ΣΊΣΥΦΟΣ": "σίσυφοσ", "": ""}
FOLDED |= {"مرحبا؟": "مرحبا", "İstanbul": "istanbul", "\u200fשלום\u200f": "שלום", "don’t": "don't", "++": ""}
FOLDED |= {"l’homme’": "l'homme", "co\u00adop": "coop", "(C++),": "c++", "#C#": "c#", BREAK: BREAK}
