"""Names chosen by users, printed on one line; and suggestions for misspelled ones.

A file may be called by anything but a slash: a line break or a tab in a name would break a table of lines, and an escape
sequence would be obeyed by the terminal.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

#: Unicode's general categories of what is escaped: control characters, and separators of lines and paragraphs.
_BREAKING = frozenset(("Cc", "Zl", "Zp"))


def shown(text: str) -> str:
    """A text on one line: control characters and line separators as Python writes them (`\\n`, `\\t`, `\\x1b`, `\\u2028`).

    What is not UTF-8 in a file's name (lone surrogates) stays, and so do backslashes.
    """
    if text.isprintable():
        return text
    return "".join(repr(item)[1:-1] if unicodedata.category(item) in _BREAKING else item for item in text)


def suggestion(word: str, choices: Iterable[str]) -> str:
    """What to add to a message about an unknown word: the choice that is most like it; empty if none is."""
    return "".join(f"; did you mean {close}?" for close in get_close_matches(word, list(choices), 1))
