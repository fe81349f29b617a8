"""Spelling of labels: a recogniser and a person may write one word differently, so both are folded before comparison.

Apostrophes at the ends go with the punctuation: for orthographies in which they are letters there is `exact`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

#: `folded`: without case and punctuation at both ends; `exact`: as they are, for phones.
Spelling = Literal["folded", "exact"]

#: What casefolding leaves of the Turkish capital; the apostrophe that typographers write; and marks that nobody sees.
_ALIKE = {"i\u0307": "i", "\u2019": "'"} | dict.fromkeys(
    map(chr, (0xAD, 0x61C, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), 0x2060, *range(0x2066, 0x206A), 0xFEFF)), ""
)
_UNLIKE = re.compile("|".join(_ALIKE))
#: Signs that end a name, as in C++ and C#.
_OF_NAMES = "+#"


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
    return unicodedata.normalize("NFC", bare(_UNLIKE.sub(lambda match: _ALIKE[match[0]], text), keep))


def unmarked(word: str) -> str:
    """A folded word without accents, tone marks and other marks over and under letters, which are often not typed."""
    return "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))


def bare(text: str, keep: str = "") -> str:
    """A word without punctuation at its ends, but for `keep` and signs that end a name; empty if nothing is left."""
    first, last = 0, len(text)
    while first < last and _is_punctuation(text[first], keep):
        first += 1
    while first < last and _is_punctuation(text[last - 1], keep):
        if text[last - 1] in _OF_NAMES and text[first:last].rstrip(_OF_NAMES)[-1:].isalnum():
            break
        last -= 1
    return text[first:last]


def _is_punctuation(character: str, keep: str) -> bool:
    return character not in keep and unicodedata.category(character)[0] in "PSZ"


#: Scripts that are written without blanks: Thai, Lao, Burmese, Khmer; kana; Han. A mark belongs to the character before it.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_IN_SCRIPT, _PIECES = re.compile(f"[{_UNSPACED}]"), re.compile(f"[{_UNSPACED}]|[^{_UNSPACED}]+")


def pieces(word: str) -> list[str]:
    """The characters of a word in a script without blanks, of which programs make different words; others are one piece."""
    result: list[str] = []
    for piece in _PIECES.findall(word):
        if result and unicodedata.category(piece[0])[0] == "M":
            result[-1] += piece
        else:
            result.append(piece)
    return result


#: Hyphens and apostrophes of a folded word.
_JOINTS = re.compile("['\u2010-]")


def parts(word: str) -> list[str]:
    """What stands between the hyphens and apostrophes of a folded word: programs write it as one word, or apart."""
    if not _JOINTS.search(word):
        return [word]
    return [part for text in _JOINTS.split(word) if (part := spelled(text, "folded"))] or [word]


def written(words: Iterable[str]) -> str:
    """Words as a text, without blanks between pieces of scripts that have none, and their punctuation."""
    text = ""
    for word in words:
        kinds = {_kind(text[-1]), _kind(word[0])} if text else set()
        bare = not text or kinds in ({"script"}, {"script", "mark"})
        text += word if bare else f" {word}"
    return text


def _kind(character: str) -> str:
    if _IN_SCRIPT.match(character):
        return "script"
    wide = unicodedata.east_asian_width(character) in "WF" and unicodedata.category(character)[0] == "P"
    return "mark" if wide else ""
