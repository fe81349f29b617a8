"""Where the recordings of a store lie, from the store: where both are moved together, the recordings are found again.

The documents table has the paths of when it was written. The folder that all of these are in has a way there from the store,
which the manifest keeps, unless they have no folder in common but the root, or one of them is remote.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.io.filesystem import Folder


def recordings_root(folder: Folder, paths: pa.ChunkedArray) -> str | None:
    """The way from a store to the folder that local recordings are in."""
    root, here = _folder_of(paths), folder.local()
    if root is None or here is None or len(os.path.commonpath([root, str(here)])) < 2:
        return None
    return os.path.relpath(root, here)


def relocated_paths(folder: Folder, way: str | None, paths: pa.ChunkedArray, every: pa.ChunkedArray) -> pa.ChunkedArray:
    """Paths of a documents table as they are now.

    Args:
        folder: the store, where it lies now.
        way: to the folder of the recordings, of `recordings_root`.
        paths: of some documents.
        every: of all.
    """
    root, here = _folder_of(every), folder.local()
    if way is None or root is None or here is None:
        return paths
    now = os.path.normpath(here / way)
    first = pc.min(every).as_py()
    if now == root or not Path(now + first[len(root) :]).exists():
        return paths
    return pc.binary_replace_slice(paths, 0, len(root.encode()), now).cast(pa.string())


def _folder_of(paths: pa.ChunkedArray) -> str | None:
    """The folder that all are in: what the first and the last of them in their order have in common."""
    ends = pc.min_max(paths).as_py()
    if not ends["min"] or not ends["min"].startswith("/") or not ends["max"].startswith("/"):
        return None
    folder: str = os.path.commonpath([os.path.dirname(end) for end in ends.values()])  # noqa: PTH120 (as text)
    return folder
