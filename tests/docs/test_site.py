"""The docs as a site: its navigation has every page once, and mkdocs builds it without a warning."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from markdown_pages import DOCS, ROOT
from ruamel.yaml import YAML


def _paths(entry: Any) -> Iterator[str]:
    """Pages below an entry of the navigation."""
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict):
        for below in entry.values():
            yield from _paths(below)
    else:
        for below in entry:
            yield from _paths(below)


def test_the_navigation_has_every_page_once() -> None:
    nav = YAML(typ="safe").load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert sorted(_paths(nav)) == sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))


@pytest.mark.docs
def test_the_site_builds(tmp_path: Path) -> None:
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("needs mkdocs: pip install 'swsdist[site]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    sources = (tmp_path / "site/sources.html").read_text(encoding="utf-8")
    assert "swsdist/score/measures/twv.py" in sources
    assert "../swsdist" not in sources
    assert (tmp_path / "site/search/search_index.json").stat().st_size > 100_000
