"""What the pages show is run: every shell and Python block of a page, in order, in a folder with a finished demo in `demo/`.

A block fails the test if it ends with an error, so a page can state what it claims as a command (`test A = B`, `assert`).
The demo is made once; what else a page leaves in the folder is removed before the next. `pip install` goes to a folder of
the test's own.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_pages import ROOT, Block, blocks, pages, run

RUN = ("bash", "python")
_SECONDS = 300

PAGES = [page for page in pages() if any(block.language in RUN and not block.not_run for block in blocks(page))]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that a reader works in, after `swsdist demo demo`."""
    folder = tmp_path_factory.mktemp("docs") / "reader"
    folder.mkdir()
    command = [sys.executable, "-m", "swsdist.cli.main", "demo", "demo", "--executor", "serial"]
    code, said = run(command, folder, os.environ, _SECONDS)
    assert code == 0, said
    return folder


@pytest.fixture
def folder(reader: Path) -> Iterator[Path]:
    """The same, for one page."""
    yield reader
    for left in reader.iterdir():
        if left.name != "demo":
            shutil.rmtree(left) if left.is_dir() else left.unlink()


@pytest.fixture
def environment(tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    """Of the blocks: our interpreter first on PATH, installs into a folder of the test's own, S3 where it is needed."""
    site, programs = tmp_path / "site", tmp_path / "bin"
    programs.mkdir()
    # Not by PIP_TARGET: the pip that fetches what builds a package would heed it too, and older ones then give up.
    pip = programs / "pip"
    pip.write_text(f'#!/bin/sh\nshift\nexec "{sys.executable}" -m pip install --target "{site}" --no-deps "$@"\n')
    pip.chmod(0o755)
    path = (str(programs), str(Path(sys.executable).parent), os.environ["PATH"])
    found = {
        **os.environ,
        "PATH": os.pathsep.join(path),
        "PYTHONPATH": str(site),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "COLUMNS": "120",
    }
    if all(importlib.util.find_spec(name) for name in ("setuptools", "wheel")):
        found["PIP_NO_BUILD_ISOLATION"] = "0"  # to pip that is "build isolation: off", so no network is needed
    found.pop("RAY_ADDRESS", None)
    page: Path = request.getfixturevalue("page")
    if page.name == "use-s3.md":
        server = request.getfixturevalue("s3")
        server.new_bucket("speech")
        found |= {
            "AWS_ENDPOINT_URL": server.endpoint,
            "AWS_ACCESS_KEY_ID": server.storage["key"],
            "AWS_SECRET_ACCESS_KEY": server.storage["secret"],
        }
    return found


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run(page: Path, folder: Path, environment: dict[str, str]) -> None:
    for block in blocks(page):
        if block.language in RUN and not block.not_run:
            run_block(block, page, folder, environment)


def run_block(block: Block, page: Path, folder: Path, environment: dict[str, str]) -> None:
    """Run one block; fail with what it printed."""
    if block.language == "bash":
        command = ["bash", "-euo", "pipefail", "-c", block.code]
    else:
        command = [sys.executable, "-c", block.code]
    code, said = run(command, folder, environment, _SECONDS)
    assert code == 0, f"{page.relative_to(ROOT)}:{block.line} ended with {code}\n{block.code}\n{said}"


def test_what_is_not_run_says_why() -> None:
    for page in pages():
        for block in blocks(page):
            assert block.not_run != "", f"{page.relative_to(ROOT)}:{block.line}: not run, but why?"
            assert block.language, f"{page.relative_to(ROOT)}:{block.line}: a block without a language"
