"""Paths of recordings relative to their store: if both are moved together, the recordings are still found.

The documents table has the paths at the time of writing. The manifest keeps the path from the store to the common
folder of all recordings, unless that is the root or one of them is remote.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.audio.streams import sha256
from swsdist.io.filesystem import Folder

#: Recordings that are read to see whether they are the same.
_READ = 20


def recordings_root(folder: Folder, paths: pa.ChunkedArray) -> str | None:
    """Path from a store to the common folder of local recordings."""
    root, local = _folder_of(paths), folder.local()
    if root is None or local is None or len(os.path.commonpath([root, str(local)])) < 2:
        return None
    return os.path.relpath(root, local)


def relocated_paths(folder: Folder, way: str | None, paths: pa.ChunkedArray, every: pa.ChunkedArray) -> pa.ChunkedArray:
    """Current paths of a documents table.

    Args:
        folder: current folder of the store.
        way: path to the folder of the recordings, from `recordings_root`.
        paths: of some documents.
        every: of all.
    """
    root, local = _folder_of(every), folder.local()
    if way is None or root is None or local is None:
        return paths
    now = os.path.normpath(local / way)
    if now == root or not Path(now).is_dir():
        return paths
    ends = (path.as_py()[len(root) :] for path in every if path.is_valid)
    if not any(Path(now + end).exists() for end in ends):
        return paths
    return pc.binary_replace_slice(paths, 0, len(root.encode()), now).cast(pa.string())


def _folder_of(paths: pa.ChunkedArray) -> str | None:
    """The common folder of all, from the first and last path in sorted order."""
    ends = pc.min_max(paths).as_py()
    if not ends["min"] or not ends["min"].startswith("/") or not ends["max"].startswith("/"):
        return None
    folder: str = os.path.commonpath([os.path.dirname(end) for end in ends.values()])  # noqa: PTH120 (as text)
    return folder


class Found(NamedTuple):
    """Recordings that are looked for in a folder: how many are there, and of how many; the first that is not, or is another."""

    folder: str
    there: int
    of: int
    missing: str = ""
    other: str = ""


def find_recordings(documents: pa.Table, folder: str) -> Found:
    """Look for the recordings of a store in a folder, or in the one in it that has the name of theirs.

    Below it, names are as they were. A recording is known by its size, and the smallest by their bytes.

    Args:
        documents: columns path, identity, sha256; local.
        folder: where they are now.
    """
    root = _folder_of(documents["path"]) or ""
    rows = {row["path"]: row for row in documents.to_pylist() if row["path"]}
    tried = (folder.rstrip("/"), os.path.join(folder, os.path.basename(root)))  # noqa: PTH118, PTH119
    best = Found(folder, 0, len(rows))
    for now in dict.fromkeys(tried):
        files = {path: Path(now + path[len(root) :]) for path in rows}
        there = [path for path, file in files.items() if file.is_file()]
        if len(there) <= best.there:
            continue
        others = [path for path in there if str(files[path].stat().st_size) != rows[path]["identity"].split(":")[0]]
        known = [path for path in there if rows[path]["sha256"] is not None and path not in others]
        smallest = sorted(known, key=lambda path: files[path].stat().st_size)[:_READ]
        others += [path for path in smallest if sha256(str(files[path])) != rows[path]["sha256"]]
        missing = next((str(file) for file in files.values() if not file.is_file()), "")
        best = Found(now, len(there), len(rows), missing, str(files[others[0]]) if others else "")
    return best
