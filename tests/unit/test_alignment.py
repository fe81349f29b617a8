"""Words of a given text take the places of what is heard, and none where something else is said."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdist.chains.lattices.texts import Texts
from swsdist.core.codes import lattices as codes
from swsdist.lattices.alignment import aligned, placed
from swsdist.lattices.lattice import LeftOut, Word, transcript
from tests.support.coded import raises

TEXT = [
    "the",
    "quiet",
    "tenant",
    "of",
    "the",
    "old",
    "lighthouse",
    "near",
    "Drusilvane",
    "arrived",
    "six",
    "years",
    "ago",
]


def heard(words: list[str], start: float = 0.0) -> list[Word]:
    return [Word(word, start + k, start + k + 0.75) for k, word in enumerate(words)]


def of_many(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices("abcdefghijklmnop", k=6)) for _ in range(count)]


def test_misheard_words_take_the_place_of_what_is_heard() -> None:
    words = " ".join(TEXT).replace("Drusilvane", "drew silver vane").split()
    places = placed(TEXT, heard(words))
    assert [(word.text, word.start, word.end) for word in places if word][7:10] == [
        ("near", 7.0, 7.75),
        ("Drusilvane", 8.0, 10.75),
        ("arrived", 11.0, 11.75),
    ]


def test_a_word_that_is_not_heard_lies_between_its_neighbours() -> None:
    places = placed([*TEXT[:3], "-", *TEXT[3:]], [word for k, word in enumerate(heard(TEXT)) if k != 6])
    found = {word.text: (word.start, word.end) for word in places if word}
    assert (found["-"], found["lighthouse"]) == ((2.75, 3.0), (5.75, 7.0))


@given(st.integers(0, 150), st.integers(0, 150), st.integers(0, 9))
def test_what_is_not_said_has_no_place(first: int, count: int, seed: int) -> None:
    """Of a text of which the sound lacks a part, at most a few words at its ends have a wrong one."""
    text = of_many(300, seed)
    places = placed(text, [word for k, word in enumerate(heard(text)) if not first <= k < first + count])
    right = [word is not None and word.start == k for k, word in enumerate(places)]
    far = [k for k in range(300) if k < first - 15 or k >= first + count + 15]
    assert all(right[k] for k in far)
    assert not any(places[k] for k in range(first + 15, min(first + count, 300) - 15))


def test_another_text_is_no_text_of_the_recording() -> None:
    other = transcript("talk", heard(of_many(30, 1)))
    with raises(codes.NOT_THE_TEXT, where="talk"):
        aligned(TEXT, other, heard(of_many(30, 1)))
    with raises(codes.NOT_THE_TEXT, heard="nothing"):
        aligned(TEXT, transcript("talk", []), [])
    left_out = aligned([*of_many(30, 1), *TEXT], other, heard(of_many(30, 1))).left_out or LeftOut()
    assert [error.code for error in left_out.errors] == [codes.WORDS_WITHOUT_PLACE.name]


def test_texts(tmp_path: Path) -> None:
    """Beside recordings, of a table with and without a header."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a/talk.txt").write_text("Hello,\n world!\n", encoding="utf-8")
    (tmp_path / "a/talk.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nnot this\n", encoding="utf-8")
    (tmp_path / "film.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nall of these\n", encoding="utf-8")
    texts = Texts(str(tmp_path), {})
    assert (texts.of("a/talk"), texts.of("film")) == (("Hello,", "world!"), ("all", "of", "these"))
    (tmp_path / "t.csv").write_text('speaker,path,sentence\nann,x/talk.wav,"One, two"\n', encoding="utf-8")
    texts = Texts(str(tmp_path / "t.csv"), {})
    assert (texts.left, texts.of("x/talk"), texts.of("film"), texts.left) == (["x/talk"], ("One,", "two"), None, [])
    (tmp_path / "t.tsv").write_text('talk\t"One\n\ntalk\n', encoding="utf-8")
    with raises(codes.ROW_WITHOUT_TEXT, where=f"{tmp_path}/t.tsv:3"):
        Texts(str(tmp_path / "t.tsv"), {})


@pytest.mark.parametrize("names", [[], ["empty.txt"]])
def test_no_texts(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text(" \n", encoding="utf-8")
    with raises(codes.NO_GIVEN_TEXTS, where=str(tmp_path)):
        Texts(str(tmp_path), {})
