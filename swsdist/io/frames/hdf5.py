"""HDF5: a dataset (frames, dimension) for each key, which is its path in the file without the first slash.

Datasets with numbers in other files (external, virtual) are refused: only the named file is read. A dataset packed to
less than a hundredth of its size may have at most 256 MiB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from swsdist.io.frames.item import Format, Item, RawFrames, damage_errors, damaged, missing_library, open_file

#: Exceptions of h5py for damaged files.
_BROKEN = (OSError, ValueError, KeyError, RuntimeError, TypeError)

#: Bytes that an array may have at any packing ratio, and the greatest ratio of larger ones.
_FREE, _PACKED = 1 << 28, 100


def _opened(file: Any, path: str) -> Any:
    try:
        import h5py
    except ImportError:
        raise missing_library("h5py", "hdf5", path) from None
    with damage_errors(path, *_BROKEN):
        return h5py.File(file, "r")


class _Hdf5:
    shift: float | None = None

    def __init__(self, path: str, storage: Mapping[str, object]) -> None:
        self._path, self._file = path, open_file(path, storage)
        self._root = _opened(self._file, path)

    def read(self, at: str) -> RawFrames:
        try:
            result = self._root[at]
            if result.external or result.is_virtual:
                raise ValueError("its numbers lie in other files: copy them into this one")
            if result.nbytes > max(_FREE, _PACKED * result.id.get_storage_size()):
                raise ValueError(f"{result.id.get_storage_size()} bytes, and {result.nbytes} unpacked")
            return np.asarray(result[()])
        except _BROKEN as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise damaged(self._path, error, at) from error

    def close(self) -> None:
        self._root.close()
        self._file.close()


def _find(path: str, identity: str, size: int, storage: Mapping[str, object]) -> Iterator[tuple[str, Item]]:
    result: list[tuple[str, Item]] = []

    def look(name: str, item: Any) -> None:
        if hasattr(item, "shape"):  # a dataset, and not a group
            bytes_ = int(item.id.get_storage_size())
            result.append((name, Item("hdf5", path, name, f"{identity}@{name}", bytes_)))

    with damage_errors(path), open_file(path, storage) as file:
        root = _opened(file, path)
        with damage_errors(path, *_BROKEN):
            root.visititems(look)
            root.close()
    yield from result


HDF5 = Format((".h5", ".hdf5"), _find, _Hdf5)
