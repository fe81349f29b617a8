"""Transcripts that are written are read back: the same words, at the same times to the format's resolution."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from swsdist.exports.transcripts import CTM, Transcript, write
from swsdist.lattices import words as spelling
from swsdist.lattices.lattice import Lattice, Word
from swsdist.lattices.words import pieces
from tests.support.transcripts import detected, read_as

TEXTS = st.text(st.characters(exclude_categories=("C", "Z", "M")), min_size=1, max_size=12)
SECONDS = st.integers(0, 9000).map(lambda ms: ms / 1000)
CHANCES = st.integers(0, 10**6).map(lambda n: n / 10**6)


@st.composite
def following(draw: st.DrawFn) -> list[Word]:
    """Words that do not overlap, some of the same times; no two texts are the same."""
    words: list[Word] = []
    at = 0
    for _ in range(draw(st.integers(0, 12))):
        start = at + draw(st.integers(0, 900))
        at = start + draw(st.one_of(st.just(0), st.integers(2, 3000)))
        for text in draw(st.lists(TEXTS, min_size=1, max_size=3)):
            words.append(Word(f"{text}{len(words)}", start / 1000, at / 1000, draw(CHANCES)))
    return words


@st.composite
def overlapping(draw: st.DrawFn) -> list[Word]:
    rows = draw(st.lists(st.tuples(TEXTS, SECONDS, SECONDS, CHANCES), max_size=8))
    words = [Word(text, min(a, b), max(a, b), sure) for text, a, b, sure in rows]
    return sorted(words, key=lambda word: word.start)


def read_back(form: str, channels: dict[int, list[Word]]) -> dict[int, list[Word]]:
    """What is read of the file of a format, by channel."""
    with tempfile.TemporaryDirectory() as folder:
        names = write(Transcript("a/talk", "", 1.0, channels), [form], Path(folder), set())
        path = Path(folder) / (CTM if form == "ctm" else names[0])
        reader = {"vtt": "webvtt", "eaf": "elan"}.get(form, form)
        assert not path.stat().st_size or detected(path.name, path.read_bytes()) == reader
        lattices = read_as(reader, path)
    assert all(isinstance(lattice, Lattice) and not lattice.left_out.count for lattice in lattices), lattices  # type: ignore[union-attr]
    return {lattice.channel: list(lattice.words) for lattice in lattices}  # type: ignore[union-attr, arg-type]


def in_pieces(words: list[Word]) -> list[Word]:
    return [word._replace(text=piece) for word in words for piece in pieces(word.text)]


def same(read: list[Word], words: list[Word], within: float, sure: bool) -> None:
    words = in_pieces(words)
    assert [word.text for word in read] == [word.text for word in words]
    for ours, theirs in zip(read, words, strict=True):
        assert ours[1:3] == pytest.approx(theirs[1:3], abs=within)
        assert not sure or ours.confidence == pytest.approx(theirs.confidence, abs=2e-6)


@given(following())
@example([Word("yes.", k / 2, k / 2 + 0.5) for k in range(6)])
@example([Word("a" * 50, 0.0, 1.0), Word("b" * 50, 1.0, 2.0), Word("<i>1</i>", 2.0, 2.0), Word("&lt;-->", 2.0, 2.5)])
@example([Word(text, k / 2, k / 2 + 0.5) for k, text in enumerate(("你", "好。", "我", "ok,", "no", "行", "ไป"))])
def test_words_that_follow_each_other(words: list[Word]) -> None:
    for form in ("vtt", "textgrid", "eaf"):
        same(read_back(form, {1: words}).get(1, []), words, 0.0021, False)
    bare = in_pieces([word._replace(text=word.text.translate(str.maketrans("<>{}", "‹›()"))) for word in words])
    read = read_back("srt", {1: bare}).get(1, [])
    assert [word.text for word in read] == [word.text for word in bare]
    for ours, theirs in zip(read, bare, strict=True):
        assert ours.start - 1e-6 <= theirs.start <= theirs.end <= ours.end + 0.0011


@given(overlapping(), overlapping())
def test_words_that_may_overlap(first: list[Word], second: list[Word]) -> None:
    same(read_back("json", {1: first}).get(1, []), first, 1e-9, True)
    by_channel = read_back("ctm", {1: first, 3: second})
    for channel, words in ((1, first), (3, second)):
        bare = [word._replace(text=text) for word in in_pieces(words) if (text := spelling.bare(word.text))]
        same(by_channel.get(channel, []), bare, 1e-6, True)
    for form in ("textgrid", "eaf"):
        read = read_back(form, {1: first, 2: second})[1]
        same(sorted(read), sorted(in_pieces([*first, *second])), 0.0021, False)
