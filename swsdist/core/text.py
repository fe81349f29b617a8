"""Names chosen by users, printed on one line; suggestions for misspelled names; and counts with their nouns.

A file's name may contain anything but a slash: a line break or tab would break a table of lines, and the terminal would
execute an escape sequence.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

#: Unicode's general categories to escape: control characters, and separators of lines and paragraphs.
_BREAKING = frozenset(("Cc", "Zl", "Zp"))
#: What no file keeps: a zero byte, and half of a surrogate pair, which JSON can write.
_UNKEPT = re.compile("[\0\ud800-\udfff]")

#: Characters of a text in a message.
_BRIEF = 60


def shown(text: str) -> str:
    """A text on one line: control characters and line separators as Python writes them (`\\n`, `\\t`, `\\x1b`,
    `\\u2028`).

    Lone surrogates (from file names that are not UTF-8) and backslashes stay.
    """
    if text.isprintable():
        return text
    return "".join(repr(item)[1:-1] if unicodedata.category(item) in _BREAKING else item for item in text)


def brief(text: str) -> str:
    """A text as `shown`, of which a message holds 60 characters at most."""
    return shown(text if len(text) <= _BRIEF else f"{text[: _BRIEF - 1]}…")


def kept(text: str) -> bool:
    """Whether files keep a text: it has no zero byte, and no half of a surrogate pair."""
    return not _UNKEPT.search(text)


def closest(word: str, choices: Iterable[str]) -> str | None:
    """The choice most similar to a misspelt word, in whatever case; None if none is similar."""
    from difflib import get_close_matches

    lower = {choice.lower(): choice for choice in choices}
    return next((lower[close] for close in get_close_matches(word.lower(), lower, 1)), None)


def suggestion(word: str, choices: Iterable[str]) -> str:
    """Addition to a message about an unknown word: the closest choice, if any."""
    close = closest(word, choices)
    return "" if close is None else f"; did you mean {close}?"


def counted(count: int, noun: str, plural: str = "") -> str:
    """A count and its noun: `1 class`, `2 classes`. The plural is the noun with an s unless given."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"
