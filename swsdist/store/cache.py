"""A bounded folder of a node's own for files of a remote store, so that what is read often is fetched once.

Files are named by their SHA-256, which is checked when a file is fetched, and again by each process that finds it there. All
processes of a user on a node share the folder, whose name ends in the user's number. A file appears whole by one rename, and
one that is removed while it is read stays with its reader. When there is no room, the files that were not used for longest go;
what several processes fetch at the same moment may be too much for that moment. What is larger than the whole is read where it
lies, and so is everything if the folder is another user's, or others may write to it, who could change what was checked.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
import uuid
from contextlib import suppress
from pathlib import Path

from swsdist.errors import StoreError
from swsdist.io.filesystem import Folder

_PIECE = 1 << 22
_ENDING, _PART = ".cached", ".part"
#: Seconds after which a part that nobody wrote to is of a process that was killed.
_LEFT = 3600.0


class Cache:
    """The cache of a node.

    Args:
        root: a local folder, less `-` and the user's number; it is made.
        most: bytes that it may hold.
    """

    def __init__(self, root: str, most: int) -> None:
        self.root = Path(f"{root}-{os.getuid()}")
        self.most = most
        self._checked: set[str] = set()

    def at(self, folder: Folder, name: str, size: int, sha256: str) -> tuple[Folder, str]:
        """Where to read a file: here, or where it is if that is local, or it is too large, or there is no room on the disk.

        Args:
            folder, name: where it is.
            size, sha256: as the store's manifest has them.

        Raises:
            StoreError: what was fetched is not what the manifest says.
        """
        if folder.local() is not None or size > self.most or not self._is_mine():
            return folder, name
        file = self.root / f"{sha256}{_ENDING}"
        if not self._stands(file, size, sha256):
            try:
                self._fetch(folder, name, file, size, sha256)
            except OSError:  # the disk is full, or may not be written to
                return folder, name
        return Folder(str(self.root)), file.name

    def _is_mine(self) -> bool:
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = self.root.lstat()
            return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022
        except OSError:
            return False

    def _stands(self, file: Path, size: int, sha256: str) -> bool:
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
                raise StoreError(
                    "the file is not what the store's manifest says",
                    where=folder.path(name),
                    remedy="run `swsdist store check`, then index again what it names",
                )
            part.replace(file)
            self._checked.add(sha256)
        finally:
            part.unlink(missing_ok=True)

    def _make_room(self, size: int) -> None:
        held, total = [], 0
        for file in self.root.iterdir():
            with suppress(FileNotFoundError):  # another process made room, too
                status = file.stat()
                if file.suffix == _PART and time.time() - status.st_mtime > _LEFT:
                    file.unlink()
                    continue
                total += status.st_size
                if file.suffix == _ENDING:
                    held.append((status.st_mtime_ns, status.st_size, file))
        for _, bytes_, file in sorted(held):
            if total + size <= self.most:
                return
            file.unlink(missing_ok=True)
            total -= bytes_


_present: list[Cache] = []


def use(cache: Cache | None) -> None:
    """From now on this process reads stores through a cache, or none."""
    _present[:] = [] if cache is None else [cache]


def nearest(folder: Folder, name: str, size: int, sha256: str) -> tuple[Folder, str]:
    """Where this process reads a file of a store."""
    return _present[0].at(folder, name, size, sha256) if _present else (folder, name)
