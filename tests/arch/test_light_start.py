"""What is heavy is loaded by the command that needs it, and by no other."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = (
    "ray",
    "librosa",
    "numba",
    "pandas",
    "pyarrow",
    "scipy",
    "numpy",
    "s3fs",
    "pydantic",
    "rich",
    "jinja2",
    "soundfile",
    "torch",
    "transformers",
)

_TELL = "import json, sys; print('\\n' + json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"


def loaded(code: str) -> set[str]:
    """Top-level modules that a fresh interpreter has loaded after some code."""
    done = subprocess.run([sys.executable, "-c", f"{code}\n{_TELL}"], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def command(*arguments: str) -> set[str]:
    """The same after a command of the command line, whatever its exit code."""
    call = "from swsdist.cli.main import _run\n_run()"
    return loaded(f"import sys; sys.argv = {['swsdist', *arguments]!r}\n{call}")


def test_import_is_free() -> None:
    assert loaded("import swsdist").isdisjoint({*HEAVY, "click"})


def test_the_words_are_free() -> None:
    assert loaded("import swsdist.core.errors, swsdist.core.fingerprint").isdisjoint(HEAVY)


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("nonsense",)], ids=" ".join)
def test_the_front_door_is_light(arguments: tuple[str, ...]) -> None:
    assert command(*arguments).isdisjoint(HEAVY)


@pytest.mark.parametrize(
    "name",
    [
        "init",
        "run",
        "index",
        "search",
        "reduce",
        "score",
        "report",
        "sweep",
        "export",
        "status",
        "cancel",
        "clean",
        "digest",
        "store",
        "store check",
        "corpus describe",
        "paper table",
        "doctor",
        "demo",
    ],
)
def test_help_of_a_command_is_light(name: str) -> None:
    assert command(*name.split(), "--help").isdisjoint(HEAVY)


def test_the_api_is_light() -> None:
    assert loaded("import swsdist.api").isdisjoint(HEAVY)


def test_config_needs_no_numbers() -> None:
    assert loaded("import swsdist.config").isdisjoint({*HEAVY} - {"pydantic"})


def test_reading_a_store_needs_no_search() -> None:
    assert loaded("import swsdist.store.reading").isdisjoint({"ray", "librosa", "numba", "s3fs", "scipy"})


def test_planning_and_running_serially_need_no_ray() -> None:
    assert loaded(
        "import swsdist.pipeline.driver, swsdist.pipeline.execution.executor, swsdist.pipeline.execution.executor"
    ).isdisjoint({"ray", "s3fs", "rich"})
