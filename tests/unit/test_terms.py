"""Written terms become sequences of labels."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.core.codes import lattices as codes
from swsdist.core.errors import TermError
from swsdist.lattices.packed import Recipe
from swsdist.lattices.terms import MOST, TermReader, Terms
from tests.oracles.phrases import pattern
from tests.support.coded import raises

DICTIONARY = "read R EH D\nread R IY D\nthe 0.5 DH AH\nred R EH D\nbook B UH K\n"


@pytest.fixture
def options(tmp_path: Path) -> Any:
    (tmp_path / "words.txt").write_text(DICTIONARY)
    (tmp_path / "rules.txt").write_text("r R\ne EH\nd D\nb B\noo UH\nk K\n")

    def made(*, dictionary: bool = True, rules: bool = False, **values: Any) -> Terms:
        files = {
            "dictionary": str(tmp_path / "words.txt") if dictionary else None,
            "rules": str(tmp_path / "rules.txt") if rules else None,
        }
        return Terms(**{name: path for name, path in files.items() if path}, **values)

    return made


def labels(term: str, options: Terms | None = None, recipe: Recipe | None = None) -> list[str]:
    alternatives = TermReader(options or Terms(), recipe or Recipe()).alternatives(term)
    return [" ".join(item.labels) for item in alternatives]


def test_words() -> None:
    assert labels("  Good   morning! ") == ["good morning"]
    assert labels("well - yes") == ["well yes"]
    assert labels("a <sil> b") == ["a b"]
    assert labels("Good,", recipe=Recipe(spelling="exact")) == ["Good,"]
    assert labels("a? (b") == ["a b"]  # no pattern unless it is said
    assert labels("um yes", recipe=Recipe(fillers=("um",))) == ["yes"]


@pytest.mark.parametrize("term", ["", "   ", "-", "<sil>", "?!"])
def test_no_words(term: str) -> None:
    with raises(codes.EMPTY_TERM, where=term, term=term):
        labels(term)


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


@pytest.mark.parametrize("term", PATTERNS)
def test_patterns(term: str) -> None:
    assert sorted(labels(term, Terms(patterns=True))) == sorted(PATTERNS[term])


@settings(max_examples=200)
@given(st.lists(st.sampled_from([*"ab?*()|", "a?"]), min_size=1, max_size=8).map(" ".join))
def test_any_pattern_is_that_of_its_expression(term: str) -> None:
    """Balanced or not: what the expression takes is what the sequences match; `?` stands for itself."""
    try:
        expected = pattern(term)
    except re.error:
        with raises(codes.UNBALANCED_PATTERN, term=term):
            labels(term, Terms(patterns=True))
        return
    try:
        ours = labels(term, Terms(patterns=True))
    except TermError:  # without a word, or with too many alternatives
        assert expected.fullmatch("") or not set(term) & {"a", "b"} or term.count("*") > 5, term
        return
    assert all(expected.fullmatch(f"{sequence} ") for sequence in ours), term
    literal = [" ".join(words) for words in (["a"], ["b"], ["a", "b"], ["b", "a"], ["a", "a", "b"])]
    for text in literal:
        words = text.split()
        ways = [sequence.split() for sequence in ours]
        covered = any(
            len(way) == len(words) and all(_matches(glob, word) for glob, word in zip(way, words, strict=True))
            for way in ways
        )
        assert covered == (expected.fullmatch(f"{text} ") is not None), (term, text)


def _matches(glob: str, word: str) -> bool:
    return glob == "?" or (glob == word if "?" not in glob else len(word) == len(glob) and word.startswith("a"))


@pytest.mark.parametrize("term", ["(a", "a)", "a (b|c", "a) (b", "((a)", "|a)"])
def test_unbalanced(term: str) -> None:
    with raises(codes.UNBALANCED_PATTERN, where=term, term=term):
        labels(term, Terms(patterns=True))


@pytest.mark.parametrize("term", ["?", "* *", "? ? ?", "(a|)", "()", "- (|-)"])
def test_patterns_without_a_word(term: str) -> None:
    with raises(codes.EMPTY_TERM, term=term):
        labels(term, Terms(patterns=True))


def test_too_many(options: Any) -> None:
    term = " ".join(["(a|b)"] * 13)
    with raises(codes.TOO_MANY_ALTERNATIVES, where=term, most=MOST):
        labels(term, Terms(patterns=True))
    assert len(labels(" ".join(["(a|b)"] * 12), Terms(patterns=True))) == MOST
    with raises(codes.TOO_MANY_ALTERNATIVES, most=MOST):
        labels(" ".join(["read"] * 13), options(units="phones"))
    with raises(codes.TOO_MANY_ALTERNATIVES, most=MOST):
        labels("a" + " *" * 7, Terms(patterns=True))


def test_words_like_one_that_nobody_says() -> None:
    reader = TermReader(Terms(), Recipe(), known={"librarian", "libraries", "librray", "liberty", "lib", "museum"})
    assert reader.similar("library") == ["librray", "librarian", "libraries"]
    assert reader.similar("lip") == ["lib"]


def test_phones(options: Any) -> None:
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


def test_nearest(options: Any) -> None:
    nearest = options(nearest=2, rules=True, edit_cost=2.0)
    reader = TermReader(nearest, Recipe())
    assert [(item.labels, item.cost) for item in reader.alternatives("bed")] == [(("read",), 2.0), (("red",), 2.0)]
    assert labels("the book", nearest) == ["the book"]  # words of the dictionary are searched as they are
    with raises(codes.NO_PRONUNCIATION, word="zz"):
        labels("zz", nearest)


def test_nearest_in_letters() -> None:
    """Without a dictionary: the word, and words of the documents of which a third of the letters differ, cheapest first."""
    reader = TermReader(
        Terms(units="words", nearest=2, edit_cost=0.5), Recipe(), known=["velkren", "velkrine", "velvet", "red"]
    )
    assert [(item.labels, item.cost) for item in reader.alternatives("Velkran")] == [
        (("velkran",), 0.0),
        (("velkren",), 0.5),
        (("velkrine",), 1.0),
    ]
    assert len(reader.alternatives(" ".join(["velkran"] * 9))) <= MOST


@pytest.mark.parametrize("nearest", [0, 8])
def test_a_word_of_a_script_without_blanks_is_also_its_characters(nearest: int) -> None:
    assert sorted(labels("日本", Terms(nearest=nearest))) == ["日 本", "日本"]


KNOWN = [
    "l'école",
    "sixty-five",
    "twenty-sixty-five",
    "sixty",
    "rock'n'roll",
    "ecole",
    "fairground",
    "fair",
    "ground",
    "maybe",
    "may",
]
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


@pytest.mark.parametrize("term", PARTS)
def test_parts_of_a_label(term: str) -> None:
    """A part finds the label, words apart find it, and it finds words apart; each at no cost. In phrases nothing is between."""
    alternatives = TermReader(Terms(), Recipe(), known=KNOWN).alternatives(term)
    assert {" ".join(item.labels): item.cost for item in alternatives} == dict.fromkeys(PARTS[term], 0.0)


def test_parts_are_not_asked_for() -> None:
    """With `parts: false`, `exact` spelling, phones or patterns a label is one label."""
    for options, recipe in (
        (Terms(parts=False), Recipe()),
        (Terms(), Recipe(spelling="exact")),
        (Terms(units="phones"), Recipe(spelling="exact")),
        (Terms(patterns=True), Recipe()),
    ):
        reader = TermReader(options, recipe, known=[*KNOWN, "five"])
        assert [item.labels for item in reader.alternatives("sixty five")] == [("sixty", "five")]


def test_many_readings_end() -> None:
    reader = TermReader(Terms(nearest=8), Recipe(), known=["a-a", "a", *(f"a'{k}" for k in range(100))])
    assert 1 < len(reader.alternatives(" ".join(["a"] * 40))) <= MOST
    assert reader.alternatives(" ".join(["b"] * 3000))


def test_labels_that_alternatives_depend_on() -> None:
    known = [*KNOWN, "velkren", "velvet", "red", "école"]
    terms, options = ["velkran école", "sixty - <sil> five"], Terms(nearest=8)
    among = TermReader(options, Recipe(), known=known).among_labels(terms)
    assert among == {"velkren", "l'école", "ecole", "sixty-five", "twenty-sixty-five"}
    for term in terms:
        whole, part = (TermReader(options, Recipe(), known=some).alternatives(term) for some in (known, among))
        assert whole == part


def test_rows_and_identities(options: Any, tmp_path: Path) -> None:
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
