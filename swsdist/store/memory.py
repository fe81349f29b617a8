"""Two caches: values computed from shards, in memory, and files of a remote store, in a local folder of bounded size.

Values (`Memory`) are kept by a process for its later searches.

Files (`Cache`) are named by their SHA-256, which is checked when a file is fetched, and again by each process that
finds it. All processes of a user on a node share the folder, whose name ends in the user's number. A rename publishes
each file complete; a file removed during reading stays readable. When the cache is full, the least recently used files
are removed; simultaneous fetches of several processes may exceed the limit for a moment. Files larger than the cache
are read remotely. So is everything if the folder belongs to or is writable by other users, who could change checked
files. The cache also keeps files that a process writes to a remote store, so a node need not fetch the shards it
indexed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import time
import uuid
from collections.abc import Hashable
from contextlib import suppress
from pathlib import Path
from typing import Any

from swsdist.core.codes import families
from swsdist.core.errors import DamagedTransferError, StoreError, UserError
from swsdist.io.filesystem import Folder


class Memory:
    """Holds values that are expensive to compute, up to a total size.

    Values that do not fit are not held, and held values are never evicted: searches cycle through all shards, so the
    least recently used value is the next one needed.

    Args:
        most: bytes.
    """

    def __init__(self, most: int) -> None:
        self._held: dict[Hashable, Any] = {}
        #: Free bytes.
        self.room = most

    def get(self, key: Hashable) -> Any | None:
        """The held value, or None."""
        return self._held.get(key)

    def put(self, key: Hashable, value: object, size: int) -> None:
        """Hold a value of `size` bytes if it fits."""
        if size <= self.room and key not in self._held:
            self._held[key] = value
            self.room -= size


_PIECE = 1 << 22
_VARIABLE = re.compile(r"\$\{?(\w+)")
_ENDING, _PART = ".cached", ".part"
#: Seconds without writing after which a partial file belongs to a killed process.
_LEFT = 3600.0


class Cache:
    """The cache of a node.

    Args:
        root: a local folder, without `-` and the user's number; created. `$NAME` in it is a variable of the node.
        most: bytes that it may hold.

    Raises:
        UserError: the node lacks the variable.
    """

    def __init__(self, root: str, most: int) -> None:
        missing = [name for name in _VARIABLE.findall(root) if not os.environ.get(name)]
        if missing:
            raise families.UNSET_VARIABLE.of(UserError)(
                "{root} names a variable that is not set on this node: {variable}",
                "set it where Ray is started on the node, or name a folder",
                where="executor.cache",
                root=root,
                variable=missing[0],
            )
        self.root = Path(f"{os.path.expandvars(root)}-{os.getuid()}")
        self.most = most
        self._checked: set[str] = set()

    def at(self, folder: Folder, name: str, size: int, sha256: str) -> tuple[Folder, str]:
        """Where to read a file: in the cache, or at its place if it is local, too large, or the disk is full.

        Args:
            folder, name: its place.
            size, sha256: from the store's manifest.

        Raises:
            StoreError: the fetched file contradicts the manifest.
        """
        if folder.local() is not None or size > self.most or not self._is_mine():
            return folder, name
        file = self.root / f"{sha256}{_ENDING}"
        if not self._is_valid(file, size, sha256):
            try:
                self._fetch(folder, name, file, size, sha256)
            except OSError:  # the disk is full or read-only
                return folder, name
        return Folder(str(self.root)), file.name

    def keep(self, folder: Folder, file: Path, size: int, sha256: str) -> None:
        """Also keep a finished local file that is about to be published to a remote folder."""
        if folder.local() is not None or size > self.most or not self._is_mine():
            return
        target = self.root / f"{sha256}{_ENDING}"
        with suppress(OSError):  # the disk is full or read-only; the file can be fetched later
            if target.exists():
                os.utime(target)  # readers check it
                return
            self._make_room(size)
            try:
                os.link(file, target)
            except FileExistsError:
                return
            except OSError:  # it is on another file system
                part = self.root / f"{uuid.uuid4().hex}{_PART}"
                try:
                    shutil.copyfile(file, part)
                    part.replace(target)
                finally:
                    part.unlink(missing_ok=True)
            self._checked.add(sha256)

    def files(self) -> list[tuple[str, int]]:
        """SHA-256 (from the name) and bytes of each file, the least recently used first."""
        result = []
        if self._is_mine():
            for file in self.root.glob(f"*{_ENDING}"):
                with suppress(FileNotFoundError):
                    status = file.stat()
                    result.append((status.st_mtime_ns, file.stem, status.st_size))
        return [(name, size) for _, name, size in sorted(result)]

    def _is_mine(self) -> bool:
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = self.root.lstat()
            return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022
        except OSError:
            return False

    def _is_valid(self, file: Path, size: int, sha256: str) -> bool:
        try:
            if file.stat().st_size != size:
                return False
            if sha256 not in self._checked:
                with file.open("rb") as open_file:
                    if hashlib.file_digest(open_file, "sha256").hexdigest() != sha256:
                        return False
                self._checked.add(sha256)
            os.utime(file)  # used just now
        except OSError:
            return False
        return True

    def _fetch(self, folder: Folder, name: str, file: Path, size: int, sha256: str) -> None:
        self._make_room(size)
        part = self.root / f"{uuid.uuid4().hex}{_PART}"
        try:
            digest = hashlib.sha256()
            with folder.open(name) as source, part.open("wb") as target:
                while piece := source.read(_PIECE):
                    digest.update(piece)
                    target.write(piece)
            if digest.hexdigest() != sha256:
                raise (StoreError if folder.local() is not None else DamagedTransferError)(
                    "the file is not what the store's manifest says",
                    where=folder.path(name),
                    remedy="run `swsdist store check`, then index again what it names",
                )
            part.replace(file)
            self._checked.add(sha256)
        finally:
            part.unlink(missing_ok=True)

    def _make_room(self, size: int) -> None:
        stored, total = [], 0
        for file in self.root.iterdir():
            with suppress(FileNotFoundError):  # another process also made room
                status = file.stat()
                if file.suffix == _PART and time.time() - status.st_mtime > _LEFT:
                    file.unlink()
                    continue
                total += status.st_size
                if file.suffix == _ENDING:
                    stored.append((status.st_mtime_ns, status.st_size, file))
        for _, bytes_, file in sorted(stored):
            if total + size <= self.most:
                return
            file.unlink(missing_ok=True)
            total -= bytes_


_present: list[Cache] = []


def use(cache: Cache | None) -> None:
    """Make this process read stores through a cache, or directly."""
    _present[:] = [] if cache is None else [cache]


def cached_files() -> list[tuple[str, int]]:
    """The files in this process's cache, as in `Cache.files`."""
    return _present[0].files() if _present else []


def keep(folder: Folder, file: Path, size: int, sha256: str) -> None:
    """Keep a finished local file, about to be published in a store, in this process's cache."""
    if _present:
        _present[0].keep(folder, file, size, sha256)


def nearest(folder: Folder, name: str, size: int, sha256: str) -> tuple[Folder, str]:
    """The place from which this process reads a file of a store: its cache, or the store."""
    return _present[0].at(folder, name, size, sha256) if _present else (folder, name)
