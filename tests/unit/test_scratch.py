"""The folder of temporary files: for its owner alone, and gone with its process, however that ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from swsdist.core.codes import storage as storage_codes
from swsdist.io.filesystem import Folder
from swsdist.io.remote.scratch import scratch, sweep
from tests.support.coded import raises

_CODE = (
    "from swsdist.io.filesystem import Folder\n"
    "with Folder('s3://b/x').temporary() as path:\n"
    "    path.write_bytes(b'half')\n"
    "    print(path, flush=True)\n"
    "    input()\n"
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's temporary folder of this test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def writer(place: Path) -> Iterator[Callable[[], tuple[subprocess.Popen[str], Path]]]:
    """Starts a process that has a temporary file, and waits for a line."""
    with ExitStack() as stack:

        def start() -> tuple[subprocess.Popen[str], Path]:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": {**os.environ, "TMPDIR": str(place)}}
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", _CODE], text=True, **pipes))
            stack.callback(process.kill)
            assert process.stdout is not None
            return process, Path(process.stdout.readline().strip())

        yield start


def test_killed_and_living_processes(writer: Callable[[], tuple[subprocess.Popen[str], Path]], place: Path) -> None:
    killed, left = writer()
    living, used = writer()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert left.read_bytes() == used.read_bytes() == b"half"
    mine = scratch()
    assert mine.is_dir()
    assert not left.parent.exists()
    assert used.exists()
    assert sweep() == 0
    living.communicate("\n")
    assert sorted(place.glob("swsdist-*/*")) == [mine], "a process that ends removes its own"


def test_nobody_else_may_look(place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a cleaner removed is made anew; a link to elsewhere is not followed."""
    mine = scratch()
    assert {mine.stat().st_mode & 0o777, mine.parent.stat().st_mode & 0o777} == {0o700}
    mine.parent.chmod(0o777)
    sweep()
    assert mine.parent.stat().st_mode & 0o777 == 0o700
    with Folder("s3://bucket/x").temporary(".wav") as file:
        assert file.parent == mine
    shutil.rmtree(mine)
    assert scratch().is_dir()
    shutil.rmtree(mine.parent)
    mine.parent.symlink_to(tmp_path_factory.mktemp("elsewhere"))
    with raises(storage_codes.UNSAFE_TEMPORARY_FOLDER):
        scratch()
