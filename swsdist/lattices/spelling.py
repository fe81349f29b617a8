"""Spelling of labels: a recogniser and a person may write one word differently, so both are folded before comparison."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Literal

#: `folded`: without case and punctuation at both ends; `exact`: as they are, for phones.
Spelling = Literal["folded", "exact"]


@lru_cache(1 << 17)  # words of lattices repeat
def spelled(text: str, spelling: Spelling, keep: str = "") -> str:
    """A word as it is compared; empty if nothing is left, as of a dash.

    Args:
        text: the word, without blanks.
        spelling: how it is compared.
        keep: punctuation that stays at its ends.
    """
    if spelling == "exact":
        return text
    text = unicodedata.normalize("NFKC", text).casefold()
    first, last = 0, len(text)
    while first < last and _is_punctuation(text[first], keep):
        first += 1
    while first < last and _is_punctuation(text[last - 1], keep):
        last -= 1
    return unicodedata.normalize("NFC", text[first:last])


def _is_punctuation(character: str, keep: str) -> bool:
    return character not in keep and unicodedata.category(character)[0] in "PSZ"
