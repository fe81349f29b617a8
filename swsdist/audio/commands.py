"""Recordings that a command writes to its standard output: what a line of Kaldi's `wav.scp` names that ends in `|`.

A command does whatever it likes with the rights of who runs swsdist, so none is run unless that person allows it, for one call
(`permitted`): a config cannot. It is run by `/bin/sh -c`, as Kaldi's `popen` does. What it writes goes to a temporary file, so
that it is read like any other recording, its end included; the file of the last command is kept, since the samples, the digest
and the header of a recording, and the segments of one, are asked for one after the other.

Source: Kaldi, "Kaldi I/O from a command-line perspective", extended filenames.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from swsdist.errors import AudioError
from swsdist.fingerprint import fingerprint
from swsdist.io.remote.scratch import scratch
from swsdist.io.traffic import open_counted

#: What stands for a recording and ends so is a command.
ENDING = "|"

#: Seconds that a command may take.
LONGEST = 3600.0

#: Characters of its standard error that are told.
_TOLD = 600

_allowed = False


class _Kept(threading.local):
    """The command that a thread has run last, and the file of what it wrote."""

    command: str | None = None
    file: Any = None


_kept = _Kept()


def is_command(path: str) -> bool:
    """Whether what stands for a recording is a command: it ends in `|`."""
    return path.endswith(ENDING)


def identity(command: str) -> str:
    """In place of a file's size and time of change: a command's own text is all that is known of it before it is run."""
    return f"0:{fingerprint('command', command)[:16]}"


def are_permitted() -> bool:
    """Whether commands are run."""
    return _allowed


@contextmanager
def permitted(allow: bool) -> Iterator[None]:
    """Let commands be run in this process, or not, while this lasts."""
    global _allowed
    before, _allowed = _allowed, allow
    try:
        yield
    finally:
        _allowed = before
        if not before:
            _forget()


def refusal(command: str, where: str | None = None) -> AudioError:
    """What is told where a command is not run.

    Args:
        command: it.
        where: file and line that names it.
    """
    return AudioError(
        f"it is a command, which is not run unless you allow it: {command}",
        where=where or command,
        reason="command",
        remedy="read what it does; --allow-commands runs it with your rights. Or write its output to a file, and name that",
    )


@contextmanager
def output(command: str) -> Iterator[BinaryIO]:
    """What a command writes, as a seekable file.

    Raises:
        AudioError: commands are not allowed; or it fails, or takes longer than LONGEST.
    """
    if not _allowed:
        raise refusal(command)
    if _kept.command != command:
        _forget()
        _kept.file = _run(command)
        _kept.command = command
    with open_counted(Path(_kept.file.name)) as file:
        yield file


def _forget() -> None:
    if _kept.file is not None:
        _kept.file.close()
    _kept.command = _kept.file = None


def _run(command: str) -> Any:
    """Run it; its output lies in a temporary file, which is removed when it is closed."""
    file = tempfile.NamedTemporaryFile(dir=scratch(), suffix=".sound")  # noqa: SIM115 - it is kept
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command.removesuffix("|")],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=complaints,
            start_new_session=True,  # with all that it starts it can be ended
        )
        try:
            code = process.wait(LONGEST)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            file.close()
            if isinstance(error, subprocess.TimeoutExpired):
                raise _failed(command, f"the command took longer than {LONGEST:.0f} s") from None
            raise
        complaints.seek(0)
        said = " ".join(complaints.read().decode("utf-8", "replace").split())
    if code != 0:
        file.close()
        how = f"exit status {code}" if code > 0 else f"signal {-code}"
        raise _failed(command, f"the command ended with {how}; it said: {said[-_TOLD:] or 'nothing'}")
    if Path(file.name).stat().st_size == 0:
        file.close()
        raise _failed(command, f"the command wrote nothing; it said: {said[-_TOLD:] or 'nothing'}")
    return file


def _failed(command: str, message: str) -> AudioError:
    return AudioError(
        message,
        where=command,
        reason="command-failed",
        remedy="run it by hand; mend it, or take its line out of the list",
    )
