"""Local copies of single files that a library or an extractor needs on a disk: models, tables of labels.

An extractor's path has no options for S3. So those apply with which this process last opened a folder of the same
bucket: of its run, or of its store.
"""

from __future__ import annotations

import hashlib
from pathlib import Path, PurePosixPath

from swsdist.io.filesystem import is_remote, locate, storage_of_bucket
from swsdist.io.remote.scratch import scratch

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
