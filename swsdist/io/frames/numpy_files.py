"""NumPy's files: `.npy`, one array (frames, dimension) of a document, and `.npz`, one per key. Pickled objects are
refused.

Sizes are checked before unpacking: an array of an `.npz` must have the size in its header, and one packed to less than
a hundredth of its size may have at most 256 MiB, so that a small file cannot fill the memory.

The identity of an item in an `.npz` is its checksum there (CRC-32) and its size: it is independent of other arrays in
the file.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from swsdist.io.filesystem import is_remote
from swsdist.io.frames.item import Format, Item, RawFrames, damage_errors, damaged, open_file
from swsdist.io.local import count

_BROKEN = (ValueError, EOFError, OSError, zipfile.BadZipFile, KeyError)

#: Bytes that an array may have at any packing ratio, and the greatest ratio of larger ones.
_FREE, _PACKED = 1 << 28, 100


def write_array(file: IO[bytes], array: NDArray[Any]) -> None:
    """Append an array as `.npy`. NumPy's own way into a file hides why it fails: what is no file of the system's is written by
    its method, whose error says that a disk is full.
    """
    np.save(SimpleNamespace(write=file.write), array, allow_pickle=False)


def demand_bounded(archive: zipfile.ZipFile) -> None:
    """Demand plausible unpacked sizes for all arrays of an `.npz`, from the archive's directory.

    Raises:
        ValueError: an array is too large.
    """
    for item in archive.infolist():
        if item.file_size > max(_FREE, _PACKED * item.compress_size):
            raise ValueError(f"{item.filename} has {item.compress_size} bytes, and {item.file_size} unpacked")


def demand_complete(archive: zipfile.ZipFile, names: Iterable[str]) -> None:
    """Demand that arrays of an `.npz` have the sizes in their headers.

    Raises:
        ValueError: an array has another size.
    """
    for name in names:
        if name.endswith(".npy"):
            with archive.open(name) as file:
                _demand_size(file, name, archive.getinfo(name).file_size)


def bounded_arrays(file: BinaryIO) -> dict[str, NDArray[Any]]:
    """All arrays of an `.npz`, after checks of packing ratio and size.

    Raises:
        ValueError: a check fails; or it is no `.npz`.
    """
    with zipfile.ZipFile(file) as archive:
        demand_bounded(archive)
        demand_complete(archive, archive.namelist())
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        return {name: np.asarray(arrays[name]) for name in arrays.files}


def _demand_size(file: IO[bytes], name: str, size: int) -> None:
    """Demand that an array has the size in its header, since NumPy allocates first. Leaves the position after the
    header.
    """
    version = np.lib.format.read_magic(file)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"{name} is of version {version} of the format")
    shape, _, dtype = read(file)
    if not dtype.hasobject and file.tell() + math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{name} has {size} bytes, and by its header {shape} numbers of {dtype.itemsize}")


class _Npy:
    """Maps a local file, so that it is read on use."""

    shift: float | None = None

    def __init__(self, path: str, storage: Mapping[str, object]) -> None:
        self._path, self._storage = path, storage

    def read(self, at: str) -> RawFrames:
        with damage_errors(self._path, *_BROKEN):
            if is_remote(self._path):
                with open_file(self._path, self._storage) as file:
                    size = file.seek(0, io.SEEK_END)
                    file.seek(0)
                    _demand_size(file, self._path, size)
                    file.seek(0)
                    return np.asarray(np.load(file, allow_pickle=False))
            loaded = np.load(self._path, mmap_mode="r", allow_pickle=False)
            if not isinstance(loaded, np.ndarray):
                raise damaged(self._path, "it holds several arrays, as .npz does")
            count(loaded.nbytes)
            return loaded

    def close(self) -> None:
        """Do nothing: no file is open."""


class _Npz:
    shift: float | None = None

    def __init__(self, path: str, storage: Mapping[str, object]) -> None:
        self._path, self._file = path, open_file(path, storage)
        with damage_errors(path, *_BROKEN):
            with zipfile.ZipFile(self._file) as archive:
                demand_bounded(archive)
                self._names = frozenset(archive.namelist())
            self._arrays = np.load(self._file, allow_pickle=False)

    def read(self, at: str) -> RawFrames:
        try:
            demand_complete(self._arrays.zip, {f"{at}.npy", at} & self._names)
            return np.asarray(self._arrays[at])
        except _BROKEN as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise damaged(self._path, error, at) from error

    def close(self) -> None:
        self._file.close()


def _find(path: str, identity: str, size: int, storage: Mapping[str, object]) -> Iterator[tuple[str, Item]]:
    with damage_errors(path, *_BROKEN), open_file(path, storage) as file, zipfile.ZipFile(file) as archive:
        demand_bounded(archive)
        members = archive.infolist()
    for member in members:
        key = member.filename.removesuffix(".npy")
        yield key, Item("npz", path, key, f"{member.file_size}:{member.CRC:08x}", member.file_size)


NPY = Format((".npy",), None, _Npy)
NPZ = Format((".npz",), _find, _Npz)
