"""One demo for all pages, made by the README's first command."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.markdown_pages import ROOT, run


@dataclass(frozen=True)
class Demo:
    """What `make demo` left.

    Attributes:
        folder: that it was told to make the demo in.
        code, said: how it ended, and what it printed.
    """

    folder: Path
    code: int
    said: str


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """`make demo`, once; to be read only."""
    folder = tmp_path_factory.mktemp("demo") / "demo"
    command = ["make", "demo", f"BIN={Path(sys.executable).parent}", f"DEMO={folder}"]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return Demo(folder, *run(command, ROOT, env, 300))
