"""`swsdist status` prints stages in columns."""

from __future__ import annotations

import pytest

from swsdist.cli.run_folder import show
from swsdist.pipeline.status import StageStatus, Status


def test_stages_are_in_columns(capsys: pytest.CaptureFixture[str]) -> None:
    names = {"index": 3, "align.train": 12, "align.final": 0}
    stages = tuple(StageStatus(name, count, count, 0) for name, count in names.items())
    show(Status("incomplete", None, stages, (), None))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "incomplete"
    assert lines[1:] == [
        "  index             3 of 3 tasks",
        "  align.train      12 of 12 tasks",
        "  align.final  nothing to do",
    ]
