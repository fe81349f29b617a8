"""Links lead somewhere, pages can be found, and what the code says of the docs is there."""

from __future__ import annotations

import re
from pathlib import Path

from markdown_pages import DOCS, ROOT, anchors, links, pages


def _broken(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    place = (page.parent / path).resolve() if path else page
    inside = place.exists() and place.is_relative_to(ROOT)
    return not inside or bool(anchor and anchor not in anchors(place))


def test_links_resolve() -> None:
    within = [(page, target) for page in pages() for target in links(page) if not re.match(r"https?://", target)]
    assert [(str(page), target) for page, target in within if _broken(page, target)] == []


def test_every_page_is_in_the_index() -> None:
    listed = {(DOCS / target.partition("#")[0]).resolve() for target in links(DOCS / "index.md")}
    missing = {page for page in DOCS.rglob("*.md") if page.name != "index.md"} - listed
    assert not missing
    assert (DOCS / "index.md") in {(ROOT / target).resolve() for target in links(ROOT / "README.md")}


def test_pages_that_the_code_names_are_there() -> None:
    named = set()
    for file in [*(ROOT / "swsdist").rglob("*.py"), ROOT / "pyproject.toml", ROOT / "Makefile"]:
        named |= set(re.findall(r"docs/[\w/.-]+\.md", file.read_text(encoding="utf-8")))
    assert named
    for name in sorted(named):
        assert (ROOT / name).is_file(), name


def test_pictures_are_small() -> None:
    """Plots are SVG; a picture of a page is a PNG."""
    for picture in (DOCS / "images").iterdir():
        assert picture.stat().st_size < {".svg": 100_000, ".png": 150_000}[picture.suffix]
