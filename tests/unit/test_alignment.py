"""Words of a given text take the places of what is heard, and none where something else is said."""

import random
import re
from collections import Counter
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdist.chains.lattices.recordings import texts_of
from swsdist.core.codes import families
from swsdist.core.codes import lattices as codes
from swsdist.lattices.lattice import LeftOut, Word, transcript
from swsdist.lattices.recognition import _edits, _pairs, aligned, placed
from swsdist.lattices.words import written
from tests.oracles.edits import edits
from tests.support.coded import raises

TEXT = re.findall(r"\w+", "the quiet tenant of the old lighthouse near Drusilvane arrived six years ago")


def heard(words: list[str], start: float = 0.0) -> list[Word]:
    return [Word(word, start + k, start + k + 0.75) for k, word in enumerate(words)]


def of_many(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices("abcdefghijklmnop", k=6)) for _ in range(count)]


def test_misheard_words_and_numbers_take_the_places_of_what_is_heard() -> None:
    places = placed(TEXT, heard(" ".join(TEXT).replace("Drusilvane", "drew silver vane").split()))
    around = [(word.text, word.start, word.end) for word in places if word][7:10]
    assert around == [("near", 7.0, 7.75), ("Drusilvane", 8.0, 10.75), ("arrived", 11.0, 11.75)]
    places = placed([*TEXT[:3], "-", *TEXT[3:]], [word for k, word in enumerate(heard(TEXT)) if k != 6])
    found = {word.text: (word.start, word.end) for word in places if word}
    assert found["-"] == (2.75, 3.0)
    assert found.keys() == {*TEXT, "-"} - {"lighthouse"}
    words = ["in", "the", "year", "fourteen", "fifty", "five", "the", "first", "book", "came", "from", "the", "press"]
    said = spoken(words)
    as_figures = [*said[:3], Word("1455", said[3].start, said[5].end), *said[6:]]
    places = placed(words, as_figures)
    assert all(places)
    assert [word.start for word in places[3:6] if word] == pytest.approx([word.start for word in said[3:6]])
    other = transcript("talk", heard(of_many(30, 1)))
    with raises(codes.NOT_THE_TEXT, where="talk"):
        aligned(" ".join(TEXT), other, heard(of_many(30, 1)))
    with raises(codes.NOT_THE_TEXT, heard="nothing"):
        aligned(" ".join(TEXT), transcript("talk", []), [])
    left_out = aligned(" ".join([*of_many(30, 1), *TEXT]), other, heard(of_many(30, 1))).left_out or LeftOut()
    assert [error.code for error in left_out.errors] == [codes.WORDS_WITHOUT_PLACE.name]
    said = heard(list("今天天气很好我们去公园"))
    words = aligned("今天天气很好，我们去公园。", transcript("talk", said), said).words or ()
    assert written([word.text for word in words]) == "今天天气很好，我们去公园。"
    assert [word._replace(text=word.text.strip("，。")) for word in words] == said


def spoken(words: list[str]) -> list[Word]:
    """Words at 15 letters a second, without pauses."""
    ends = np.cumsum([0, *map(len, words)]) / 15
    return [Word(word, a, b) for word, a, b in zip(words, ends[:-1].tolist(), ends[1:].tolist(), strict=True)]


SENTENCE = """Printing, in the only sense with which we are at present concerned, differs from most if not from all the arts
and crafts represented in the Exhibition"""
FOREIGN = """by the way my cat is called Oscar and he likes fish, thank you all very much for listening. Good night."""


@pytest.mark.parametrize("way", ["inserted", "appended", "prepended", "replaced", "deleted"])
def test_invented_words_have_no_place_and_others_keep_theirs(way: str) -> None:
    """In a text of which a word in ten is misheard."""
    rng, others = random.Random(way), FOREIGN.split()
    counts: Counter[str] = Counter()
    for _ in range(20):
        text = [*SENTENCE.split(), *of_many(30, rng.randrange(1000)), *TEXT]
        said = [word if rng.random() < 0.9 else word.replace(rng.choice(word), "w") for word in text]
        true = placed(text, spoken(said))
        k = {"appended": len(text), "prepended": 0}.get(way, rng.randrange(len(text)))
        count = rng.randint(1, 12)
        first = rng.randrange(len(others) - count)
        foreign = [] if way == "deleted" else others[first : first + count]
        rest = k + count if way in ("replaced", "deleted") else k
        places = placed([*text[:k], *foreign, *text[rest:]], spoken(said))
        ours, theirs = [*true[:k], *true[rest:]], [*places[:k], *places[k + len(foreign) :]]
        counts["true"] += len(ours)
        counts["other"] += sum((a and a[1:3]) != (b and b[1:3]) for a, b in zip(ours, theirs, strict=True))
        found = [word for word in places[k : k + len(foreign)] if word]
        counts["foreign"] += len(foreign)
        counts["placed"] += len(found)
        assert all(word.end - word.start >= 0.001 for word in places if word)
    assert counts["other"] <= 0.01 * counts["true"]
    assert counts["placed"] <= (0.25 if way == "replaced" else 0.05) * counts["foreign"]


