"""The folder of temporary files: for its owner alone, and gone with its process, however that ends."""

from __future__ import annotations

import os
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
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", _CODE],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env={**os.environ, "TMPDIR": str(place)},
                )
            )
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


def test_nobody_else_may_look(place: Path) -> None:
    mine = scratch()
    assert {mine.stat().st_mode & 0o777, mine.parent.stat().st_mode & 0o777} == {0o700}
    mine.parent.chmod(0o777)
    sweep()
    assert mine.parent.stat().st_mode & 0o777 == 0o700
    with Folder("s3://bucket/x").temporary(".wav") as file:
        assert file.parent == mine


def test_what_lies_in_its_place(place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A link to elsewhere is not followed."""
    (place / f"swsdist-{os.getuid()}").symlink_to(tmp_path_factory.mktemp("elsewhere"))
    with raises(storage_codes.UNSAFE_TEMPORARY_FOLDER) as caught:
        scratch()
    assert "TMPDIR" in (caught.value.remedy or "")


def test_a_cleaner_was_there(place: Path) -> None:
    mine = scratch()
    for file in mine.iterdir():
        file.unlink()
    mine.rmdir()
    assert scratch().is_dir()
