"""Local folders and `s3://` behind one small class.

A file appears under its name complete or not at all: it is finished in a local temporary file, then published by one
rename (local) or one put (S3). Never write through an open remote file: s3fs publishes the part written so far even
when the writer raises.

Two measured properties of s3fs: its listing cache hides another writer's new file after one listing, so it is
off; and an instance owns an event-loop thread which does not survive a fork, so instances are kept per process.
`Folder` is a plain value without connection, which can be pickled and hashed.

`storage` is a mapping of options for `s3fs.S3FileSystem` (https://s3fs.readthedocs.io); it may contain `endpoint_url`,
otherwise `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL` applies. Keys come from `storage`, or from boto's usual sources.
Transient failures are retried, and content is checked after reading (`swsdist.io.remote`).

Errors: failures of writing, and all errors of S3, are `StorageError`s (swsdist.io.failures); failures of reading a
local file are the system's OSErrors, since the reader knows best how to interpret them.

Names in a store or a run must not lead out of it. A corpus is the user's, and may name files anywhere. Manifests, plans
and receipts may come from others: the names in them must be below their folder, and must not make us read or write
elsewhere. Every such name passes `demand_inside` when it is read, and every local file of a store or run
`demand_no_detour` when it is opened or published.

Local copies of single files (`local_file`), such as models and tables of labels, are made for libraries and extractors
that need them on a disk. An extractor's path has no options for S3, so the options with which this process last opened
a folder of the same bucket apply: that of its run, or of its store.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import UnsupportedOperation
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple, TypeVar, cast

from swsdist.core.codes import families
from swsdist.core.codes import io as codes
from swsdist.core.errors import StoreError, UserError
from swsdist.core.text import is_signed, shown
from swsdist.io.failures import OF_WRITING, TEMPORARY, explain, storage_errors
from swsdist.io.local import open_counted, retry_local, walk
from swsdist.io.remote.scratch import scratch


def demand_inside(name: object, where: str, key: str) -> str:
    """The name, if it lies below the folder of the file that contains it.

    Args:
        name: with `/` between folders.
        where: the file that contains it.
        key: its place there, for example `tracks.documents`.

    Raises:
        StoreError: it is absolute, a url, has a part `..` or `.`, an empty part, or a character NUL; or it is no text.
    """
    if isinstance(name, str) and "\0" not in name and not {"", ".", ".."} & set(name.split("/")):
        return name
    raise families.DAMAGED_FILE(
        "{key} leads out of the folder, or is not the name of a file: {name!r}",
        "no version of swsdist writes this: find out who changed it, and do not use the files there",
        where=where,
        key=key,
        name=shown(str(name))[:200],
    )


def demand_no_detour(root: Path, name: str) -> None:
    """Refuse links by other users that lead out of a local folder; the user's own links, and root's, are followed.

    Args:
        root: the folder, which may be a link itself.
        name: of a file below it, which need not exist.

    Raises:
        StoreError: there is such a link.
    """
    trusted = {0, os.geteuid()}
    base: str | None = None
    place = root
    for part in name.split("/"):
        place = place / part
        try:
            status = place.lstat()
        except OSError:
            return  # it is missing, or opening it will report the fault
        if not os.path.islink(place) or status.st_uid in trusted:  # noqa: PTH114
            continue
        base = base or os.path.realpath(root)
        if os.path.commonpath([base, os.path.realpath(place)]) != base:
            raise families.WRONG_KIND.of(StoreError)(
                "this is a link of another user that leads out of the folder",
                "copy its target into the folder, or make the link yourself if you trust it",
                where=str(place),
            )


#: Bytes that an open S3 file fetches beyond the requested range; s3fs's default of 50 MB would strain a worker's
#: memory.
READ_AHEAD = 1 << 22

T = TypeVar("T")

# Options for s3fs, by bucket, for paths named by extractors, which have no options.
_known: dict[str, Mapping[str, object]] = {}

# Files of at least twice this size are uploaded in parts of it, this many in parallel, each in memory; S3 allows 10 000
# parts.
_PART, _PARTS_AT_ONCE, _MOST_PARTS = 32 << 20, 2, 10_000


class Info(NamedTuple):
    """Size in bytes, and identity: `size:mtime_ns` of a local file, `size:etag` on S3."""

    size: int
    identity: str


@dataclass(frozen=True)
class Folder:
    """A folder, local or `s3://bucket/prefix`. Names are relative to it, with `/`; it need not exist yet.

    Args:
        root: path or url. A local one is made absolute.
        storage: options for s3fs; ignored for a local folder.
    """

    root: str
    storage: Mapping[str, object] = field(default_factory=dict, hash=False, repr=False)

    def __post_init__(self) -> None:
        root = str(self.root)
        if is_remote(root):
            root = root.rstrip("/")
            if self.storage:
                _known[_key(root).partition("/")[0]] = self.storage
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
            status = retry_local(local.stat)
            if stat.S_ISDIR(status.st_mode):
                raise FileNotFoundError(errno.ENOENT, "is a folder", url)
            return _local_info(status)
        from swsdist.io.remote.objects import details_of

        details = _ask(self.storage, url, lambda client: details_of(client, _key(url)))
        if details["type"] != "file":
            raise FileNotFoundError(errno.ENOENT, "is a folder", url)
        return Info(details["size"], _identity(details["size"], details["ETag"]))

    def modified(self, name: str) -> float:
        """Time of a file's last modification, in seconds since 1970.

        Raises:
            FileNotFoundError: there is no such file.
        """
        local = self.local(name)
        if local is not None:
            return retry_local(local.stat).st_mtime
        url = self.path(name)
        moment: float = _ask(self.storage, url, lambda client: client.info(_key(url)))["LastModified"].timestamp()
        return moment

    def identity(self, name: str) -> str:
        """Identity of a file, which changes with the file; see `Info`."""
        return self.info(name).identity

    def listing(self, prefix: str = "", unreadable: Callable[[str, OSError], None] | None = None) -> dict[str, Info]:
        """The same as `files`, sorted by name."""
        return dict(sorted(self.files(prefix, unreadable)))

    def files(
        self, prefix: str = "", unreadable: Callable[[str, OSError], None] | None = None
    ) -> Iterator[tuple[str, Info]]:
        """All files in the folder `prefix` and below, unordered, as a stream; empty if the folder does not exist.

        On S3 takes about one request per thousand files, several in parallel. Skips temporary files, and links to a
        folder that contains them.

        Args:
            prefix: a folder.
            unreadable: receives folders without permission to list, and broken links, which are left out; by default
                the former raise.

        Raises:
            OSError: a disk or network fails.
        """
        start = self.local(prefix)
        if start is not None:
            for name, status in walk(start, f"{prefix.rstrip('/')}/" if prefix else "", unreadable):
                yield name, _local_info(status)
            return
        from swsdist.io.remote.objects import objects_below

        bucket, _, key = _key(self.path(prefix).rstrip("/")).partition("/")
        skip = len(_key(self.root).partition("/")[2])
        # Without the trailing slash, `runs/a` would also match the file `runs/a`.
        for item in objects_below(lambda **requested: self._listed(bucket, **requested), f"{key}/" if key else ""):
            yield item.key[skip:].removeprefix("/"), Info(item.size, _identity(item.size, item.etag))

    def _listed(self, bucket: str, **requested: str) -> Mapping[str, object]:
        request = {"Bucket": bucket, **requested}
        answer: Mapping[str, object] = _ask(
            self.storage, self.path(), lambda client: client.call_s3("list_objects_v2", **request)
        )
        return answer

    def open(self, name: str, ahead: int = READ_AHEAD) -> BinaryIO:
        """A seekable binary file for reading; on S3 it fetches `ahead` bytes beyond each request.

        Raises:
            FileNotFoundError: there is no such file.
        """
        local = self.local(name)
        if local is not None:
            return open_counted(local)
        from swsdist.io.remote.objects import open_checked

        return cast(BinaryIO, open_checked(self.storage, self.path(name), ahead))

    def read_bytes(self, name: str) -> bytes:
        """The content of a file.

        Raises:
            FileNotFoundError: there is no such file.
        """
        local = self.local(name)
        if local is not None:
            try:
                with open_counted(local) as file:
                    return file.read()
            except NotADirectoryError as error:  # the folder is a file
                raise FileNotFoundError(*error.args) from None
        from swsdist.io.remote.objects import read_object

        return read_object(self.storage, self.path(name))

    def write_bytes(self, name: str, data: bytes) -> None:
        """Publish `data` under a name."""
        url = self.path(name)
        if self.local(name) is None:
            _ask(self.storage, url, lambda client: client.pipe_file(_key(url), data, chunksize=_PART))
            return
        with storage_errors(url), self.temporary() as file:
            file.write_bytes(data)
            self.publish(file, name)

    def write_if_unchanged(self, name: str, data: bytes, identity: str | None) -> str | None:
        """Publish `data` under a name on S3 if the existing file has the given identity; None: if no file exists.

        Returns:
            The new identity; None if not published.

        Raises:
            io.UnsupportedOperation: this folder is local, or the server lacks conditional writes.
        """
        if self.local(name) is not None:
            raise UnsupportedOperation("conditional writes are for S3")
        from swsdist.io.remote.objects import put_if

        url = self.path(name)
        bucket, _, key = _key(url).partition("/")
        etag = None if identity is None else identity.partition(":")[2]
        result = _ask(self.storage, url, lambda client: put_if(client.call_s3, bucket, key, data, etag))
        return None if result is None else _identity(len(data), result)

    def publish(self, local_file: Path, name: str) -> None:
        """Move a finished local file to its place, atomically. The local file disappears."""
        target = self.local(name)
        if target is None:
            key, part = _key(self.path(name)), max(_PART, -(-local_file.stat().st_size // _MOST_PARTS))
            _ask(
                self.storage,
                self.path(name),
                lambda client: client.put_file(str(local_file), key, chunksize=part, max_concurrency=_PARTS_AT_ONCE),
            )
            local_file.unlink()
            return
        demand_no_detour(Path(self.root), name)
        with storage_errors(self.path(name)):
            target.parent.mkdir(parents=True, exist_ok=True)
            _flush_to_disk(local_file)
            try:
                local_file.replace(target)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                with self.temporary() as beside:  # rename fails across filesystems
                    shutil.copyfile(local_file, beside)
                    _flush_to_disk(beside)
                    beside.replace(target)
                local_file.unlink()

    def remove(self, name: str) -> None:
        """Remove a file; nothing happens if there is none."""
        local = self.local(name)
        if local is not None:
            with storage_errors(self.path(name)):
                local.unlink(missing_ok=True)
            return
        url = self.path(name)
        _ask(self.storage, url, lambda client: client.call_s3("delete_object", **_bucket_and_key(url)))

    @contextmanager
    def temporary(self, suffix: str = "") -> Iterator[Path]:
        """A local path for a file to be published; removed afterwards if it still exists.

        For a local folder it is in the folder's `.tmp`, for S3 in this process's temporary folder
        (`swsdist.io.remote.scratch`).
        """
        place = self.local(TEMPORARY) or scratch()
        with storage_errors(self.path()):
            try:
                place.mkdir(parents=True, exist_ok=True)
            except (FileExistsError, NotADirectoryError):
                raise families.WRONG_KIND(
                    "this is a file, and a folder is needed",
                    "name another folder, or move the file away",
                    where=self.path(),
                ) from None
        # Not mkstemp: its files would remain private to the owner after publishing.
        path = place / f"swsdist-{uuid.uuid4().hex}{suffix}"
        try:
            yield path
        except OSError as error:
            where = str(place.parent if self.local() else tempfile.gettempdir())
            failure = explain(error, where) if error.errno in OF_WRITING else None
            if failure is None:
                raise
            raise failure from error
        finally:
            with storage_errors(self.path()):
                path.unlink(missing_ok=True)


def is_remote(path: str) -> bool:
    """Whether a path is an `s3://` url.

    Raises:
        UserError: it is a url of another kind.
    """
    scheme, separator, _ = path.partition("://")
    if not separator:
        if path.startswith("s3:/"):
            raise families.INVALID_VALUE.of(UserError)(
                "an S3 url begins with s3://",
                "{suggestion}, perhaps?",
                where=path,
                suggestion=f"s3://{path[3:].strip('/')}",
            )
        return False
    if scheme != "s3":
        raise families.UNSUPPORTED(
            "{scheme}:// urls cannot be read or written",
            "give a local path, or an s3://bucket/name url",
            where=path,
            scheme=scheme,
        )
    if is_signed(path):
        raise codes.SIGNED_URL(where=path)
    return True


def locate(path: str, storage: Mapping[str, object] | None = None) -> tuple[Folder, str]:
    """The folder that contains a file, and its name in the folder."""
    parent, _, name = (path if is_remote(path) else str(Path(path).absolute())).rpartition("/")
    return Folder(parent or "/", storage or {}), name


def storage_of_bucket(path: str) -> Mapping[str, object]:
    """The options with which this process last opened a folder of a url's bucket; empty by default."""
    return _known.get(_key(path).partition("/")[0], {})


