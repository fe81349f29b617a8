"""Commands that another package adds by entry points do what built-in ones do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Command

from swsdist.core.codes import families
from tests.support.coded import says

ENTRIES = """
from swsdist.registry.registry import CommandEntry

GREET = CommandEntry("strange_command:greet", says="Greet somebody.")
"""

COMMAND = """
import click

from swsdist.core.errors import DataError

print("loaded")

@click.command()
@click.argument("name")
def greet(name):
    \"\"\"Greet NAME.\"\"\"
    if name == "nobody":
        raise DataError("there is nobody")
    print(f"hello {name}")
    return 4
"""

#: The executor of the examples.
POOL = (Path(__file__).parents[2] / "examples/pool.py").read_text(encoding="utf-8") + "\n\nPool.start_seconds = 0.25\n"

CHECK = """
from swsdist.testing.conformance import check_executor

if __name__ == "__main__":
    check_executor("pool", deaths=False)
"""


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment of processes that have the package."""
    for name, text in (("strange_entries", ENTRIES), ("strange_command", COMMAND)):
        (tmp_path / f"{name}.py").write_text(text)
    info = tmp_path / "strange-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strange\nVersion: 1.0\n")
    entries = "[swsdist.commands]\ngreet = strange_entries:GREET\ntorn = strange_entries:TORN\n"
    (info / "entry_points.txt").write_text(entries)
    return {"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}"}


@pytest.mark.slow
def test_an_executor(installed: dict[str, str], process: Command, place: Path, tmp_path: Path) -> None:
    sets = ("--run", tmp_path / "run", "--set", "executor.workers=2", "--set")
    (tmp_path / "check.py").write_text(CHECK)
    subprocess.run([sys.executable, tmp_path / "check.py"], env={**os.environ, **installed}, check=True)
    wrong = process("check", "config.yaml", *sets, "executor.kind=pol", cwd=place, code=2, **installed)
    assert "did you mean pool?" in wrong.err
    process("run", "config.yaml", *sets, "executor.kind=pool", cwd=place, **installed)
    assert process("digest", tmp_path / "run", **installed).out == process("digest", place / "run").out
    resources = json.loads((tmp_path / "run/report.json").read_text())["resources"]
    assert resources["executor_start_s"] == 0.25
    assert 0 < resources["executor_stop_s"] < 60
    assert resources["index_cpu_s"] > 0
    assert resources["search_cpu_s"] > 0
    events = [
        json.loads(line) for file in (tmp_path / "run/events").glob("*") for line in file.read_text().splitlines()
    ]
    driver = next(line["pid"] for line in events if line["event"] == "run-begun")
    workers = {line["pid"] for line in events if line["event"] == "worker-up"} - {driver}
    assert workers
    assert {line["pid"] for line in events if line["event"] == "task-ended"} <= {*workers, driver}


def test_a_command(installed: dict[str, str], process: Command) -> None:
    shown = process("--help", **installed).out
    assert "Commands of other packages:\n  greet  Greet somebody.\n  torn   the command torn cannot be loaded" in shown
    assert not shown.startswith("loaded")
    assert "greet [OPTIONS] NAME" in process("greet", "--help", **installed).out
    assert process("greet", "you", code=4, **installed).out == "loaded\nhello you\n"
    assert process("greet", "nobody", code=3, **installed).err == "error: there is nobody\n"
    assert "Missing argument 'NAME'" in process("greet", code=2, **installed).err
    assert says(process("torn", code=2, **installed).err, families.EXTENSION)
    assert "did you mean greet?" in process("gret", code=2, **installed).err
