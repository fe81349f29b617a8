"""Commands as a user types them: `swsdist` runs them in this process, `process` in one of their own."""

from pathlib import Path

import pytest
from commands import Command, Ended, expecting, in_its_own_process, in_this_process

CONFIG = """\
run: run
system: mine
corpus:
  documents: corpus/docs.csv
  queries: corpus/queries.csv
  references: corpus/refs.csv
  examples: all
executor: {kind: serial}
report: {clips: 1}
"""


@pytest.fixture(scope="session")
def swsdist() -> Command:
    """Run a command; `code` is the exit code that is expected."""
    return expecting(in_this_process)


@pytest.fixture(scope="session")
def process() -> Command:
    """The same in a process of its own, where that is the point."""
    return expecting(in_its_own_process)


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
    return swsdist("run", "config.yaml", cwd=corpus)


@pytest.fixture(scope="session")
def place(corpus: Path, first_run: Ended) -> Path:
    """The folder after the run: config.yaml, corpus/, run/."""
    return corpus
