"""`swsdist help`: every page can be found and shown, and what messages name is there; `swsdist --cite`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commands import Command
from ruamel.yaml import YAML

from swsdist.cli.helping import pages
from swsdist.core.codes import families
from tests.support.coded import says

ROOT = Path(__file__).resolve().parents[2]


def test_all_tasks_are_listed_and_shown(swsdist: Command) -> None:
    listed = re.findall(r"^  ([\w-]+)  ", swsdist("help").out, re.MULTILINE)
    assert sorted(listed) == sorted(pages())
    for name in pages():
        assert swsdist("help", name).out.startswith("# ")


def test_words(swsdist: Command) -> None:
    assert "  serve-an-archive  " in swsdist("help", "browser").out or swsdist("help", "browser").out.startswith("# ")
    assert swsdist("help", "search", "your", "archive").out == swsdist("help", "search-your-archive").out
    assert "  find-typed-words  " in swsdist("help", "type", "a", "word").out
    assert says(swsdist("help", "me", code=2).err, families.UNKNOWN_NAME)  # not what has it inside a word
    told = swsdist("help", "serch-your-archive", code=2).err
    assert says(told, families.UNKNOWN_NAME)
    assert "swsdist help search-your-archive" in told


def test_pages_that_messages_name_are_there() -> None:
    named = {
        name
        for file in (ROOT / "swsdist").rglob("*.py")
        for name in re.findall(r"swsdist help ([a-z]\w*(?:-[\w-]+)*)", file.read_text(encoding="utf-8"))
    }
    assert named - {"lists", "speaker"} <= set(pages())
    assert len(named) > 10


def test_begin(swsdist: Command) -> None:
    """The first commands stand first, each with one that can be typed."""
    shown = swsdist("-h").out
    first = re.findall(r"^  (\w+) .*\n +\$ swsdist (\w+) ", shown, re.MULTILINE)
    assert first == [(name, name) for name in ("index", "search", "serve", "discover")]
    assert shown.index("Begin:") < shown.index("Search:")


@pytest.mark.parametrize("part", ["title", "version", "year"])
def test_cite(swsdist: Command, part: str) -> None:
    cited = YAML(typ="safe").load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    bibtex, _, text = swsdist("--cite").out.partition("\n\n")
    value = str(cited["preferred-citation"][part])
    assert value in bibtex
    assert value in text
    assert bibtex.count("{") == bibtex.count("}")