@given(st.integers(0, 150), st.integers(0, 150), st.integers(0, 9))
def test_what_is_not_said_has_no_place(first: int, count: int, seed: int) -> None:
    """Of a text of which the sound lacks a part, at most a few words at its ends have a wrong one."""
    text = of_many(300, seed)
    places = placed(text, [word for k, word in enumerate(heard(text)) if not first <= k < first + count])
    right = [word is not None and word.start == k for k, word in enumerate(places)]
    far = [k for k in range(300) if k < first - 15 or k >= first + count + 15]
    assert all(right[k] for k in far)
    assert not any(places[k] for k in range(first + 15, min(first + count, 300) - 15))


@given(st.text("abc", max_size=40), st.text("abc", max_size=40))
def test_halves_are_cut_at_the_fewest_edits(own: str, other: str) -> None:
    letters, others = (np.array(list(map(ord, text)), np.int32) for text in (own, other))
    expected = [edits(list(letters), list(others[:k])) for k in range(len(other) + 1)]
    assert _edits(letters, others).tolist() == expected
    with mock.patch("swsdist.lattices.recognition._MOST_PAIRS", 4):
        places = [place for place in _pairs(letters, others).tolist() if place >= 0]
    assert places == sorted({*places} & {*range(len(other))})


def table(tmp_path: Path, name: str, content: str, *doc_ids: str) -> tuple[dict[str, str], list[str]]:
    (tmp_path / name).write_text(content, encoding="utf-8")
    return texts_of({*doc_ids}, str(tmp_path / name), {})


def test_texts_and_recordings_of_a_table(tmp_path: Path) -> None:
    """Its rows of a recording are joined; what lacks a column, or cannot be read, is named."""
    rows = 'speaker,path,sentence\nann,talk.wav,"One, two"\nben,talk.wav,three\nann,film.wav,\n'
    assert table(tmp_path, "t.csv", rows, "talk", "film") == ({"talk": "One, two three", "film": ""}, [])
    assert table(tmp_path, "long.tsv", f"id\ttext\na\t{'word ' * 40_000}\n", "a")[0]["a"].count("word") == 40_000
    for code, line, content in (
        (families.MISSING_COLUMN, 1, "doc_id\twords\ntalk\tOne\n"),
        (families.MISSING_COLUMN, 1, "LJ1\tIn, being\nLJ2\tmodern\n"),
        (families.BAD_CELL, 3, "doc_id\ttext\ntalk\tOne\n\ttwo\n"),
        (families.BAD_CELL, 2, 'doc_id\ttext\ntalk\t"One\nfilm\t"two\n'),
    ):
        with raises(code, where=f"{tmp_path}/t.tsv, line {line}"):
            table(tmp_path, "t.tsv", content)
    for names, doc_ids, found in (
        (["interview.1", "interview.2"], ["interview.1", "interview.2"], {"interview.1": 0, "interview.2": 1}),
        (["talk.2015.wav"], ["talk.2015"], {"talk.2015": 0}),
        (["audio/a.wav", "/x/audio/b.MP3"], ["a", "b"], {"a": 0, "b": 1}),
        (["/x/one/a.wav", "/x/two/a.wav"], ["one/a", "two/a"], {"one/a": 0, "two/a": 1}),
        (["a.wav", "x\\a.wav"], ["a", "x/a"], {"a": 0, "x/a": 1}),
        (["a", "a.flac"], ["a", "a.flac"], {"a": 0, "a.flac": 1}),
        (["a"], ["one/a", "two/a"], {}),
        (["one/a", "two/a"], ["a"], {}),
        (["ba"], ["a"], {}),
    ):
        rows = "".join(f"{name},{k}\n" for k, name in enumerate(names))
        texts, left = table(tmp_path, "t.csv", f"path,text\n{rows}", *doc_ids)
        assert texts == {name: str(k) for name, k in found.items()}
        assert left == sorted(name for k, name in enumerate(names) if k not in found.values())
