"""`swsdist explain`: one code, all codes by area, and close names."""

from __future__ import annotations

import pytest
from commands import Command

from swsdist.core.codes import Code, codes_by_area
from swsdist.core.codes import cli as codes
from swsdist.core.codes import config as config_codes
from tests.support.coded import says


@pytest.mark.parametrize("name", ["option-twice", "[option-twice]", "OPTION_TWICE"])
def test_a_code(swsdist: Command, name: str) -> None:
    code = config_codes.OPTION_TWICE
    assert swsdist("explain", name).out.splitlines() == [
        "option-twice: <options> is given as a key and among the options",
        "kind:      error (ConfigError)",
        f"exit code: {code.error.exit_code}",
        "remedy:    remove one of the two",
    ]


@pytest.mark.parametrize(("kind", "word"), [("notice", "with --strict 4"), ("rejection", "alone 3")])
def test_kinds_that_do_not_end_a_command(swsdist: Command, kind: str, word: str) -> None:
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
    err = swsdist("explain", "option-twcie", code=2).err
    assert says(err, codes.NO_SUCH_CODE)
    assert "option-twice" in err
