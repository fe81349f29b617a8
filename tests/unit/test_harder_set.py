"""Kinds of match of a query in a document, and documents whose words change places."""

from __future__ import annotations

import pytest

from benchmarks.harder_set import Piece, Query, Speech, match, swap_for


def speech(*words: str) -> Speech:
    """Words of phones of 0.1 s, a letter each; `_` is a pause of 0.1 s."""
    pieces, phones = [], []
    time = 0.0
    for word in words:
        start = time
        for letter in word:
            if letter != "_":
                phones.append(Piece(round(time, 3), round(time + 0.1, 3), letter))
            time += 0.1
        if word.strip("_"):
            pieces.append(Piece(round(start, 3), round(time, 3), word))
    return Speech(pieces, phones)


def query(*words: str) -> Query:
    of = speech(*words)
    return Query("q", 0.0, of.words[-1].end, words, tuple(of.phones), tuple(map(len, words)))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("xx", "abcd", "efgh"), ("T1", 0.2, 1.0)),
        (("abcd", "___", "efgh"), ("T1", 0.0, 1.1)),
        (("ab", "cdefgh", "x"), ("T1", 0.0, 0.8)),
        (("abcd", "efgx"), ("T2", 0.0, 0.7)),
        (("x", "cd", "efgh"), ("T2", 0.1, 0.7)),
        (("abcd", "exxx"), None),
        (("abcd", "x", "efgh"), ("T3", 0.0, 0.9)),
        (("efgh", "xx", "abcd"), ("T3", 0.0, 1.0)),
        (("efgh", "xxxxxxxxxxxx", "abcd"), None),
        (("abcd", "xx"), None),
    ],
)
def test_kinds(words: tuple[str, ...], expected: tuple[str, float, float] | None) -> None:
    assert match(query("abcd", "efgh"), speech(*words)) == expected


@pytest.mark.parametrize(
    ("words", "parted", "expected"),
    [
        (("xx", "abcd", "efgh"), False, ["xx", "efgh", "abcd"]),
        (("abcd", "efgh", "x", "yy"), True, ["abcd", "x", "yy", "efgh"]),
        (("yy", "abcd", "efgh"), True, ["abcd", "yy", "efgh"]),
    ],
)
def test_swaps(words: tuple[str, ...], parted: bool, expected: list[str]) -> None:
    document, wanted = speech(*words), query("abcd", "efgh")
    swap = swap_for(wanted, document, parted)
    assert swap is not None
    swapped = document.swapped(*swap)
    assert [word.name for word in swapped.words] == expected
    assert "".join(phone.name for phone in swapped.phones) == "".join(expected)
    assert swapped.words[-1].end == document.words[-1].end
    found = match(wanted, swapped)
    assert found is not None
    assert found[0] == "T3"


def test_nothing_to_part_by() -> None:
    assert swap_for(query("abcd", "efgh"), speech("abcd", "efgh"), True) is None
