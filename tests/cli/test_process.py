"""What only a real process shows: how it begins and ends, and where its output goes.

Ends by a signal (exit codes 130 and 143) are in tests/integration/test_resume.py, what is imported at the start in
tests/arch/test_light_start.py.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from commands import Command

import swsdist as package

PYTHON = sys.executable


def test_help_and_version(process: Command) -> None:
    from swsdist.registry.registries import COMMANDS

    shown = process("--help").out
    assert process("-h").out == shown
    for name, entry in COMMANDS.available.items():
        assert f"  {name} " in shown
        assert entry.says.split(".")[0][:30] in shown
    assert package.__version__ in process("--version").out


def test_the_installed_program() -> None:
    program = Path(PYTHON).with_name("swsdist")
    if not program.exists():
        pytest.skip("swsdist is not installed beside this Python")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert package.__version__ in done.stdout


def test_exit_codes(process: Command, swsdist: Command, place: Path) -> None:
    """And what is said is what it says in this process, but for the name of the program."""
    for typed, code in {"digest run": 0, "run gone.yaml": 2, "digest corpus": 3}.items():
        alone, here = (run(*typed.split(), cwd=place, code=code) for run in (process, swsdist))
        assert alone.out == here.out
        assert alone.err.splitlines()[-1:] == here.err.splitlines()[-1:]


def test_a_bug_is_exit_code_1() -> None:
    code = (
        "from swsdist.cli import main\n"
        "def broken(**keywords):\n"
        "    return 1 // 0\n"
        "main.cli.main = broken\n"
        "main.main()\n"
    )
    done = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert "This is a bug of swsdist: please report it" in done.stderr


def test_a_reader_that_has_enough(place: Path) -> None:
    """`swsdist store cat ... | head -1`: no complaint."""
    command = f"'{PYTHON}' -m swsdist.cli.main store cat run/store d001 | head -1"
    done = subprocess.run(["bash", "-c", command], cwd=place, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.startswith("0.0\t")
