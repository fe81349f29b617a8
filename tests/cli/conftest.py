"""Commands as a user types them: each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

CONFIG = """\
run: run
system: mine
corpus:
  documents: corpus/docs.csv
  queries: corpus/queries.csv
  references: corpus/refs.csv
  examples: all
executor:
  kind: serial
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


Command = Callable[..., Ended]


@pytest.fixture(scope="session")
def swsdist() -> Command:
    """Run a command; `code` is the exit code that is expected."""

    def run(*arguments: str | Path, cwd: Path | None = None, code: int = 0, **environment: str) -> Ended:
        done = subprocess.run(
            [sys.executable, "-m", "swsdist.cli.main", *map(str, arguments)],
            cwd=cwd,
            env={**os.environ, "COLUMNS": "200", **environment},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert ("Traceback" in done.stderr) == (code == 1)
        return Ended(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a synthetic corpus and a config; to be read only."""
    from swsdist.testing.synthesis import make_corpus

    root = tmp_path_factory.mktemp("cli")
    make_corpus(root / "corpus", documents=8, queries=3, voices=3)
    (root / "config.yaml").write_text(CONFIG)
    return root


@pytest.fixture(scope="session")
def first_run(corpus: Path, swsdist: Command) -> Ended:
    """What `swsdist run config.yaml` said."""
    return swsdist("run", "config.yaml", cwd=corpus)


@pytest.fixture(scope="session")
def place(corpus: Path, first_run: Ended) -> Path:
    """The folder after the run: config.yaml, corpus/, run/."""
    return corpus
