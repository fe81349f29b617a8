"""Local folders and `s3://` behind one small class: the only file that knows fsspec and s3fs.

A file appears under its name whole or not at all. It is finished in a local temporary file and then put in its place
by one rename (local) or one put (S3). Nothing is ever written through an open remote file: s3fs publishes what was
written so far even when the writer raises.

Two traps that shape this file (both measured): s3fs's listing cache hides another writer's new file after one listing,
so it is off; and an s3fs instance owns an event-loop thread which does not survive a fork, so instances are kept per
process. `Folder` itself is a plain value that can be pickled and hashed; it holds no connection.

`storage` is a mapping of options for `s3fs.S3FileSystem` (https://s3fs.readthedocs.io); `endpoint_url` may stand in it,
else `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL` counts. Keys come from it, or from where boto finds them. Transient S3
errors are retried by s3fs.

What goes wrong in writing, and all that S3 answers, is a `StorageError` (swsdist.io.failures); a local file that cannot be read
is the OSError that the system gives, since its reader knows best what that means.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, Protocol, TypedDict

from swsdist.errors import UserError
from swsdist.io.failures import OF_WRITING, TEMPORARY, explain, explained

#: Bytes that an open S3 file fetches beyond what was asked for; s3fs's own 50 MB would weigh on a worker's memory.
READ_AHEAD = 1 << 22


class Info(NamedTuple):
    """Size in bytes, and the identity: `size:mtime_ns` of a local file, `size:etag` on S3."""

    size: int
    identity: str


@dataclass(frozen=True)
class Folder:
    """A folder, local or `s3://bucket/prefix`. Names are relative to it, with `/`; it need not exist yet.

    Args:
        root: path or url. A local one is made absolute.
        storage: options for s3fs; not looked at for a local folder.
    """

    root: str
    storage: Mapping[str, object] = field(default_factory=dict, hash=False, repr=False)

    def __post_init__(self) -> None:
        root = str(self.root)
        if is_remote(root):
            root = root.rstrip("/")
        else:
            root = str(Path(root).absolute())
        object.__setattr__(self, "root", root)

    def path(self, name: str = "") -> str:
        """Full path or url of a name."""
        return f"{self.root.rstrip('/')}/{name}" if name else self.root

    def local(self, name: str = "") -> Path | None:
        """The name as a local path, or None if this folder is on S3."""
        return None if is_remote(self.root) else Path(self.path(name))

    def exists(self, name: str) -> bool:
        """Whether there is a file of this name."""
        try:
            self.info(name)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def info(self, name: str) -> Info:
        """Size and identity of a file.

        Raises:
            FileNotFoundError: there is no such file.
        """
        url = self.path(name)
        local = self.local(name)
        if local is not None:
            if local.is_dir():
                raise FileNotFoundError(errno.ENOENT, "is a folder", url)
            return _local_info(local.stat())
        with explained(url):
            details = _s3(self.storage).info(_key(url))
        if details["type"] != "file":
            raise FileNotFoundError(errno.ENOENT, "is a folder", url)
        return _s3_info(details)

    def changed(self, name: str) -> float:
        """When a file was last written, in seconds since 1970.

        Raises:
            FileNotFoundError: there is no such file.
        """
        local = self.local(name)
        if local is not None:
            return local.stat().st_mtime
        with explained(self.path(name)):
            return _s3(self.storage).info(_key(self.path(name)))["LastModified"].timestamp()

    def identity(self, name: str) -> str:
        """What changes when the file changes; see `Info`."""
        return self.info(name).identity

    def listing(self, prefix: str = "", unreadable: Callable[[str, OSError], None] | None = None) -> dict[str, Info]:
        """All files in the folder `prefix` and below, by name, sorted; empty if there is no such folder.

        One request per thousand files on S3. Temporary files are left out, and links to a folder that they lie in.

        Args:
            prefix: a folder.
            unreadable: is told of folders that cannot be listed, and of links that lead nowhere, which are left out; by
                default the former is an error.
        """
        start = self.local(prefix)
        if start is not None:
            found = dict(_walk(start, f"{prefix.rstrip('/')}/" if prefix else "", frozenset(), unreadable))
        else:
            url = self.path(prefix).rstrip("/")
            with explained(url):
                filesystem = _s3(self.storage)
                filesystem.invalidate_cache()
                # A trailing slash, or `runs/a` would also find the file `runs/a`.
                details = filesystem.find(_key(url) + "/", detail=True)
            skip = len(_key(self.root)) + 1
            found = {
                key[skip:]: _s3_info(entry)
                for key, entry in details.items()
                if entry["type"] == "file" and not key.endswith("/")
            }
        return dict(sorted(found.items()))

    def open(self, name: str, ahead: int = READ_AHEAD) -> BinaryIO:
        """A seekable binary file to read from; on S3 it fetches `ahead` bytes beyond what is asked for.

        Raises:
            FileNotFoundError: there is no such file.
        """
        local = self.local(name)
        if local is not None:
            return local.open("rb")
        with explained(self.path(name)):
            return _s3(self.storage).open(_key(self.path(name)), "rb", block_size=ahead)

    def read_bytes(self, name: str) -> bytes:
        """The whole file.

        Raises:
            FileNotFoundError: there is no such file.
        """
        local = self.local(name)
        if local is not None:
            try:
                return local.read_bytes()
            except NotADirectoryError as error:  # the folder is a file
                raise FileNotFoundError(*error.args) from None
        with explained(self.path(name)):
            return _s3(self.storage).cat_file(_key(self.path(name)))

    def write_bytes(self, name: str, data: bytes) -> None:
        """Publish `data` under a name."""
        if self.local(name) is None:
            with explained(self.path(name)):
                _s3(self.storage).pipe_file(_key(self.path(name)), data)
            return
        with explained(self.path(name)), self.temporary() as file:
            file.write_bytes(data)
            self.publish(file, name)

    def publish(self, local_file: Path, name: str) -> None:
        """Put a finished local file in its place, at once. The local file is used up by it."""
        target = self.local(name)
        if target is None:
            with explained(self.path(name)):
                _s3(self.storage).put_file(str(local_file), _key(self.path(name)))
            local_file.unlink()
            return
        with explained(self.path(name)):
            target.parent.mkdir(parents=True, exist_ok=True)
            _flush_to_disk(local_file)
            try:
                local_file.replace(target)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                with self.temporary() as beside:  # on another filesystem a rename cannot be had
                    shutil.copyfile(local_file, beside)
                    _flush_to_disk(beside)
                    beside.replace(target)
                local_file.unlink()

    def remove(self, name: str) -> None:
        """Remove a file; nothing happens if there is none."""
        local = self.local(name)
        if local is not None:
            with explained(self.path(name)):
                local.unlink(missing_ok=True)
            return
        with explained(self.path(name)):
            _s3(self.storage).call_s3("delete_object", **_bucket_and_key(self.path(name)))

    @contextmanager
    def temporary(self, suffix: str = "") -> Iterator[Path]:
        """A local path to write a file to that will be published; what is left of it afterwards is removed.

        For a local folder it lies in `.tmp` there, for S3 in the system's temporary folder.
        """
        place = self.local(TEMPORARY) or Path(tempfile.gettempdir())
        with explained(self.path()):
            try:
                place.mkdir(parents=True, exist_ok=True)
            except (FileExistsError, NotADirectoryError):
                raise UserError(
                    "this is a file, a folder is needed",
                    where=self.path(),
                    remedy="name another folder, or move the file away",
                ) from None
        # Not mkstemp: its files are for the owner alone, and would stay so when published.
        path = place / f"swsdist-{uuid.uuid4().hex}{suffix}"
        try:
            yield path
        except OSError as error:
            told = explain(error, str(place.parent if self.local() else place)) if error.errno in OF_WRITING else None
            if told is None:
                raise
            raise told from error
        finally:
            with explained(self.path()):
                path.unlink(missing_ok=True)


def is_remote(path: str) -> bool:
    """Whether a path is an `s3://` url.

    Raises:
        UserError: it is a url of another kind.
    """
    scheme, separator, _ = path.partition("://")
    if not separator:
        if path.startswith("s3:/"):
            raise UserError("an S3 url begins with s3://", where=path, remedy=f"s3://{path[3:].strip('/')}, perhaps?")
        return False
    if scheme != "s3":
        raise UserError(
            f"cannot read or write {scheme}://", where=path, remedy="give a local path, or an s3://bucket/name url"
        )
    return True


def locate(path: str, storage: Mapping[str, object] | None = None) -> tuple[Folder, str]:
    """The folder a file lies in, and its name there."""
    parent, _, name = (path if is_remote(path) else str(Path(path).absolute())).rpartition("/")
    return Folder(parent or "/", storage or {}), name


def open_path(path: str, storage: Mapping[str, object] | None = None, ahead: int = READ_AHEAD) -> BinaryIO:
    """A seekable binary file to read from, local or S3; see `Folder.open`.

    Raises:
        FileNotFoundError: there is no such file.
    """
    folder, name = locate(path, storage)
    return folder.open(name, ahead)


def identify(path: str, storage: Mapping[str, object] | None = None) -> str:
    """What changes when the file changes: `size:mtime_ns`, on S3 `size:etag`.

    Raises:
        FileNotFoundError: there is no such file.
    """
    folder, name = locate(path, storage)
    return folder.identity(name)


def _walk(
    folder: Path, prefix: str, above: frozenset[tuple[int, int]], unreadable: Callable[[str, OSError], None] | None
) -> Iterator[tuple[str, Info]]:
    try:
        status = folder.stat()
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        if unreadable is None:
            raise
        unreadable(str(folder), error)
        return
    mine = (status.st_dev, status.st_ino)
    if mine in above:  # a loop of links
        return
    for entry in entries:
        try:
            below = entry.is_dir()
            status = entry.stat()
        except OSError as error:
            gone = isinstance(error, FileNotFoundError) or error.errno == errno.ELOOP  # a link to nothing, or to itself
            if unreadable is None and not gone:
                raise
            if unreadable is not None and (not gone or entry.is_symlink()):  # else it was removed since
                unreadable(entry.path, error)
            continue
        if not below:
            yield prefix + entry.name, _local_info(status)
        elif entry.name != TEMPORARY:
            yield from _walk(Path(entry.path), f"{prefix}{entry.name}/", above | {mine}, unreadable)


def _local_info(status: os.stat_result) -> Info:
    return Info(status.st_size, f"{status.st_size}:{status.st_mtime_ns}")


class _Details(TypedDict):
    """What S3 says of an object."""

    type: str
    size: int
    ETag: str
    LastModified: datetime


class _S3(Protocol):
    """What is used of s3fs."""

    def info(self, path: str) -> _Details: ...

    def invalidate_cache(self) -> None: ...

    def find(self, path: str, *, detail: Literal[True]) -> dict[str, _Details]: ...

    def open(self, path: str, mode: str, *, block_size: int) -> BinaryIO: ...

    def cat_file(self, path: str) -> bytes: ...

    def pipe_file(self, path: str, value: bytes) -> None: ...

    def put_file(self, lpath: str, rpath: str) -> None: ...

    def call_s3(self, method: str, **kwargs: str) -> object: ...


def _s3_info(details: _Details) -> Info:
    etag = details["ETag"].strip('"')
    return Info(details["size"], f"{details['size']}:{etag}")


def _flush_to_disk(file: Path) -> None:
    with file.open("rb") as handle:
        os.fsync(handle.fileno())


def _key(url: str) -> str:
    return url.removeprefix("s3://")


def _bucket_and_key(url: str) -> dict[str, str]:
    bucket, _, key = _key(url).partition("/")
    return {"Bucket": bucket, "Key": key}


def _s3(storage: Mapping[str, object]) -> _S3:
    # A client keeps what it found in the environment, so another environment needs another client.
    environment = tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_")))
    return _connect(json.dumps(dict(storage), sort_keys=True), os.getpid(), environment)


@functools.lru_cache(maxsize=8)
def _connect(options: str, process: int, environment: tuple[tuple[str, str], ...]) -> _S3:
    """The s3fs filesystem of one process for one set of options (JSON); `process` is only there to tell forks apart."""
    import s3fs

    settings: dict[str, object] = json.loads(options)
    found = dict(environment)
    endpoint = found.get("AWS_ENDPOINT_URL_S3") or found.get("AWS_ENDPOINT_URL")
    clients = settings.get("client_kwargs", {})
    if endpoint and "endpoint_url" not in {*settings, *(clients if isinstance(clients, Mapping) else ())}:
        settings["endpoint_url"] = endpoint
    made: _S3 = s3fs.S3FileSystem(**{**settings, "use_listings_cache": False, "skip_instance_cache": True})
    return made
