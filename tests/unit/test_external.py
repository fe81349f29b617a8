"""Frames of other programs: read back, held against what is said of them, damaged, or larger than they say."""

import io
import struct
import zipfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from archives import write_ark

from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.core.errors import DataError, FramesError
from swsdist.features.external import External
from swsdist.features.extractors import create, from_recipe, identity, recipe, recipe_fingerprint, sources_of
from swsdist.features.fitting.files import read_totals
from swsdist.features.fitting.interface import Model, load_model
from swsdist.features.interface import Extractor, Precomputed, frame_shift, frames_seconds
from swsdist.io.filesystem import Folder
from swsdist.io.frames import hdf5 as hdf5_files
from swsdist.io.frames import numpy_files
from swsdist.io.frames.archive import find_items, read_item
from swsdist.testing.conformance import check_precomputed
from tests.support.coded import raises

Frames = dict[str, np.ndarray]


@pytest.fixture
def frames() -> Frames:
    """Frames of three keys, 5 numbers each."""
    rng = np.random.default_rng(3)
    return {key: rng.normal(size=(count, 5)).astype(np.float32) for key, count in (("b", 40), ("a", 7), ("c/d", 1))}


def htk(frames: np.ndarray, period: int = 100_000, kind: int = 6, packed: bool = False, checked: bool = False) -> bytes:
    """A parameter file as the HTK Book describes it."""
    data, count, width = frames.astype(">f4").tobytes(), len(frames), 4 * frames.shape[1]
    if packed:
        low, high = frames.min(axis=0), frames.max(axis=0)
        factor = (2 * 32767 / (high - low)).astype(">f4")
        offset = ((high + low) * 32767 / (high - low)).astype(">f4")
        stored = np.rint(frames * factor - offset).astype(">i2")
        data, count, width = factor.tobytes() + offset.tobytes() + stored.tobytes(), count + 4, 2 * frames.shape[1]
    kind |= (0o2000 if packed else 0) | (0o10000 if checked else 0)
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
def test_a_round_trip(tmp_path: Path, frames: Frames, write: Callable[[Path, Frames], Path], s3: Any) -> None:
    path, place = write(tmp_path, frames), Folder(f"s3://{s3.bucket}/frames-{write.__name__}", s3.storage)
    assert same(read_all(path), frames)
    for name in Folder(str(tmp_path)).listing():
        data = (tmp_path / name).read_bytes()
        place.write_bytes(name, data.replace(f"{tmp_path}/".encode(), b"") if name.endswith(".scp") else data)
    url = place.root if path.is_dir() else place.path(path.name)
    assert same(read_all(url, storage=s3.storage), frames)
    # In any order, and of a file that has changed since: rows of Parquet are read forward.
    items = find_items(str(path))
    for key in ("c/d", "a", "b", "a"):
        assert np.array_equal(read_item(items[key])[0].astype(np.float32), frames[key])
    write(tmp_path, {key: each + 1 for key, each in frames.items()})
    changed = find_items(str(path))
    assert all(changed[key].identity != items[key].identity for key in frames)
    assert np.array_equal(read_item(changed["a"])[0].astype(np.float32), frames["a"] + 1)


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


def test_htk_rows_and_channels_of_frames(tmp_path: Path, frames: Frames) -> None:
    for compressed, checked in product((False, True), repeat=2):
        (tmp_path / "b.mfc").write_bytes(htk(frames["b"], 125_000, 6, compressed, checked))
        found, shift = read_item(find_items(str(tmp_path))["b"])
        assert found.dtype == np.float32
        assert np.abs(found - frames["b"]).max() < (1e-3 if compressed else 1e-9)
        assert shift == pytest.approx(0.0125)
    (tmp_path / "x.unknown").write_bytes(htk(frames["b"]))
    assert same(read_all(tmp_path / "x.unknown", form="htk"), {"x": frames["b"]})
    ones = np.ones((3, 5))
    for data, code in (
        (b"short", families.DAMAGED_FILE),
        (htk(ones)[:-1], families.DAMAGED_FILE),
        (htk(ones, kind=0), families.WRONG_KIND),
        (htk(ones, kind=10), families.WRONG_KIND),
        (htk(ones, kind=0o40006), None),  # _V
        (struct.pack("<iihh", 3, 100_000, 20, 6) + bytes(60), families.DAMAGED_FILE),
    ):
        (tmp_path / "a.htk").write_bytes(data)
        with pytest.raises(DataError) as error:
            read_all(tmp_path / "a.htk")
        assert error.value.where == str(tmp_path / "a.htk")
        assert code is None or error.value.code == code.name
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
    blobs = [each.astype("<f4").tobytes() for each in frames.values()]
    rows = {"doc_id": ["x", "x", "y"], "channel": [1, 2, 1], "frames": blobs}
    pq.write_table(pa.table(rows), tmp_path / "f.parquet")
    found = read_all(tmp_path / "f.parquet")
    assert list(found) == ["x-1", "x-2", "y"]
    assert np.array_equal(found["x-2"].reshape(-1, 5), frames["a"])


