"""What only a real process shows: how it begins and ends, where its output goes; commands of others, terminals, shells.

Ends by a signal (exit codes 130 and 143) are in tests/integration/test_resume.py, what is imported at the start in
tests/arch/test_light_start.py.
"""

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Command

import swsdist as package
from swsdist.core.codes import families
from swsdist.registry.registries import COMMANDS
from tests.support.coded import says

PYTHON = sys.executable


def test_help_and_version(process: Command) -> None:
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


CONFIG = "run: run\ncorpus: {documents: audio, queries: queries}\nexecutor: {kind: serial}\n"


@pytest.fixture
def umlauts(corpus: Path, tmp_path: Path) -> Path:
    """A folder with a recording and a query whose names are not ASCII."""
    for kind, source, name in (
        ("audio", "audio/d001.flac", "Bücher – eins.flac"),
        ("queries", "queries/q001_1.wav", "Wört.wav"),
    ):
        (tmp_path / kind).mkdir()
        shutil.copy(corpus / "corpus" / source, tmp_path / kind / name)
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path


@pytest.mark.slow
def test_a_terminal_of_ascii(process, umlauts: Path) -> None:
    """Characters that it lacks are written plainly or by number; tables for programs are UTF-8 all the same."""

    def said(*words: str) -> str:
        return str(process(*words, cwd=umlauts, PYTHONIOENCODING="ascii").out)

    assert "detections" in said("run", "config.yaml", "--set", "report.clips=1")
    ask = ("search", "run", "--query", "queries/Wört.wav", "--top", "1")
    assert "queries/W\\xf6rt.wav: 1 hits shown" in said(*ask)
    assert "B\\xfccher - eins" in said(*ask)
    assert "B\\xfccher - eins\t1\t" in said("store", "info", "run/store", "--documents")
    (by_csv,), (by_json,) = csv.DictReader(io.StringIO(said(*ask, "--csv"))), json.loads(said(*ask, "--json"))
    for row in (by_csv, by_json):
        assert (row["query_id"], row["doc_id"]) == ("queries/Wört.wav", "Bücher – eins")


def test_a_name_that_is_no_text_is_shown_byte_for_byte(place: Path) -> None:
    """As other programs show it, so that it can be found again."""
    argv = [PYTHON, "-m", "swsdist.cli.main", "search", "run", "--query", b"gone\xe9.wav"]
    ended = subprocess.run(argv, cwd=place, capture_output=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"error: gone\xe9.wav: the name of the query is not UTF-8 [invalid-value]\n  remedy")


def test_a_shell_completes() -> None:
    """As docs/reference/commands.md says."""
    script = "import sys; sys.argv[0] = 'swsdist'; from swsdist.cli.main import main; main()"
    for words, offered in {
        "swsdist sea": "plain,search",
        "swsdist store rej": "plain,rejected",
        "swsdist search --ht": "plain,--html",
    }.items():
        told = {"_SWSDIST_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
        command = [PYTHON, "-c", script]
        ended = subprocess.run(command, env={**os.environ, **told}, capture_output=True, text=True, check=True)
        assert ended.stdout.split() == [offered]


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
