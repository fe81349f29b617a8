"""The check on a GPU tells its cases, and what is missing, without a traceback."""

from __future__ import annotations

import pytest

from swsdist.core.errors import UserError
from tests.support import gpu


def test_help_names_the_cases(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        gpu.main(["--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    assert all(name in told for name in gpu.CASES)


def test_an_unknown_case(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        gpu.main(["plain", "one documnt"])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert "there is no case 'one documnt'; did you mean one document?" in told
    assert all(repr(name) in told for name in gpu.CASES)


def test_without_a_gpu(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(case: gpu.Case) -> gpu.Outcome:
        raise UserError("there is no GPU", remedy="search on the CPU")

    monkeypatch.setattr(gpu, "compare", missing)
    assert gpu.main([]) == 2
    assert capsys.readouterr().err == "there is no GPU\n  remedy: search on the CPU\n"
