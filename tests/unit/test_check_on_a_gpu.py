"""The check on a GPU tells its cases, and what is missing, without a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from swsdist.core.errors import UserError
from swsdist.testing.synthesis.encoder import make_encoder
from tests.support import gpu


def test_without_a_gpu(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(case: gpu.Case) -> gpu.Outcome:
        raise UserError("there is no GPU", remedy="search on the CPU")

    monkeypatch.setattr(gpu, "compare", missing)
    monkeypatch.setattr(gpu, "TIMES", {"times": lambda: iter(["of the CPU"])})
    assert gpu.main([]) == 2
    told = capsys.readouterr()
    assert told.err == "there is no GPU\n  remedy: search on the CPU\n"
    assert told.out == "times: of the CPU\n"


@pytest.mark.slow
def test_times_are_those_of_the_cpu_where_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="the extra `ssl` is not installed: pip install 'swsdist[ssl]'")
    make_encoder(str(tmp_path), "whisper", layers=4)
    monkeypatch.setattr(gpu, "MODEL", tmp_path)
    monkeypatch.setattr(gpu, "TIMED", gpu.Case((3,), (9,)))
    for times, lines in ((gpu.time_encoder, 3), (gpu.time_search, 2)):
        here, *there = times()
        assert len(there) == lines - 1
        assert here.startswith("cpu")
        assert "not timed" not in here
        assert all(line.startswith("cuda") for line in there)
