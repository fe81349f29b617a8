"""The README's two commands, the Makefile, and what continuous integration does with them."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tools.markdown_pages import ROOT, blocks

BIN = str(Path(sys.executable).parent)


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Of its own, not below the `make test` that this may run in, which exports the variables it was given."""
    told = ("MAKE", "MFLAGS", "BIN", "VENV", "DEMO", "PYTEST", "WORKERS")
    env = {name: value for name, value in os.environ.items() if not name.startswith(told)}
    command = ["make", *arguments]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300, check=False)


def test_the_readme_begins_with_two_commands() -> None:
    first = next(block for block in blocks(ROOT / "README.md") if block.language == "bash")
    assert [line.split("#")[0].strip() for line in first.code.splitlines()] == ["make demo", "make test"]


@pytest.mark.docs
@pytest.mark.xdist_group("docs")
def test_make_demo(demo: Any) -> None:
    assert demo.code == 0, demo.said
    assert "MTWV" in demo.said
    assert f"{demo.folder / 'run/report.html'}" in "".join(demo.said.split())
    assert (demo.folder / "run/report.html").is_file()
    assert json.loads((demo.folder / "run/report.json").read_text())["measures"]["mtwv"] > 0.3


def test_targets_use_the_environment_that_is_named() -> None:
    targets = ("demo", "test", "test-all", "lint", "bench", "docs", "site")
    for target in targets:
        assert ".ci/environment" in make("-n", target).stdout
    own = make("-n", *targets, f"BIN={BIN}")
    assert (own.returncode, ".ci/environment" in own.stdout) == (0, False)
    assert own.stdout.count(f"{BIN}/") >= len(targets)


def test_tests_run_in_two_processes_with_groups() -> None:
    for count, more in ((2, []), (0, ["WORKERS=0"])):
        said = make("-n", "test", "test-all", "docs", f"BIN={BIN}", *more).stdout
        assert said.count(f"-n {count} --dist loadgroup") == said.count("-m pytest") >= 3


def test_what_one_target_leaves_out_the_other_takes() -> None:
    """All marks but those of several hosts and the soak."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["markers"]
    marks = {line.partition(":")[0] for line in declared}
    said = [make("-n", target, f"BIN={BIN}").stdout for target in ("test", "test-all")]
    expressions = [one.split('-m "')[1].partition('"')[0] for one in said]
    for chosen in (set(), *({one} for one in marks), {"slow", "cluster"}):
        taken = [eval(one, {}, {name: name in chosen for name in marks}) for one in expressions]
        assert taken.count(True) == (0 if chosen & {"cluster", "soak"} else 1), chosen
    assert " -n 0 -m cluster " in make("-n", "test-cluster", f"BIN={BIN}").stdout


def test_a_finished_environment_is_left_alone(tmp_path: Path) -> None:
    """The stamp is the hash of both pyproject.toml and the place of the checkout."""
    checkout = tmp_path / "checkout"
    (checkout / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci/environment", checkout / ".ci")
    (checkout / "recipes").mkdir()
    for place in (checkout, checkout / "recipes"):
        (place / "pyproject.toml").write_text("one")
    venv = checkout / ".venv"
    (venv / "bin").mkdir(parents=True)
    said = venv / "said"
    # Stands for the environment's Python: notes what it is asked to do.
    (venv / "bin/python").write_text(f'#!/bin/sh\necho "$@" >> {said}\n')
    (venv / "bin/python").chmod(0o755)

    def environment(*arguments: str) -> str:
        said.write_text("")
        command = [str(checkout / ".ci/environment"), *arguments]
        subprocess.run(command, env={**os.environ, "PYTHON": sys.executable}, check=True, capture_output=True)
        return said.read_text()

    assert "pip install" in environment()
    assert environment() == ""
    assert ".[dev]" in environment("dev")
    assert environment("dev") == environment() == ""
    for place in (checkout, checkout / "recipes"):
        (place / "pyproject.toml").write_text("two")
        assert "-e ./recipes" in environment()


@pytest.mark.parametrize(
    ("tests", "shared", "namespaces", "code"),
    [
        ("SKIPPED [1] tests/a.py:1: needs ../shared beside the checkout\n11 passed, 1 skipped", True, True, 1),
        ("SKIPPED [1] tests/a.py:1: needs ../shared beside the checkout\n11 passed, 1 skipped", False, False, 0),
        ("SKIPPED [1] tests/a.py:1: no chromium on PATH\n11 passed, 1 skipped", True, True, 0),
        ("FAILED tests/a.py::test\n1 failed", True, True, 2),
        ("FAILED tests/a.py::late\n= 1 failed in 9.1s =", True, True, 0),
        ("FAILED tests/a.py::late\n" * 6 + "= 6 failed in 9.1s =", True, True, 2),
        ("FAILED tests/a.py::late\nmake: terminated", True, True, 2),
    ],
)
def test_continuous_integration(tests: str, shared: bool, namespaces: bool, code: int, tmp_path: Path) -> None:
    """`.ci/run` passes on what the tests say, and does not let tests that need ../shared be skipped in silence.

    Those of several hosts come last, where there can be some. Few that fail, here those that are late, are run once more.
    """
    checkout = tmp_path / "checkout"
    (checkout / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci/run", checkout / ".ci")
    if shared:
        (tmp_path / "shared").mkdir()
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "make").write_text(
        f'#!/bin/sh\necho "$@"\n{"[ $3 ] && exit" if "::late" in tests else ""}\n'
        f"cat <<'END'\n{tests}\nEND\nexit {2 if 'FAILED' in tests else 0}\n"
    )
    codes = dict.fromkeys(("chromium", "flite", "gcc", "espeak-ng"), 0)  # so nothing is to be installed
    for tool, code_of_tool in {**codes, "python": 1, "ip": 0 if namespaces else 1}.items():
        (tools / tool).write_text(f"#!/bin/sh\nexit {code_of_tool}\n")
    for program in tools.iterdir():
        program.chmod(0o755)
    environment = {**os.environ, "BIN": str(tools), "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    run = [str(checkout / ".ci/run")]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, done.stderr
    assert tests.splitlines()[-1] in done.stdout
    assert done.stdout.startswith("test PYTEST=--durations=20\n")
    assert ("\ntest-all PYTEST=--durations=20\n" in done.stdout) == (code != 2)
    assert ("\ntest-cluster PYTEST=--durations=20\n" in done.stdout) == (namespaces and code == 0)
    again = "passed only when they were run again, alone:\ntests/a.py::late\n" in done.stderr
    assert again == (code == 0 and "FAILED" in tests)
    assert ("going on without several hosts" in done.stderr) == (not namespaces)
