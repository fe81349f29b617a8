"""`swsdist help`: every page can be found and shown, and what messages name is there; `swsdist --cite`."""

from __future__ import annotations

import re
from pathlib import Path

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
    assert swsdist("help", "search", "your", "archive").out == swsdist("help", "search-your-archive").out
    assert "  find-typed-words  " in swsdist("help", "type", "a", "word").out
    assert says(swsdist("help", "me", code=2).err, families.UNKNOWN_NAME)  # not what has it inside a word
    told = swsdist("help", "serch-your-archive", code=2).err
    assert says(told, families.UNKNOWN_NAME)
    assert "swsdist help search-your-archive" in told


def test_cite(swsdist: Command) -> None:
    cited = YAML(typ="safe").load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["preferred-citation"]
    bibtex, _, text = swsdist("--cite").out.partition("\n\n")
    for part in ("title", "version", "year"):
        assert str(cited[part]) in bibtex
        assert str(cited[part]) in text
    assert bibtex.count("{") == bibtex.count("}")


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
