"""An executor and commands that another package adds by entry points: they do what built-in ones do."""

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
from swsdist.registry.entries import ExecutorEntry

POOL = ExecutorEntry("strange_pool:Pool")
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

POOL = """
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing.util import Finalize

from swsdist.accounts.journal import Journal
from swsdist.pipeline.execution.executor import Serial


def start(context, settings):
    global journal, serial
    journal = Journal(context.run, "worker")
    serial = Serial(context, journal, settings)
    Finalize(None, journal.close, exitpriority=1)


def work(task, needs):
    ((_, outcome),) = serial.run([task], needs, lambda *_: None)
    return outcome, {"host": journal.host, "pid": os.getpid(), "journal": journal.name}


class Pool:
    start_seconds, stop_seconds = 0.25, 0.5

    def __init__(self, context, journal, settings, note):
        context_of_processes = multiprocessing.get_context("spawn")
        self.journal = journal
        self.processes = ProcessPoolExecutor(settings.workers, context_of_processes, start, (context, settings))

    def run(self, tasks, needs, on_part):
        calls = {self.processes.submit(work, task, needs): task for task in tasks}
        for call in as_completed(calls):
            outcome, process = call.result()
            if process["pid"] not in self.journal.others:
                self.journal.others.add(process["pid"])
                self.journal.write("up", **process)
            yield calls[call], outcome

    def close(self):
        self.processes.shutdown()
"""


CHECK = """
from swsdist.testing.conformance import check_executor

if __name__ == "__main__":
    check_executor("pool", deaths=False)
"""


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment of processes that have the package."""
    for name, text in (("strange_entries", ENTRIES), ("strange_command", COMMAND), ("strange_pool", POOL)):
        (tmp_path / f"{name}.py").write_text(text)
    info = tmp_path / "strange-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strange\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[swsdist.executors]\npool = strange_entries:POOL\n"
        "[swsdist.commands]\ngreet = strange_entries:GREET\ntorn = strange_entries:TORN\n"
    )
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
    assert (resources["executor_start_s"], resources["executor_stop_s"]) == (0.25, 0.5)
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
