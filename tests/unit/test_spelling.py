"""How labels and terms are compared."""

from __future__ import annotations

import unicodedata

import pytest

from swsdist.lattices.lattice import BREAK
from swsdist.lattices.words import pieces, spelled, written


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Hello,", "hello"),
        ("«Straße»", "strasse"),
        ("it's", "it's"),
        ("'tis", "tis"),
        ("x-ray", "x-ray"),
        ("—", ""),
        ("...", ""),
        ("ＡＢＣ", "abc"),  # wide letters
        ("50%", "50"),
        (unicodedata.normalize("NFD", "Café"), "café"),
        ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
        ("مرحبا؟", "مرحبا"),
        ("İstanbul", "istanbul"),
        ("\u200fשלום\u200f", "שלום"),
        ("don’t", "don't"),
        ("l’homme’", "l'homme"),
        ("co\u00adop", "coop"),
        ("(C++),", "c++"),
        ("#C#", "c#"),
        ("++", ""),
        ("", ""),
        (BREAK, BREAK),
    ],
)
def test_folded(text: str, folded: str) -> None:
    assert spelled(text, "folded") == folded
    assert spelled(folded, "folded") == folded
    assert spelled(text, "exact") == text


def test_kept_punctuation() -> None:
    assert spelled("'he?*'", "folded", keep="?*") == "he?*"
    assert spelled("?he", "folded") == "he"


@pytest.mark.parametrize(
    ("word", "expected"),
    [("你好AI", ["你", "好", "AI"]), ("ที่นี่", ["ที่", "นี่"]), ("hello", ["hello"]), ("naïve", ["naïve"]), ("", [])],
)
def test_a_word_of_a_script_without_blanks_is_its_characters(word: str, expected: list[str]) -> None:
    assert pieces(word) == expected


def test_a_text_has_blanks_where_its_scripts_have() -> None:
    assert written(["你", "好", "world", "of", "中", "国"]) == "你好 world of 中国"
    assert written(["你", "好", "。", "我", "ok", "。", "go"]) == "你好。我 ok 。 go"
