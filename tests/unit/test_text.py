"""Names that others chose stay on their line."""

from __future__ import annotations

import pytest

from swsdist.core.text import shown


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a\nb\tc", r"a\nb\tc"),
        ("\x1b[2J\x85\u2028", r"\x1b[2J\x85\u2028"),
        ("ä b\u00a0c\\n", "ä b\u00a0c\\n"),
        ("caf\udce9", "caf\udce9"),
    ],
)
def test_shown(name: str, line: str) -> None:
    assert shown(name) == line
