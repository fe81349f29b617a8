"""Commands that another package adds by entry points do what built-in ones do."""

from __future__ import annotations

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
