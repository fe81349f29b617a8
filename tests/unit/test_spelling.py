"""How labels and terms are compared."""

from __future__ import annotations

import unicodedata

from swsdist.lattices.lattice import BREAK
from swsdist.lattices.words import pieces, spelled, written

#: Texts as they are compared.
FOLDED = {"Hello,": "hello", "«Straße»": "strasse", "it's": "it's", "'tis": "tis", "x-ray": "x-ray", "—": "", "...": ""}
FOLDED |= {"ＡＢＣ": "abc", "50%": "50", unicodedata.normalize("NFD", "Café"): "café", "ΣΊΣΥΦΟΣ": "σίσυφοσ", "": ""}
FOLDED |= {"مرحبا؟": "مرحبا", "İstanbul": "istanbul", "\u200fשלום\u200f": "שלום", "don’t": "don't", "++": ""}
FOLDED |= {"l’homme’": "l'homme", "co\u00adop": "coop", "(C++),": "c++", "#C#": "c#", BREAK: BREAK}


def test_folded() -> None:
    assert {text: spelled(text, "folded") for text in FOLDED} == FOLDED
    for text, folded in FOLDED.items():
        assert spelled(folded, "folded") == folded
        assert spelled(text, "exact") == text
    assert spelled("'he?*'", "folded", keep="?*") == "he?*"
    assert spelled("?he", "folded") == "he"


def test_a_word_of_a_script_without_blanks_is_its_characters() -> None:
    words = {"你好AI": ["你", "好", "AI"], "ที่นี่": ["ที่", "นี่"], "hello": ["hello"], "naïve": ["naïve"], "": []}
    assert {word: pieces(word) for word in words} == words
    assert written(["你", "好", "world", "of", "中", "国"]) == "你好 world of 中国"
    assert written(["你", "好", "。", "我", "ok", "。", "go"]) == "你好。我 ok 。 go"
