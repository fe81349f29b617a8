"""The README's result is what the config gives."""

from __future__ import annotations

import io

import pytest
from markdown_pages import ROOT, blocks
from rich.console import Console

from swsdist import RunResult
from swsdist.report.headline import print_headline, print_location


@pytest.mark.docs
def test_mboshi_dev(mboshi_dev: RunResult) -> None:
    """Line by line, but for what depends on the machine: the costs, and where the run lies."""
    shown = next(block.code for block in blocks(ROOT / "README.md") if block.code.startswith("protocol"))
    assert mboshi_dev.report is not None
    out = io.StringIO()
    print_headline(mboshi_dev.report, Console(file=out))
    print_location(mboshi_dev.report, Console(file=out))

    def lines(text: str) -> list[list[str]]:
        rows = [line.split() for line in text.splitlines()]
        return [row[:1] if row[0] == "SSF" else row[:3] if row[0] == "result" else row for row in rows]

    assert lines(shown) == lines(out.getvalue())
    assert len(lines(shown)) == 8
