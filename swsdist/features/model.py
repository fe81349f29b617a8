"""Models: named arrays and settings, read without pickle and identified by content.

A model file is NumPy's `.npz` with one array of each name, and `settings`, JSON as bytes. Loading it executes no code.
The fingerprint covers names, types, shapes, bytes and settings, so it does not depend on the writer or the path.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import features as codes
from swsdist.core.errors import ConfigError, DataError, recast
from swsdist.io.failures import as_file_fault
from swsdist.io.filesystem import Folder, locate
from swsdist.io.frames.numpy_files import bounded_arrays
from swsdist.io.remote.copies import local_file

T = TypeVar("T")

#: Setting of a model with fewer components than were wanted, for lack of frames: the number that was.
FEWER = "instead_of"

_SETTINGS = "settings"


@dataclass(frozen=True, eq=False)
class Model:
    """A trained model: a codebook, a projection, weights.

    Attributes:
        name: its type, for example `codebook`.
        version: raised whenever the meaning of the numbers changes.
        arrays: by name; of numbers or booleans.
        settings: plain JSON values.
    """

    name: str
    version: int
    arrays: Mapping[str, NDArray[np.generic]]
    settings: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, array in self.arrays.items():
            if name == _SETTINGS or array.dtype.kind not in "biuf":
                raise ValueError(f"array {name!r} of a model has the type {array.dtype}: use numbers or booleans")

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits of the SHA-256 of its content."""
        running = hashlib.sha256(self._header())
        for name in sorted(self.arrays):
            array = _little_endian(self.arrays[name])
            running.update(f"\0{name}\0{array.dtype.str}\0{array.shape}\0".encode())
            running.update(array.tobytes())
        return running.hexdigest()[:32]

    def _header(self) -> bytes:
        values = {"name": self.name, "version": self.version, "settings": dict(self.settings)}
        return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()

    def save(self, folder: Folder, name: str) -> None:
        """Publish it as a file of a folder; the same model always has the same bytes."""
        folder.write_bytes(name, self.to_bytes())

    def to_bytes(self) -> bytes:
        """The content of its file."""
        out = io.BytesIO()
        arrays = {array: _little_endian(self.arrays[array]) for array in sorted(self.arrays)}
        np.savez(out, allow_pickle=False, **{_SETTINGS: np.frombuffer(self._header(), np.uint8)}, **arrays)
        return out.getvalue()


def load_model(folder: Folder, name: str, expected: str | None = None) -> Model:
    """Read a model; no code of the file runs.

    Args:
        folder, name: place of the file.
        expected: fingerprint that the model must have.

    Raises:
        DataError: the file is missing or damaged, or holds another model.
    """
    where = folder.path(name)
    try:
        data = folder.read_bytes(name)
    except FileNotFoundError:
        raise codes.MISSING_MODEL(where=where) from None
    except OSError as error:
        fault = as_file_fault(error, where)
        raise codes.UNREADABLE_MODEL(where=where, detail=fault.message, fix=fault.remedy or "") from error
    try:
        arrays = bounded_arrays(io.BytesIO(data))
        header = json.loads(arrays.pop(_SETTINGS).tobytes())
        model = Model(header["name"], header["version"], arrays, header["settings"])
    except (ValueError, KeyError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise codes.NOT_A_MODEL(where=where, error=error) from None
    if expected is not None and model.fingerprint != expected:
        raise codes.OTHER_MODEL(where=where)
    return model


def read_model(path: str, where: str, read: Callable[[Model], T]) -> T:
    """Read a model file that a config names.

    Args:
        path: the file.
        where: its place in the config, for messages.
        read: converts the model; raises a ConfigError if it is invalid.

    Raises:
        ConfigError: the file is missing or damaged, or `read` rejects it.
    """
    try:
        return read(load_model(*locate(str(local_file(path)))))
    except FileNotFoundError:
        raise codes.NO_MODEL_OBJECT(where=where) from None
    except ConfigError as error:
        raise recast(error, ConfigError, where=error.where or where) from None
    except DataError as error:
        if error.code == codes.MISSING_MODEL.name:
            raise codes.NO_MODEL_OBJECT(where=where) from None
        raise codes.UNUSABLE_MODEL(where=where, detail=error.message, fix=error.remedy or "") from None


def _little_endian(array: NDArray[np.generic]) -> NDArray[np.generic]:
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
