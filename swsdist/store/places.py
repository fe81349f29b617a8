"""Paths of recordings relative to their store: if both are moved together, the recordings are still found.

The documents table has the paths at the time of writing. The manifest keeps the path from the store to the common
folder of all recordings, unless that is the root or one of them is remote.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.io.filesystem import Folder


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
    first = pc.min(every).as_py()
    if now == root or not Path(now + first[len(root) :]).exists():
        return paths
    return pc.binary_replace_slice(paths, 0, len(root.encode()), now).cast(pa.string())


def _folder_of(paths: pa.ChunkedArray) -> str | None:
    """The common folder of all, from the first and last path in sorted order."""
    ends = pc.min_max(paths).as_py()
    if not ends["min"] or not ends["min"].startswith("/") or not ends["max"].startswith("/"):
        return None
    folder: str = os.path.commonpath([os.path.dirname(end) for end in ends.values()])  # noqa: PTH120 (as text)
    return folder
