"""Dictionaries, rules, and the words that sound nearest."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from swsdist.core.codes import families
from swsdist.lattices.terms import Vocabulary, by_rules, read_dictionary, read_rules
from tests.oracles.edits import edits
from tests.support.coded import raises


def written(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_dictionary(tmp_path: Path) -> None:
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


def test_numbers_that_are_phones_or_probabilities(tmp_path: Path) -> None:
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


def test_mistakes_in_dictionaries_and_rules(tmp_path: Path) -> None:
    for text in ("a A\nb 0.0 B\n", "a A\nb 0.5\n"):
        with raises(families.MALFORMED_LINE, where="d.txt:2", word="b"):
            read_dictionary(written(tmp_path / "d.txt", text), None, "folded")
    with raises(families.DUPLICATE_NAME, where="r.txt:3", letters="ch"):
        read_rules(written(tmp_path / "r.txt", "ch C\nh\nCH K\n"), None, "folded")
    rules = read_rules(written(tmp_path / "r.txt", "c k\nch C\nh\na a\nsch S\n' \n"), None, "folded")
    said = {"chac": ("C", "a", "k"), "scha": ("S", "a"), "ha'": ("a",), "h": None, "ab": None}
    assert {word: by_rules(word, rules) for word in said} == said
    assert by_rules("a", {}) is None


def test_nearest_words() -> None:
    words = {"cat": [("k", "a", "t")], "cut": [("k", "u", "t")], "at": [("a", "t"), ("e", "t")]}
    words["long"] = [tuple("longer")]
    spoken = [("k", "a", "p"), ("e", "t")]
    expected = sorted(
        (min(edits(item, phones) for item in items for phones in spoken), word) for word, items in words.items()
    )
    vocabulary = Vocabulary(words)
    assert vocabulary.nearest(spoken, 9) == [(word, distance) for distance, word in expected]
    assert vocabulary.nearest(spoken, 2) == [("at", 0), ("cat", 1)]
    for most in range(8):
        within = [(word, distance) for distance, word in expected if distance <= most]
        assert vocabulary.nearest(spoken, 9, most) == within
    assert Vocabulary({}).nearest(spoken, 2, 1) == []
