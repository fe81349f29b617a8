"""NumPy's files: `.npy`, one array (frames, dimension) of a document, and `.npz`, one of each key. Pickled objects are refused.

An item of an `.npz` is identified by its checksum there (CRC-32) and its size: where another array of the same file changes, it
stays as it is.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping

import numpy as np

from swsdist.io.filesystem import is_remote
from swsdist.io.frames.item import Format, Found, Item, damaged, mended, open_file

_BROKEN = (ValueError, EOFError, OSError, zipfile.BadZipFile, KeyError)


class _Npy:
    """A local file is mapped, and not read before it is used."""

    shift: float | None = None

    def __init__(self, path: str, storage: Mapping[str, object]) -> None:
        self._path, self._storage = path, storage

    def read(self, at: str) -> Found:
        with mended(self._path, *_BROKEN):
            if is_remote(self._path):
                with open_file(self._path, self._storage) as file:
                    return np.asarray(np.load(file, allow_pickle=False))
            loaded = np.load(self._path, mmap_mode="r", allow_pickle=False)
            if not isinstance(loaded, np.ndarray):
                raise damaged(self._path, "it holds several arrays, as .npz does")
            return loaded

    def close(self) -> None:
        """There is nothing to close."""


class _Npz:
    shift: float | None = None

    def __init__(self, path: str, storage: Mapping[str, object]) -> None:
        self._path, self._file = path, open_file(path, storage)
        with mended(path, *_BROKEN):
            self._arrays = np.load(self._file, allow_pickle=False)

    def read(self, at: str) -> Found:
        try:
            return np.asarray(self._arrays[at])
        except _BROKEN as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise damaged(self._path, error, at) from error

    def close(self) -> None:
        self._file.close()


def _find(path: str, identity: str, size: int, storage: Mapping[str, object]) -> Iterator[tuple[str, Item]]:
    with mended(path, *_BROKEN), open_file(path, storage) as file, zipfile.ZipFile(file) as archive:
        members = archive.infolist()
    for one in members:
        key = one.filename.removesuffix(".npy")
        yield key, Item("npz", path, key, f"{one.file_size}:{one.CRC:08x}", one.file_size)


NPY = Format((".npy",), None, _Npy)
NPZ = Format((".npz",), _find, _Npz)
