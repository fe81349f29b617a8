"""What the pages show is run: every shell and Python block of a page, in order, in a folder with a finished demo in `demo/`.

A block fails the test if it ends with an error, so a page can state what it claims as a command (`test A = B`, `assert`).
The demo is the one of `make demo`; what else a page leaves in the folder is removed before the next. `pip install` goes to a
folder of the test's own. Commands are forks of one warm process (warm.py), but for the pages in `_INSTALLED`: the README, as a
reader has it, those that kill what they started, and one that installs a command.
"""

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from warm import warm

import swsdist
from tools.markdown_pages import ROOT, Block, blocks, pages, run

pytestmark = pytest.mark.xdist_group("docs")

RUN = ("bash", "python")
_SECONDS = 300
_INSTALLED = ("README.md", "add-an-executor-or-a-command.md", "resume-after-a-crash.md", "run-on-a-cluster.md")

#: Libraries of an extra that tests are run without, too.
_NEEDS = {"use-self-supervised-models.md": ("torch", "transformers"), "superb/README.md": ("torch", "transformers")}

PAGES = [page for page in pages() if any(block.language in RUN and not block.not_run for block in blocks(page))]


class Reader(NamedTuple):
    """Where a reader works, and the folder of programs that are forks of the warm process."""

    folder: Path
    programs: Path


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory, demo: Any) -> Iterator[Reader]:
    """After `swsdist demo demo`, which the warm process has done itself, serially, with the corpus that is there."""
    place = tmp_path_factory.mktemp("docs")
    found = Reader(place / "reader", place / "bin")
    shutil.copytree(demo.folder / "corpus", found.folder / "demo" / "corpus")
    found.programs.mkdir()
    with warm(found.programs, found.folder, "demo", "demo", "--executor", "serial"):
        assert swsdist.digest(f"{found.folder}/demo/run") == swsdist.digest(str(demo.folder / "run"))
        yield found


@pytest.fixture
def folder(reader: Reader) -> Iterator[Path]:
    """The same, for one page."""
    yield reader.folder
    for left in reader.folder.iterdir():
        if left.name != "demo":
            shutil.rmtree(left) if left.is_dir() else left.unlink()


@pytest.fixture
def environment(tmp_path: Path, page: Path, reader: Reader, request: pytest.FixtureRequest) -> dict[str, str]:
    """Of the blocks: our interpreter first on PATH, installs into a folder of the test's own, S3 where it is needed."""
    site, programs = tmp_path / "site", tmp_path / "bin"
    programs.mkdir()
    # Not by PIP_TARGET: the pip that fetches what builds a package would heed it too, and older ones then give up.
    pip = programs / "pip"
    pip.write_text(f'#!/bin/sh\nshift\nexec "{sys.executable}" -m pip install --target "{site}" --no-deps "$@"\n')
    pip.chmod(0o755)
    path = [str(programs), str(reader.programs), str(Path(sys.executable).parent), os.environ["PATH"]]
    if page.relative_to(ROOT).as_posix().removeprefix("docs/how-to/") in _INSTALLED:
        path.remove(str(reader.programs))
    found = {
        **os.environ,
        "PATH": os.pathsep.join(path),
        "PYTHONPATH": os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "COLUMNS": "120",
    }
    if all(importlib.util.find_spec(name) for name in ("setuptools", "wheel")):
        found["PIP_NO_BUILD_ISOLATION"] = "0"  # to pip that is "build isolation: off", so no network is needed
    found.pop("RAY_ADDRESS", None)
    if page.name == "use-s3.md":
        server = request.getfixturevalue("s3")
        server.new_bucket("speech")
        found |= {
            "AWS_ENDPOINT_URL": server.endpoint,
            "AWS_ACCESS_KEY_ID": server.storage["key"],
            "AWS_SECRET_ACCESS_KEY": server.storage["secret"],
        }
    return found


@pytest.mark.docs
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run(page: Path, folder: Path, environment: dict[str, str]) -> None:
    for library in (*_NEEDS.get(page.name, ()), *_NEEDS.get(f"{page.parent.name}/{page.name}", ())):
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"needs {library}: pip install 'swsdist[ssl]'")
    for block in blocks(page):
        if block.language in RUN and not block.not_run:
            run_block(block, page, folder, environment)


def run_block(block: Block, page: Path, folder: Path, environment: dict[str, str]) -> None:
    """Run one block; fail with what it printed."""
    if block.language == "bash":
        command = ["bash", "-euo", "pipefail", "-c", block.code]
    else:
        command = [shutil.which("python", path=environment["PATH"]) or sys.executable, "-c", block.code]
    code, said = run(command, folder, environment, _SECONDS)
    assert code == 0, f"{page.relative_to(ROOT)}:{block.line} ended with {code}\n{block.code}\n{said}"


def test_what_is_not_run_says_why() -> None:
    for page in pages():
        for block in blocks(page):
            assert block.not_run != "", f"{page.relative_to(ROOT)}:{block.line}: not run, but why?"
            assert block.language, f"{page.relative_to(ROOT)}:{block.line}: a block without a language"
