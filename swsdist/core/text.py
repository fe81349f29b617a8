"""Names that others chose, as a line of text shows them.

A file may be called by anything but a slash: a line break or a tab in a name would break a table of lines, and an escape
sequence would be obeyed by the terminal.
"""

from __future__ import annotations

import unicodedata

#: Unicode's general categories of what is escaped: control characters, and separators of lines and paragraphs.
_BREAKING = frozenset(("Cc", "Zl", "Zp"))


def shown(text: str) -> str:
    """A text on one line: control characters and line separators as Python writes them (`\\n`, `\\t`, `\\x1b`, `\\u2028`).

    What is not UTF-8 in a file's name (lone surrogates) stays, and so do backslashes.
    """
    if text.isprintable():
        return text
    return "".join(repr(one)[1:-1] if unicodedata.category(one) in _BREAKING else one for one in text)
