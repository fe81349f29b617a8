"""Kinds of match of a query in a document, and documents whose words change places."""

from __future__ import annotations

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


def test_kinds() -> None:
    for words, expected in (
        (("xx", "abcd", "efgh"), ("T1", 0.2, 1.0)),
        (("ab", "cdefgh", "x"), ("T1", 0.0, 0.8)),
        (("abcd", "efgx"), ("T2", 0.0, 0.7)),
        (("abcd", "exxx"), None),
        (("abcd", "x", "efgh"), ("T3", 0.0, 0.9)),
        (("efgh", "xx", "abcd"), ("T3", 0.0, 1.0)),
        (("efgh", "xxxxxxxxxxxx", "abcd"), None),
    ):
        assert match(query("abcd", "efgh"), speech(*words)) == expected


def test_swaps() -> None:
    wanted = query("abcd", "efgh")
    for words, parted, expected in (
        (("xx", "abcd", "efgh"), False, ["xx", "efgh", "abcd"]),
        (("yy", "abcd", "efgh"), True, ["abcd", "yy", "efgh"]),
    ):
        swap = swap_for(wanted, speech(*words), parted)
        assert swap is not None
        swapped = speech(*words).swapped(*swap)
        assert [word.name for word in swapped.words] == expected
        assert (match(wanted, swapped) or ("none",))[0] == "T3"
    assert swap_for(wanted, speech("abcd", "efgh"), True) is None
