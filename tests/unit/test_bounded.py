"""Small files that say they are large, or are packed so, do not fill the memory; and no file leads to another."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from swsdist.core.errors import DataError
from swsdist.features.fitting.files import read_totals
from swsdist.features.fitting.interface import Model, load_model
from swsdist.io.filesystem import Folder
from swsdist.io.frames import hdf5, numpy_files
from swsdist.io.frames.archive import find_items, read_item

#: Numbers that no machine has room for.
MANY = 1 << 50


def lying(shape: tuple[int, ...]) -> bytes:
    """A .npy whose header says more than follows."""
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return out.getvalue() + bytes(40)


def packed(place: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return place


def test_given_frames(tmp_path: Path, s3: Any) -> None:
    """Headers that lie; numbers of another file; chunks that were never written, which are zeros when they are read."""
    packed(tmp_path / "x.npz", {"a.npy": lying((MANY, 1))})
    (tmp_path / "x.ark").write_bytes(b"a \0BFM " + struct.pack("<bibi", 4, 1 << 30, 4, 1 << 20) + bytes(1000))
    (tmp_path / "x.scp").write_text(f"a {tmp_path}/x.ark:2\n")
    (tmp_path / "secret").write_bytes(bytes(range(80)))
    layout = h5py.VirtualLayout((10, 2), "f4")
    layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "b", (10, 2))
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["b"] = np.ones((10, 2), "f4")
    with h5py.File(tmp_path / "external.h5", "w") as file:
        file.create_dataset("a", (10, 2), "<f4", external=[(str(tmp_path / "secret"), 0, 80)])
    with h5py.File(tmp_path / "virtual.h5", "w") as file:
        file.create_virtual_dataset("a", layout)
    with h5py.File(tmp_path / "empty.h5", "w") as file:
        file.create_dataset("a", (1 << 40, 8), "<f4", chunks=(1000, 8))
    folder = Folder(f"s3://{s3.bucket}/bounded", s3.storage)
    folder.write_bytes("a.npy", lying((MANY, 1)))
    names = ("x.npz", "x.scp", "external.h5", "virtual.h5", "empty.h5")
    for place, storage in (*((f"{tmp_path}/{name}", {}) for name in names), (folder.root, folder.storage)):
        item = find_items(place, storage=storage)["a"]
        with pytest.raises(DataError, match="damaged or cut off"):
            read_item(item, storage)


def test_what_is_packed_too_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros: a thousand to one; with the bound taken down from 256 MiB to 1 MiB."""
    frames = np.zeros((1 << 16, 8), "f4")
    np.savez_compressed(tmp_path / "x.npz", a=frames)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("a", data=frames, compression="gzip")
    for name in ("x.npz", "x.h5"):
        assert np.array_equal(read_item(find_items(str(tmp_path / name))["a"])[0], frames)
    monkeypatch.setattr(numpy_files, "_FREE", 1 << 20)
    monkeypatch.setattr(hdf5, "_FREE", 1 << 20)
    for name in ("x.npz", "x.h5"):
        (tmp_path / name).rename(tmp_path / f"again-{name}")  # it is not open
        with pytest.raises(DataError, match="unpacked"):
            read_item(find_items(str(tmp_path / f"again-{name}"))["a"])


def test_models_and_totals(tmp_path: Path) -> None:
    Model("m", 1, {"x": np.ones(3)}, {}).save(Folder(str(tmp_path)), "m.npz")
    members = {"x.npy": lying((MANY,))}
    with zipfile.ZipFile(tmp_path / "m.npz") as archive:
        members |= {name: archive.read(name) for name in archive.namelist() if name != "x.npy"}
    packed(tmp_path / "m.npz", members)
    with pytest.raises(DataError, match="by its header"):
        load_model(Folder(str(tmp_path)), "m.npz")
    with (tmp_path / "m.npz").open("rb") as file, pytest.raises(ValueError, match="by its header"):
        read_totals(file)
