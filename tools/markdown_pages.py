"""The Markdown of this project as data: pages, code blocks, headings, links, tables; and how a reader's command is run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

_BLOCK = re.compile(r"^(?:<!--(?P<note>(?:(?!-->).)*)-->\n\n?)?```(?P<language>\w*)\n(?P<code>.*?)^```$", re.S | re.M)
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")


class Block(NamedTuple):
    """A fenced code block; `not_run` says why it is not run, if it is not."""

    line: int
    language: str
    code: str
    not_run: str | None


def pages() -> list[Path]:
    """All pages that are for readers."""
    top = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return [*top, *sorted(DOCS.rglob("*.md")), *sorted((ROOT / "recipes").rglob("*.md"))]


def blocks(page: Path) -> Iterator[Block]:
    """The code blocks of a page, in their order."""
    text = page.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        note = (match["note"] or "").strip()
        why = note.removeprefix("not run:").strip() if note.startswith("not run:") else None
        line = text.count("\n", 0, match.start("code"))
        yield Block(line, match["language"], match["code"], why)


def prose(page: Path) -> str:
    """A page without its code blocks."""
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> list[str]:
    """Targets of a page's links, as they are written."""
    return [match["target"] for match in _LINK.finditer(prose(page))]


def anchors(page: Path) -> set[str]:
    """Names of a page's headings, as GitHub makes them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", prose(page), re.M):
        plain = re.sub(r"[^\w\- ]", "", heading.lower())
        found.add(plain.replace(" ", "-"))
    return found


def sections(page: Path) -> dict[str, str]:
    """Text below each heading of second level, by heading."""
    parts = re.split(r"^## (.*)$", page.read_text(encoding="utf-8"), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def rows(text: str) -> list[list[str]]:
    """Cells of the tables in a text, without their headings."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    found = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if not re.fullmatch(r"[|\-: ]+", line) and not re.fullmatch(r"[|\-: ]+", following or " x"):
            found.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return found


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float) -> tuple[int, str]:
    """Exit code of a command and what it printed; past its time it is ended, with all that it started."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=seconds)
        return process.returncode, said
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
    try:
        said, _ = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
    return -1, f"{said}\nstill at work after {seconds:g} s"
