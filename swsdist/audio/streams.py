"""The bytes of a recording: of a file, local or `s3://`, of a command (`swsdist.audio.commands`), or of a place in an archive
(`swsdist.audio.formats.views`); and their digest, so that a remote file is fetched once.

Within `only_files`, where paths are made of what strangers send, a path is a file and nothing else.

Decoders read forward with some seeks ahead and back. A running digest takes each byte at its current position, ignores others,
and reads the missing bytes at the end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from swsdist.audio import commands
from swsdist.audio.formats import views as archives
from swsdist.core.codes import audio as codes
from swsdist.core.errors import StorageError
from swsdist.io.failures import as_file_fault
from swsdist.io.filesystem import READ_AHEAD, is_remote, open_path
from swsdist.io.local import uncounted

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
    if commands.is_command(path) and not _only_files.get():
        with commands.output(path) as written:
            yield written
        return
    place, byte = (path, None) if _only_files.get() else archives.split(path)
    if byte is not None:
        with open_bytes(place, storage, ahead) as archive:
            yield cast(BinaryIO, archives.inside(archive, byte, path))
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
        raise codes.UNREADABLE_RECORDING(where=path, detail=fault.message, fix=fault.remedy or "") from error


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


class _Remote(Protocol):
    """Metadata of an open remote file."""

    etag: str
    size: int


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
    remote = cast(_Remote, file)
    digest.begins(remote.etag, remote.size)
    return cast(BinaryIO, _Passing(file, digest))
