"""Recordings from commands: a line of Kaldi's `wav.scp` that ends in `|` names a command that writes a recording.

A command runs with the user's rights, so it runs only if the user allows it for one call (`permitted`); a config cannot allow
it. It runs in bash, which reports the status of each part of a pipeline, or else in `/bin/sh -c`, as Kaldi's `popen` does. Its
output goes to a temporary file and is read like any recording. The file of the last command is kept, because header, samples,
digest and segments of a recording are read one after the other.

Source: Kaldi, "Kaldi I/O from a command-line perspective", extended filenames.
"""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from swsdist.core.codes import audio as codes
from swsdist.core.errors import AudioError, recast
from swsdist.core.fingerprint import fingerprint
from swsdist.io.failures import explain
from swsdist.io.local import open_counted
from swsdist.io.remote.scratch import scratch

#: Ending of a command in the place of a path.
ENDING = "|"

#: Seconds that a command may take.
TIMEOUT = 3600.0

#: Characters of its standard error in a message.
_SHOWN = 600

#: Suffix of a command's identity, followed by the name of a program that this machine lacks: with the program, the command is
#: tried again.
ABSENT = ":without-"

#: Exit statuses of a shell that cannot run or find a program.
_UNRUNNABLE = (126, 127)

#: Signals that end a correct program: sent by a person, or by a machine out of memory.
KILL_SIGNALS = {
    int(number) for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGXCPU)
}

_WORDS = (
    "! . : [ [[ break case cd command continue do done echo elif else esac eval exec exit export false fi for if kill "
    "printf pwd read return set shift source test then time trap true type ulimit umask unset until wait while { }"
)
#: Builtin words of shells.
_SHELL = frozenset(_WORDS.split())

#: After a pipeline: exit with the first status that is neither 0 nor SIGPIPE.
_EACH_PART = '\nfor code in "${PIPESTATUS[@]}"; do if [ $code != 0 ] && [ $code != 141 ]; then exit $code; fi; done'

_allowed = False


class _Cache(threading.local):
    """The last command of a thread, and the file of its output."""

    command: str | None = None
    file: Any = None


_cache = _Cache()


def is_command(path: str) -> bool:
    """Whether a path is a command: it ends in `|`."""
    return path.endswith(ENDING)


def require_file(name: str, source: str, where: str) -> None:
    """Refuse a command where a list names files.

    Args:
        name: entry of the list.
        source: kind of list, for messages.
        where: path of the list.

    Raises:
        DataError: the entry is a command.
    """
    if is_command(name):
        raise codes.COMMAND_NOT_FILE(where=where, name=name, source=source)


class UnrunnableError(AudioError):
    """The command's program is missing or not executable on this machine."""


def identity(command: str) -> str:
    """Identity of a command before it runs: its text, and the first missing program."""
    digest = f"0:{fingerprint('command', command)[:16]}"
    lacking = next((name for name in _programs(command) if shutil.which(name) is None), None)
    return digest if lacking is None else f"{digest}{ABSENT}{lacking}"


def _programs(command: str) -> list[str]:
    """The first word of each simple command, as far as it can be determined without a shell."""
    words = shlex.shlex(command.removesuffix(ENDING), posix=True, punctuation_chars=True)
    words.whitespace_split = True
    matches, first = [], True
    try:
        for word in words:
            if set(word) <= set("(;|&"):
                first = True
            elif first and "=" not in word:
                matches.append(word)
                first = False
    except ValueError:  # unclosed quotation: the shell reports it
        return []
    # A relative path depends on the folder that the command changes to.
    programs = (word for word in matches if word not in _SHELL and not set(word) & set("$`{}*?<>~"))
    return [word for word in programs if word.startswith("/") or "/" not in word]


def are_permitted() -> bool:
    """Whether commands may run."""
    return _allowed


@contextmanager
def permitted(allow: bool) -> Iterator[None]:
    """Allow or forbid commands in this process while the context lasts."""
    global _allowed
    before, _allowed = _allowed, allow
    try:
        yield
    finally:
        _allowed = before
        if not before:
            _forget()


def refusal(command: str, where: str | None = None) -> AudioError:
    """The error for a command that may not run.

    Args:
        command: its text.
        where: file and line that name it.
    """
    return codes.COMMAND_NOT_ALLOWED(where=where or command, command=command)


@contextmanager
def output(command: str) -> Iterator[BinaryIO]:
    """The output of a command, as a seekable file.

    Raises:
        AudioError: commands are not allowed; or the command fails, or takes longer than TIMEOUT.
        StorageError: a signal ended the command, or the disk is full.
    """
    if not _allowed:
        raise refusal(command)
    if _cache.command != command:
        _forget()
        _cache.file = _run(command)
        _cache.command = command
    with open_counted(Path(_cache.file.name)) as file:
        yield file


def _forget() -> None:
    if _cache.file is not None:
        _cache.file.close()
    _cache.command = _cache.file = None


def _run(command: str) -> Any:
    """Run a command; return a temporary file with its output, which is deleted on closing."""
    file = tempfile.NamedTemporaryFile(dir=scratch(), suffix=".sound")  # noqa: SIM115 - it is kept
    with tempfile.TemporaryFile() as errors:
        bash = shutil.which("bash")
        text = command.removesuffix(ENDING)
        process = subprocess.Popen(
            [bash, "-c", text + _EACH_PART] if bash else ["/bin/sh", "-c", text],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=errors,
            start_new_session=True,  # so that its children can be killed, too
        )
        try:
            status = process.wait(TIMEOUT)
        except BaseException as failure:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            file.close()
            if isinstance(failure, subprocess.TimeoutExpired):
                raise codes.COMMAND_TIMEOUT(where=command, seconds=TIMEOUT) from None
            raise
        errors.seek(0)
        stderr = " ".join(errors.read().decode("utf-8", "replace").split())
    last = stderr[-_SHOWN:] or "empty"
    if status != 0:
        full = shutil.disk_usage(file.name).free == 0 or os.strerror(errno.ENOSPC) in stderr
        file.close()
        if full:
            error = explain(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), f"{scratch()}, where {command} writes")
            assert error is not None  # it has an errno
            raise error
        number = -status if status < 0 else status - 128  # a shell adds 128 to the signal of its child
        ending = f"exit status {status}" if status > 0 else f"signal {-status}"
        if number in KILL_SIGNALS:
            raise codes.COMMAND_KILLED(where=command, ending=ending, stderr=last)
        failed = codes.COMMAND_FAILED(where=command, ending=ending, stderr=last)
        raise recast(failed, UnrunnableError) if status in _UNRUNNABLE else failed
    if Path(file.name).stat().st_size == 0:
        file.close()
        raise codes.COMMAND_WITHOUT_OUTPUT(where=command, stderr=last)
    return file