def test_what_is_refused(tmp_path: Path, frames: Frames) -> None:
    def put(name: str, content: bytes | str = b"?") -> Path:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path / name

    def table(name: str, **columns: list[Any]) -> Path:
        pq.write_table(pa.table(columns), tmp_path / name)
        return tmp_path / name

    listed, vector, both = scp(tmp_path, frames), tmp_path / "vector", tmp_path / "both"
    whole, empty = (tmp_path / "f.ark").read_bytes(), tmp_path / "empty"
    for folder in (vector, both, empty):
        folder.mkdir()
    npz(npy(both, frames), frames)
    for path, code in (
        (put("cut.ark", whole[:-5]), families.DAMAGED_FILE),
        (put("pickle.ark", b"a PKL" + b"\x80\x04N."), families.DAMAGED_FILE),
        (ark(vector, {"a": np.ones(5, np.float32)}), families.WRONG_KIND),
        (put("command.scp", "a sox x.wav -t wav - |\n"), families.COMMAND_REFUSED),
        (put("twice.scp", listed.read_text() * 2), families.DUPLICATE_NAME),
        (both, families.AMBIGUOUS),
        (empty, families.AMBIGUOUS),
        (tmp_path / "gone.npz", families.MISSING_FILE),
        (put("f.mat"), families.UNKNOWN_NAME),
        (put("f.npz"), families.DAMAGED_FILE),
        (table("column.parquet", id=["a"]), families.MISSING_COLUMN),
        (table("type.parquet", doc_id=["a"], frames=[1.0]), families.BAD_CELL),
    ):
        with raises(code, where=str(tmp_path)):
            find_items(str(path))


def test_a_list_or_folder_of_what_is_not_there_or_cut_off(tmp_path: Path, frames: Frames) -> None:
    path = scp(tmp_path, frames)
    path.write_text(path.read_text() + "z gone.ark:7\n")
    whole = (tmp_path / "f.ark").read_bytes()
    (tmp_path / "f.ark").write_bytes(whole[:-5])
    items = find_items(str(path))
    assert (items["z"].identity, items["z"].file) == ("missing", str(tmp_path / "gone.ark"))
    assert np.array_equal(read_item(items["a"])[0], frames["a"])
    with raises(families.DAMAGED_FILE):
        read_item(items["c/d"])
    for name in ("a.npy", "b.npy", "notes.txt"):
        (tmp_path / name).write_bytes(b"")
    with raises(families.EMPTY_INPUT, form="htk"):
        find_items(str(tmp_path), "htk")
    npz(tmp_path, frames).rename(tmp_path / "a.npy")  # several arrays under the name of one
    with raises(families.DAMAGED_FILE):
        read_item(find_items(str(tmp_path), form="npy")["a"])


def given(folder: Path, **options: Any) -> Precomputed:
    made = create("external", {"path": str(folder), "shift": 0.01, "dimension": 3, **options})
    assert isinstance(made, Precomputed)
    return made


def read(folder: Path, seconds: float | None = None, key: str = "a", **options: Any) -> np.ndarray:
    one = given(folder, **options)
    return np.concatenate(list(one.read(one.items(False, {})[key], key, {}, seconds)))


def save(folder: Path, frames: Any, key: str = "a") -> Path:
    np.save(folder / f"{key}.npy", frames)
    return folder


ONES = np.ones((100, 3), np.float32)


def test_frames_are_right_and_known_by_what_they_are(tmp_path: Path) -> None:
    save(tmp_path, np.random.default_rng(1).normal(size=(9000, 3)))
    save(tmp_path, ONES, "q-1")
    check_precomputed(given(tmp_path))
    check_precomputed(given(tmp_path, length=0.025, kind="logits", what="net 3"), queries=True)
    assert not isinstance(given(tmp_path), Extractor)
    save(tmp_path, ONES)
    one, other = given(tmp_path, what="x"), given(tmp_path / "..", form="npy", what="x")
    assert identity(one) == identity(other)
    assert recipe(one) != recipe(other)
    assert recipe_fingerprint(recipe(one)) == recipe_fingerprint(recipe(other))
    assert from_recipe(recipe(one)) == one
    for options in ({"what": "y"}, {"shift": 0.02}, {"dimension": 4}, {"kind": "logits"}, {"tolerance": 1.0}):
        assert identity(given(tmp_path, **{"what": "x", **options})) != identity(one)

    def section(track: str, **options: Any) -> Any:
        given = {"path": "x", "shift": 0.01, "dimension": 3, **options}
        return SimpleNamespace(name="external", transforms=(), dtype="float32", track=track, options=given)

    with raises(families.DUPLICATE_NAME, name="external"):
        sources_of([section("one"), section("two", path="y")])
    assert len(sources_of([section("one", what="layer 6"), section("two", path="y", what="layer 9")])) == 2


