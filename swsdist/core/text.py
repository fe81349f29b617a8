"""Names chosen by users, printed on one line; and suggestions for misspelled names.

A file's name may contain anything but a slash: a line break or tab would break a table of lines, and the terminal would
execute an escape sequence.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

#: Unicode's general categories to escape: control characters, and separators of lines and paragraphs.
_BREAKING = frozenset(("Cc", "Zl", "Zp"))


def shown(text: str) -> str:
    """A text on one line: control characters and line separators as Python writes them (`\\n`, `\\t`, `\\x1b`,
    `\\u2028`).

    Lone surrogates (from file names that are not UTF-8) and backslashes stay.
    """
    if text.isprintable():
        return text
    return "".join(repr(item)[1:-1] if unicodedata.category(item) in _BREAKING else item for item in text)


def suggestion(word: str, choices: Iterable[str]) -> str:
    """Addition to a message about an unknown word: the most similar choice; empty if none is similar."""
    return "".join(f"; did you mean {close}?" for close in get_close_matches(word, list(choices), 1))
