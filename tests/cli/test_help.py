"""`swsdist help`, `swsdist explain` and `swsdist --cite`: every page and code can be found and shown."""

import re
from pathlib import Path

from commands import Command
from ruamel.yaml import YAML

from swsdist.cli.helping import pages
from swsdist.core.codes import Code, codes_by_area, families
from tests.support.coded import says

ROOT = Path(__file__).resolve().parents[2]


def test_all_tasks_are_listed_and_shown(swsdist: Command) -> None:
    listed = re.findall(r"^  ([\w-]+)  ", swsdist("help").out, re.MULTILINE)
    assert sorted(listed) == sorted(pages())
    for name in pages():
        assert swsdist("help", name).out.startswith("# ")


def test_words(swsdist: Command) -> None:
    assert swsdist("help", "search", "your", "archive").out == swsdist("help", "search-your-archive").out
    assert "  use-phoneme-recognisers  " in swsdist("help", "recogniser").out
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


def test_a_code(swsdist: Command) -> None:
    code = families.CONFLICTING_OPTIONS
    for name in ("conflicting-options", "[conflicting-options]", "CONFLICTING_OPTIONS"):
        assert swsdist("explain", name).out.splitlines() == [
            f"{code.name}: {code.message}",
            "kind:      error (UserError)",
            "exit code: 2; 3 where data that were read are at fault",
            f"remedy:    {code.remedy}",
        ]
    assert swsdist("explain", "gpu-memory").out.splitlines()[2] == "exit code: 2"


def test_kinds_that_do_not_end_a_command(swsdist: Command) -> None:
    for kind, word in (("notice", "with --strict 4"), ("rejection", "alone 3")):
        code: Code = next(each for codes in codes_by_area().values() for each in codes if each.kind == kind)
        out = swsdist("explain", code.name).out
        assert f"kind:      {kind} ({code.error.__name__})\nexit code: none" in out
        assert word in out


def test_all_codes_by_area(swsdist: Command) -> None:
    lines = swsdist("explain").out.splitlines()
    for area, members in codes_by_area().items():
        first = lines.index(area) + 1
        assert [line.split()[0] for line in lines[first : first + len(members)]] == [code.name for code in members]


def test_close_names(swsdist: Command) -> None:
    err = swsdist("explain", "conflicting-optoins", code=2).err
    assert says(err, families.UNKNOWN_NAME)
    assert "conflicting-options" in err
