"""`swsdist explain`: one code, all codes by area, and close names."""

from __future__ import annotations

from commands import Command

from swsdist.core.codes import Code, codes_by_area, families
from tests.support.coded import says


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
