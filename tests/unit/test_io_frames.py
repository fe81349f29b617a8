"""Frames of other programs: written by their own libraries (HTK by hand), read back; damaged; and told with file and key."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from archives import write_ark

from swsdist.core.codes import families
from swsdist.core.errors import DataError, SwsdistError, TableError, UserError
from swsdist.io.filesystem import Folder
from swsdist.io.frames.archive import find_items, read_item
from tests.support.coded import raises

Frames = dict[str, np.ndarray]


@pytest.fixture
def frames() -> Frames:
    """Frames of three keys, 5 numbers each."""
    rng = np.random.default_rng(3)
    return {key: rng.normal(size=(count, 5)).astype(np.float32) for key, count in (("b", 40), ("a", 7), ("c/d", 1))}


def htk(
    frames: np.ndarray, period: int = 100_000, kind: int = 6, compressed: bool = False, checked: bool = False
) -> bytes:
    """A parameter file as the HTK Book describes it."""
    data, count, width = frames.astype(">f4").tobytes(), len(frames), 4 * frames.shape[1]
    if compressed:
        low, high = frames.min(axis=0), frames.max(axis=0)
        factor = (2 * 32767 / (high - low)).astype(">f4")
        offset = ((high + low) * 32767 / (high - low)).astype(">f4")
        stored = np.rint(frames * factor - offset).astype(">i2")
        data, count, width = factor.tobytes() + offset.tobytes() + stored.tobytes(), count + 4, 2 * frames.shape[1]
    kind |= (0o2000 if compressed else 0) | (0o10000 if checked else 0)
    return struct.pack(">iihh", count, period, width, kind) + data + (b"\x12\x34" if checked else b"")


def npy(folder: Path, frames: Frames) -> Path:
    for key, each in frames.items():
        (folder / key).parent.mkdir(exist_ok=True)
        np.save(folder / f"{key}.npy", each)
    return folder


def htk_folder(folder: Path, frames: Frames) -> Path:
    for key, each in frames.items():
        (folder / key).parent.mkdir(exist_ok=True)
        (folder / f"{key}.htk").write_bytes(htk(each))
    return folder


def npz(folder: Path, frames: Frames) -> Path:
    np.savez(folder / "f.npz", **frames)
    return folder / "f.npz"


def hdf5(folder: Path, frames: Frames) -> Path:
    with h5py.File(folder / "f.h5", "w") as file:
        for key, each in frames.items():
            file.create_dataset(key, data=each, compression="gzip")
    return folder / "f.h5"


def parquet(folder: Path, frames: Frames) -> Path:
    rows = {"doc_id": list(frames), "frames": [each.tolist() for each in frames.values()]}
    schema = pa.schema({"doc_id": pa.string(), "frames": pa.list_(pa.list_(pa.float32()))})
    pq.write_table(pa.table(rows, schema), folder / "f.parquet", row_group_size=2)
    return folder / "f.parquet"


def ark(folder: Path, frames: Frames) -> Path:
    write_ark(folder / "f.ark", frames)
    return folder / "f.ark"


def scp(folder: Path, frames: Frames) -> Path:
    write_ark(folder / "f.ark", frames, folder / "f.scp")
    return folder / "f.scp"


def ark_of_text(folder: Path, frames: Frames) -> Path:
    lines = {key: "\n".join("  " + " ".join(map(str, row)) for row in each.tolist()) for key, each in frames.items()}
    (folder / "f.ark").write_text("".join(f"{key}  [\n{rows} ]\n" for key, rows in lines.items()))
    return folder / "f.ark"


WRITERS = [npy, npz, htk_folder, hdf5, parquet, ark, scp, ark_of_text]


def read_all(path: Path | str, **options: Any) -> Frames:
    return {key: read_item(item, options.get("storage"))[0] for key, item in find_items(str(path), **options).items()}


def same(found: Frames, frames: Frames) -> bool:
    return found.keys() == frames.keys() and all(
        each.shape == frames[key].shape and np.array_equal(each.astype(np.float32), frames[key])
        for key, each in found.items()
    )


@pytest.mark.parametrize("write", WRITERS, ids=lambda one: one.__name__)
def test_a_round_trip(tmp_path: Path, frames: Frames, write: Callable[[Path, Frames], Path]) -> None:
    path = write(tmp_path, frames)
    assert same(read_all(path), frames)
    # In any order, and of a file that has changed since: rows of Parquet are read forward.
    items = find_items(str(path))
    for key in ("c/d", "a", "b", "a"):
        assert np.array_equal(read_item(items[key])[0].astype(np.float32), frames[key])
    write(tmp_path, {key: each + 1 for key, each in frames.items()})
    changed = find_items(str(path))
    assert all(changed[key].identity != items[key].identity for key in frames)
    assert np.array_equal(read_item(changed["a"])[0].astype(np.float32), frames["a"] + 1)


@pytest.mark.parametrize("write", WRITERS, ids=lambda one: one.__name__)
def test_s3(tmp_path: Path, frames: Frames, write: Callable[[Path, Frames], Path], s3: Any) -> None:
    path, place = write(tmp_path, frames), Folder(f"s3://{s3.bucket}/frames-{write.__name__}", s3.storage)
    for name in Folder(str(tmp_path)).listing():
        data = (tmp_path / name).read_bytes()
        place.write_bytes(name, data.replace(f"{tmp_path}/".encode(), b"") if name.endswith(".scp") else data)
    url = place.root if path.is_dir() else place.path(path.name)
    assert same(read_all(url, storage=s3.storage), frames)


@pytest.mark.parametrize("kind", ["CM", "CM2", "CM3"])
def test_compressed_archives(tmp_path: Path, kind: str) -> None:
    """As Kaldi defines them: steps of the span; of CM broken lines through four marks a column. What lies behind is found."""
    rng, rows, columns, least, span = np.random.default_rng(7), 50, 5, -3.5, 11.25
    head = b"\0B" + kind.encode() + b" " + struct.pack("<ffii", least, span, rows, columns)
    if kind == "CM":
        marks = np.sort(rng.integers(0, 65536, (columns, 4)), axis=1)
        codes = rng.integers(0, 256, (columns, rows))
        codes[0, :4] = 0, 64, 192, 255
        body = marks.astype("<u2").tobytes() + codes.astype("u1").tobytes()
        places = least + span * marks / 65535
        expected = np.stack([np.interp(one, [0, 64, 192, 255], at) for one, at in zip(codes, places, strict=True)], 1)
    else:
        most = 65535 if kind == "CM2" else 255
        codes = rng.integers(0, most + 1, (rows, columns))
        body = codes.astype("<u2" if kind == "CM2" else "u1").tobytes()
        expected = least + span * codes / most
    write_ark(tmp_path / "after.ark", {"z": np.ones((2, 5), np.float32)})
    (tmp_path / "f.ark").write_bytes(b"a " + head + body + (tmp_path / "after.ark").read_bytes())
    found = read_all(tmp_path / "f.ark")
    assert list(found) == ["a", "z"]
    assert found["a"].dtype == np.float32
    assert np.allclose(found["a"], expected, rtol=0, atol=3e-6)


def test_matrices_of_doubles_and_whole_numbers_in_text(tmp_path: Path) -> None:
    wide = {"a": np.arange(12, dtype=np.float64).reshape(4, 3), "b": np.ones((2, 3))}
    assert same(read_all(ark(tmp_path, wide)), wide)
    (tmp_path / "t.ark").write_text("a  [\n  0 0.5\n  1e-3 2 ]\nb  [ 3 4 ]\n")
    found = read_all(tmp_path / "t.ark")
    assert found["a"].tolist() == [[0, 0.5], [0.001, 2]]
    assert found["b"].tolist() == [[3, 4]]


def test_rows_of_a_matrix(tmp_path: Path, frames: Frames) -> None:
    scp(tmp_path, frames)
    line = (tmp_path / "f.scp").read_text().splitlines()[0]
    place = line.split()[1]
    (tmp_path / "rows.scp").write_text(f"{line}[2:5]\n\nbeyond\t{place}[30:40]\nafter {tmp_path}/f.ark:999999\n")
    items = find_items(str(tmp_path / "rows.scp"))
    assert np.array_equal(read_item(items["b"])[0], frames["b"][2:6])
    with raises(families.DAMAGED_FILE):
        read_item(items["beyond"])
    with raises(families.DAMAGED_FILE):
        read_item(items["after"])


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("compressed", [False, True])
def test_htk(tmp_path: Path, frames: Frames, compressed: bool, checked: bool) -> None:
    (tmp_path / "b.mfc").write_bytes(htk(frames["b"], 125_000, 6, compressed, checked))
    (item,) = find_items(str(tmp_path)).values()
    found, shift = read_item(item)
    assert found.dtype == np.float32
    assert np.abs(found - frames["b"]).max() < (1e-3 if compressed else 1e-9)
    assert shift == pytest.approx(0.0125)
    (tmp_path / "x.unknown").write_bytes(htk(frames["b"]))
    assert same(read_all(tmp_path / "x.unknown", form="htk"), {"x": frames["b"]})


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"short", r"\[damaged-file\]"),
        (htk(np.ones((3, 5)))[:-1], r"\[damaged-file\]"),
        (htk(np.ones((3, 5)), kind=0), r"\[wrong-kind\]"),
        (htk(np.ones((3, 5)), kind=10), r"\[wrong-kind\]"),
        (htk(np.ones((3, 5)), kind=0o40006), "_V"),
        (struct.pack("<iihh", 3, 100_000, 20, 6) + bytes(60), r"\[damaged-file\]"),
    ],
)
def test_htk_that_is_not_read(tmp_path: Path, data: bytes, told: str) -> None:
    (tmp_path / "a.htk").write_bytes(data)
    with pytest.raises(DataError, match=told) as error:
        read_all(tmp_path / "a.htk")
    assert error.value.where == str(tmp_path / "a.htk")


def test_channels_and_binary_frames_in_parquet(tmp_path: Path, frames: Frames) -> None:
    blobs = [each.astype("<f4").tobytes() for each in frames.values()]
    rows = {"doc_id": ["x", "x", "y"], "channel": [1, 2, 1], "frames": blobs}
    pq.write_table(pa.table(rows), tmp_path / "f.parquet")
    found = read_all(tmp_path / "f.parquet")
    assert list(found) == ["x-1", "x-2", "y"]
    assert np.array_equal(found["x-2"].reshape(-1, 5), frames["a"])


def refuse(folder: Path, frames: Frames, case: str) -> Path:
    """A place that is refused as a whole."""
    if case in ("truncated ark", "an ark cut in a header"):
        path = ark(folder, frames)
        path.write_bytes(path.read_bytes()[: -5 if case == "truncated ark" else -30])
    elif case == "a pickle":
        path = folder / "f.ark"
        path.write_bytes(b"a PKL" + b"\x80\x04N.")
    elif case == "a vector":
        path = ark(folder, {"a": np.ones(5, np.float32)})
    elif case == "a command":
        (path := folder / "f.scp").write_text("a sox x.wav -t wav - |\n")
    elif case == "a key twice":
        (path := folder / "f.scp").write_text(scp(folder, frames).read_text() * 2)
    elif case == "two formats":
        path = npz(npy(folder, frames), frames).parent
    elif case == "nothing":
        path = folder / "empty"
        path.mkdir()
    elif case == "gone":
        path = folder / "gone.npz"
    elif case == "an ending":
        (path := folder / "f.mat").write_bytes(b"?")
    elif case == "no zip":
        (path := folder / "f.npz").write_bytes(b"no zip")
    elif case == "no hdf5":
        (path := folder / "f.h5").write_bytes(b"no hdf5")
    elif case == "no parquet":
        (path := folder / "f.parquet").write_bytes(b"no parquet")
    elif case == "no column":
        pq.write_table(pa.table({"id": ["a"]}), path := folder / "f.parquet")
    else:
        pq.write_table(pa.table({"doc_id": ["a"], "frames": [1.0]}), path := folder / "f.parquet")
    return path


@pytest.mark.parametrize(
    ("case", "kind", "told"),
    [
        ("truncated ark", DataError, r"'c/d'.*\[damaged-file\]"),
        ("an ark cut in a header", DataError, r"'c/d'.*\[damaged-file\]"),
        ("a pickle", DataError, r"\[damaged-file\]"),
        ("a vector", DataError, r"'FV'.*\[wrong-kind\]"),
        ("a command", DataError, r"\[command-refused\]"),
        ("a key twice", DataError, r"'b'.*\[duplicate-name\]"),
        ("two formats", UserError, r"\[ambiguous\]"),
        ("nothing", UserError, r"\[ambiguous\]"),
        ("gone", UserError, r"\[missing-file\]"),
        ("an ending", UserError, r"\[unknown-name\]"),
        ("no zip", DataError, r"\[damaged-file\]"),
        ("no hdf5", DataError, r"\[damaged-file\]"),
        ("no parquet", DataError, r"\[damaged-file\]"),
        ("no column", TableError, r"\[missing-column\]"),
        ("a column of another type", TableError, r"\[bad-cell\]"),
    ],
)
def test_what_is_refused(tmp_path: Path, frames: Frames, case: str, kind: type[SwsdistError], told: str) -> None:
    path = refuse(tmp_path, frames, case)
    with pytest.raises(kind, match=told) as error:
        find_items(str(path))
    assert str(tmp_path) in str(error.value.where)
    assert error.value.remedy


def test_a_file_of_a_list_that_is_not_there(tmp_path: Path, frames: Frames) -> None:
    path = scp(tmp_path, frames)
    path.write_text(path.read_text() + "z gone.ark:7\n")
    items = find_items(str(path))
    assert items["z"].identity == "missing"
    assert items["z"].file == str(tmp_path / "gone.ark")
    assert np.array_equal(read_item(items["a"])[0], frames["a"])


def test_a_truncated_archive_behind_a_list(tmp_path: Path, frames: Frames) -> None:
    path = scp(tmp_path, frames)
    whole = (tmp_path / "f.ark").read_bytes()
    (tmp_path / "f.ark").write_bytes(whole[:-5])
    items = find_items(str(path))
    assert np.array_equal(read_item(items["a"])[0], frames["a"])
    with raises(families.DAMAGED_FILE):
        read_item(items["c/d"])


@pytest.mark.parametrize(("library", "extra", "write"), [("h5py", "hdf5", hdf5)])
def test_a_library_that_is_not_installed(
    tmp_path: Path,
    frames: Frames,
    monkeypatch: pytest.MonkeyPatch,
    library: str,
    extra: str,
    write: Callable[[Path, Frames], Path],
) -> None:
    """It is told before any work; archives of text need none."""
    path, text = write(tmp_path, frames), tmp_path / "text"
    text.mkdir()
    ark_of_text(text, frames)
    monkeypatch.setitem(sys.modules, library, None)
    with raises(families.NOT_INSTALLED) as error:
        find_items(str(path))
    assert error.value.remedy == f"pip install 'swsdist[{extra}]'"
    assert same(read_all(text / "f.ark"), frames)


def test_a_folder_of_another_form_than_is_said(tmp_path: Path) -> None:
    for name in ("a.npy", "b.npy", "notes.txt"):
        (tmp_path / name).write_bytes(b"")
    with raises(families.EMPTY_INPUT, form="htk") as caught:
        find_items(str(tmp_path), "htk")
    assert "the endings here: .npy (2), .txt (1)" in str(caught.value)


def test_several_arrays_under_the_name_of_one(tmp_path: Path, frames: Frames) -> None:
    path = npy(tmp_path, frames)
    folder = path if path.is_dir() else path.parent
    np.savez(tmp_path / "two.npz", **frames)
    one = sorted(folder.rglob("*.npy"))[0]
    one.write_bytes((tmp_path / "two.npz").read_bytes())
    items = find_items(str(folder), form="npy")
    with raises(families.DAMAGED_FILE):
        list(map(read_item, items.values()))
