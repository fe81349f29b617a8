"""How labels and terms are compared."""

from __future__ import annotations

import unicodedata

import pytest

from swsdist.lattices.lattice import BREAK
from swsdist.lattices.spelling import spelled


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
