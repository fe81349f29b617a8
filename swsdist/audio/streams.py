"""The bytes of a recording, of a file, a command or a place in an archive, and their digest.

A path is a local file, `s3://`, a command, or a place in an archive (`swsdist.audio.formats.views`). Within
`only_files`, for paths from untrusted sources, a path is a file and nothing else.

Digests are computed while a decoder reads, so that a remote file is fetched once. Decoders read forward with some seeks
ahead and back. A running digest takes each byte at its current position, ignores others, and reads the missing bytes at
the end.

Commands: a line of Kaldi's `wav.scp` that ends in `|` names a command that writes a recording. It runs with the user's
rights, so it runs only if the user allows it for one call (`permitted`); a config cannot allow it. It runs in bash,
which reports the status of each part of a pipeline, or else in `/bin/sh -c`, as Kaldi's `popen` does. Its output goes
to a temporary file and is read like any recording. The file of the last command is kept, because header, samples,
digest and segments of a recording are read one after the other.

Source: Kaldi, "Kaldi I/O from a command-line perspective", extended filenames.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO, cast

from swsdist.audio.formats import views
from swsdist.core.codes import audio as codes
from swsdist.core.codes import families
from swsdist.core.errors import AudioError, StorageError, recast
from swsdist.core.fingerprint import fingerprint
from swsdist.io.failures import as_file_fault, explain
from swsdist.io.filesystem import READ_AHEAD, is_remote, open_path
from swsdist.io.local import open_counted, uncounted
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


_PIECE = 1 << 20

_only_files = ContextVar("only_files", default=False)


@contextmanager
def only_files() -> Iterator[None]:
    """Within the context a path is a file and nothing else, whatever it ends in: no command, no place in an archive."""
    token = _only_files.set(True)
    try:
        yield
    finally:
        _only_files.reset(token)


@contextmanager
def open_bytes(path: str, storage: Mapping[str, object] | None, ahead: int = READ_AHEAD) -> Iterator[BinaryIO]:
    """The bytes of a recording, as a file.

    Args:
        path: of a file, a command, or a place in an archive.
        storage: options for s3fs.
        ahead: bytes to fetch of a remote file at once.

    Raises:
        AudioError: the file is missing or could not be read.
    """
    if is_command(path) and not _only_files.get():
        with output(path) as written:
            yield written
        return
    place, byte = (path, None) if _only_files.get() else views.split(path)
    if byte is not None:
        with open_bytes(place, storage, ahead) as archive:
            yield cast(BinaryIO, views.inside(archive, byte, path))
        return
    try:
        # Opening a pipe would block.
        remote = is_remote(path)
        if not remote and Path(path).exists() and not Path(path).is_file():
            raise (codes.RECORDING_IS_FOLDER if Path(path).is_dir() else codes.RECORDING_IS_DEVICE)(where=path)
        with open_path(path, storage, ahead) as file:
            yield _passing(path, file) if remote else file
    except FileNotFoundError as error:
        raise codes.MISSING_RECORDING(where=path) from error
    except (StorageError, OSError) as error:
        fault = as_file_fault(error, path)
        raise families.UNREADABLE_RECORDING(
            "the file cannot be read: {detail}", "{fix}", where=path, detail=fault.message, fix=fault.remedy or ""
        ) from error


def sha256(path: str, storage: Mapping[str, object] | None = None) -> str:
    """SHA-256 of a file's bytes, hexadecimal.

    Raises:
        AudioError: the file is missing or could not be read.
    """
    digest = Digest(path)
    with uncounted(), open_bytes(path, storage) as file:
        return digest.of(file)


def digested(digest: Digest, storage: Mapping[str, object] | None = None) -> str:
    """SHA-256 of a remote file that was read under `digesting`; only the unread rest is fetched.

    Raises:
        AudioError: the file is missing or could not be read.
    """
    if digest.all_passed:
        return digest.hexadecimal()
    with digesting(digest), open_bytes(digest.path, storage) as file:
        return digest.of(file)


class Digest:
    """SHA-256 of a file, from the bytes that are read.

    Attributes:
        path: of the file.
        taken: bytes from the beginning that are digested.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.taken = 0
        self._running = hashlib.sha256()
        self._identity: object = None
        self._size = -1

    def begins(self, identity: object, size: int) -> None:
        """The file is opened; if its ETag changed, the digest restarts."""
        if identity != self._identity:
            self.taken, self._running, self._identity = 0, hashlib.sha256(), identity
        self._size = size

    @property
    def all_passed(self) -> bool:
        """Whether all bytes are digested."""
        return self.taken == self._size

    def passes(self, at: int, data: bytes) -> None:
        """Take bytes that were read at a position."""
        if at <= self.taken < at + len(data):
            self._running.update(memoryview(data)[self.taken - at :])
            self.taken = at + len(data)

    def hexadecimal(self) -> str:
        """Digest of the bytes so far."""
        return self._running.hexdigest()

    def of(self, file: BinaryIO) -> str:
        """Digest of the file, hexadecimal; missing bytes are read."""
        at = file.seek(self.taken)
        while data := file.read(_PIECE):
            self.passes(at, data)  # the file may have passed them already
            at += len(data)
        return self.hexadecimal()


class _Passing:
    """A file that passes its bytes to a digest."""

    def __init__(self, file: BinaryIO, digest: Digest) -> None:
        self._file, self._digest = file, digest

    def read(self, size: int = -1) -> bytes:
        at = self._file.tell()
        data = self._file.read(size)
        self._digest.passes(at, data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


_active: ContextVar[Digest | None] = ContextVar("_active", default=None)


@contextmanager
def digesting(digest: Digest | None) -> Iterator[None]:
    """Digest the bytes that are read of a file while the context lasts."""
    token = _active.set(digest)
    try:
        yield
    finally:
        _active.reset(token)


def _passing(path: str, file: BinaryIO) -> BinaryIO:
    """A remote file, wrapped for the active digest of its path, if any."""
    digest = _active.get()
    if digest is None or digest.path != path:
        return file
    remote: Any = file  # of s3fs
    digest.begins(remote.etag, remote.size)
    return cast(BinaryIO, _Passing(file, digest))
