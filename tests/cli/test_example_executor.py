"""The executor of the examples, added by an entry point: same digest, its times, its own workers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Command

ROOT = Path(__file__).parents[2]
POOL = (ROOT / "examples/pool.py").read_text(encoding="utf-8") + "\n\nPool.start_seconds = 0.25\n"
CHECK = """
from swsdist.testing.conformance import check_executor

if __name__ == "__main__":
    check_executor("pool", deaths=False)
"""


@pytest.mark.slow
def test_the_executor(process: Command, place: Path, tmp_path: Path) -> None:
    for name, text in (("pool.py", POOL), ("check.py", CHECK)):
        (tmp_path / name).write_text(text)
    info = tmp_path / "pool-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pool\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[swsdist.executors]\npool = pool:EXECUTOR\n")
    installed = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    subprocess.run([sys.executable, tmp_path / "check.py"], env={**os.environ, **installed}, check=True)
    sets = ("--run", tmp_path / "run", "--set", "executor.workers=2", "--set")
    wrong = process("check", "config.yaml", *sets, "executor.kind=pol", cwd=place, code=2, **installed)
    assert "did you mean pool?" in wrong.err
    process("run", "config.yaml", *sets, "executor.kind=pool", cwd=place, **installed)
    assert process("digest", tmp_path / "run", **installed).out == process("digest", place / "run").out
    resources = json.loads((tmp_path / "run/report.json").read_text())["resources"]
    assert resources["executor_start_s"] == 0.25
    assert 0 < resources["executor_stop_s"] < 60
    files = (tmp_path / "run/events").glob("*")
    events = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    driver = next(line["pid"] for line in events if line["event"] == "run-begun")
    workers = {line["pid"] for line in events if line["event"] == "worker-up"} - {driver}
    assert workers
    assert {line["pid"] for line in events if line["event"] == "task-ended"} <= {*workers, driver}