def open_path(path: str, storage: Mapping[str, object] | None = None, ahead: int = READ_AHEAD) -> BinaryIO:
    """A seekable binary file for reading, local or S3; see `Folder.open`.

    Raises:
        FileNotFoundError: there is no such file.
    """
    folder, name = locate(path, storage)
    return folder.open(name, ahead)


def identify(path: str, storage: Mapping[str, object] | None = None) -> str:
    """Identity of a file, which changes with the file: `size:mtime_ns`, on S3 `size:etag`.

    Raises:
        FileNotFoundError: there is no such file.
    """
    folder, name = locate(path, storage)
    return folder.identity(name)


def _local_info(status: os.stat_result) -> Info:
    return Info(status.st_size, f"{status.st_size}:{status.st_mtime_ns}")


def _identity(size: int, etag: str) -> str:
    bare = etag.strip('"')
    return f"{size}:{bare}"


def _flush_to_disk(file: Path) -> None:
    with file.open("rb") as handle:
        os.fsync(handle.fileno())


def _key(url: str) -> str:
    return url.removeprefix("s3://")


def _bucket_and_key(url: str) -> dict[str, str]:
    bucket, _, key = _key(url).partition("/")
    return {"Bucket": bucket, "Key": key}


def _ask(storage: Mapping[str, object], url: str, do: Callable[[Any], T]) -> T:
    """Send a request to S3, with retries where useful."""
    from swsdist.io.remote.client import retry_remote

    return retry_remote(storage, url, do)


# By url and identity: this process's copy, and the SHA-256 of the fetched bytes.
_copies: dict[tuple[str, str], tuple[Path, str]] = {}


def local_file(path: str) -> Path:
    """The file itself if it is local, else a copy in the temporary folder of this process.

    A copy is fetched once, and again when the object changes; its SHA-256 is verified at each call.

    Raises:
        FileNotFoundError: there is no such object.
        StorageError: any other failure of S3.
    """
    if not is_remote(path):
        return Path(path)
    folder, name = locate(path, storage_of_bucket(path))
    key = path, folder.identity(name)
    if key in _copies:
        copy, required = _copies[key]
        if copy.is_file() and _sha256(copy.read_bytes()) == required:
            return copy
    data = folder.read_bytes(name)
    digest = _sha256(data)
    place = scratch() / "copies" / digest
    place.mkdir(parents=True, exist_ok=True)
    copy = place / PurePosixPath(name).name
    copy.write_bytes(data)
    _copies[key] = copy, digest
    return copy


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
