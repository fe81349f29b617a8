"""Generators of pages, most in docs/reference; `python -m tools.pages` writes all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from swsdist.config.template import reference
from tools.pages import api, architecture, codes, commands, inserted, report_json, tables

FOLDER = Path(__file__).parents[2] / "docs" / "reference"

#: What gives the text of each page.
PAGES: Mapping[str, Callable[[], str]] = {
    "../concepts/architecture.md": architecture.page,
    "../images/architecture.svg": architecture.picture,
    "api.md": api.page,
    "codes.md": codes.page,
    "commands.md": commands.page,
    "config.md": reference,
    "report-json.md": report_json.page,
    "tables.md": tables.page,
    **{name: partial(inserted.page, FOLDER / name) for name in ("features.md", "metrics.md", "recordings.md")},
}