def test_shift_and_length_are_exact() -> None:
    for shift, length, ticks in (
        (0.01, None, (100, 1, 1)),
        (0.01, 0.025, (200, 5, 2)),
        ("256/22050", None, (11025, 128, 128)),
        (0.02, 0.025, (200, 5, 4)),
    ):
        one = External(path="x", shift=shift, length=length, dimension=1)
        assert (one.sample_rate, one.frame_length, one.hop) == ticks
    one, mfcc = External(path="x", shift=0.01, length=0.032, dimension=39), create("mfcc", {})
    assert frame_shift(one) == frame_shift(mfcc)
    assert frames_seconds(one, 73) == frames_seconds(mfcc, 73)
    for shift in (0, -0.01, "x", "1/0", 5000):
        with raises(families.INVALID_VALUE, where="features.options.shift"):
            create("external", {"path": "x", "shift": shift, "dimension": 1})
    # pydantic calls what is missing `missing`, which is also the name of a code.
    with raises(codes.INVALID_FEATURE_OPTION, where="features.options.path", name="external"):
        create("external", {})


def test_frames_durations_and_shifts_that_are_not_as_stated(tmp_path: Path) -> None:
    posteriors, one_nan = {"kind": "posteriors"}, np.where(np.arange(5000)[:, None] == 4200, np.nan, np.ones((5000, 3)))
    negative = np.array([[1, 0, 0], [1.5, -0.5, 0]])
    for frames, options, code, values in (
        (np.ones((100, 4)), {}, families.WRONG_DIMENSION, {"shape": "100 x 4", "dimension": 3}),
        (np.ones((0, 3)), {}, families.NO_FRAMES, {}),
        (np.ones((9, 3), complex), {}, codes.FRAMES_NOT_REAL, {"dtype": "complex128"}),
        (one_nan, {}, codes.NON_FINITE_FRAMES, {"frame": 4200}),
        (np.full((5, 3), -np.inf), {"kind": "logits"}, codes.NON_FINITE_FRAMES, {"frame": 0, "value": -np.inf}),
        (np.full((5, 3), 1e39), {}, codes.NON_FINITE_FRAMES, {"frame": 0, "value": np.inf}),
        (np.full((5, 3), 0.2), posteriors, codes.FRAMES_NOT_POSTERIORS, {"frame": 0, "problem": "its sum is 0.6"}),
        (negative, posteriors, codes.FRAMES_NOT_POSTERIORS, {"frame": 1, "problem": "it contains -0.5"}),
    ):
        save(tmp_path, frames)
        with raises(code, key="a", **values) as error:
            read(tmp_path, **options)
        assert (type(error.value), error.value.where) == (FramesError, str(tmp_path / "a.npy"))
    # All zero says nothing at all; the distances take it so.
    frames = np.array([[0.5, 0.25, 0.25], [0, 0, 0], [1, 0, 0.005]], np.float32)
    assert np.array_equal(read(save(tmp_path, frames), kind="posteriors"), frames)
    save(tmp_path, ONES)
    for seconds, options in (*((s, {}) for s in (1.0, 1.24, 0.76, 1.015)), (1.19 + 0.25, {"length": 0.2})):
        assert len(read(tmp_path, seconds, **options)) == 100
    odd = {"tolerance": 0.001, "shift": 0.005}
    for seconds, options in (*((s, {}) for s in (1.3, 0.7, 2.0)), (1.02, odd), (1.2 + 0.25, {"length": 0.2})):
        with raises(codes.WRONG_DURATION, count=100, duration=seconds):
            read(tmp_path, seconds, **options)
    (tmp_path / "a.npy").unlink()
    (tmp_path / "a.htk").write_bytes(struct.pack(">iihh", 100, 125_000, 12, 6) + ONES.astype(">f4").tobytes())
    with raises(codes.WRONG_SHIFT, shift=0.01):
        read(tmp_path)
    assert len(read(tmp_path, shift=0.0125)) == 100


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


def test_given_frames_and_models_that_lie(tmp_path: Path, s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
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
    Model("m", 1, {"x": np.ones(3)}, {}).save(Folder(str(tmp_path)), "m.npz")
    members = {"x.npy": lying((MANY,))}
    with zipfile.ZipFile(tmp_path / "m.npz") as archive:
        members |= {name: archive.read(name) for name in archive.namelist() if name != "x.npy"}
    packed(tmp_path / "m.npz", members)
    with pytest.raises(DataError, match="by its header"):
        load_model(Folder(str(tmp_path)), "m.npz")
    with (tmp_path / "m.npz").open("rb") as file, pytest.raises(ValueError, match="by its header"):
        read_totals(file)
    # Zeros: a thousand to one; with the bound taken down from 256 MiB to 1 MiB.
    frames = np.zeros((1 << 16, 8), "f4")
    np.savez_compressed(tmp_path / "x.npz", a=frames)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("a", data=frames, compression="gzip")
    for name in ("x.npz", "x.h5"):
        assert np.array_equal(read_item(find_items(str(tmp_path / name))["a"])[0], frames)
    monkeypatch.setattr(numpy_files, "_FREE", 1 << 20)
    monkeypatch.setattr(hdf5_files, "_FREE", 1 << 20)
    for name in ("x.npz", "x.h5"):
        (tmp_path / name).rename(tmp_path / f"again-{name}")  # it is not open
        with pytest.raises(DataError, match="unpacked"):
            read_item(find_items(str(tmp_path / f"again-{name}"))["a"])
