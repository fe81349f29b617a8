"""Given frames are held against what the options say of them; what is wrong is told with file and key."""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.core.codes import storage as storage_codes
from swsdist.core.errors import FramesError, StorageError
from swsdist.features.external import External
from swsdist.features.extractors import create, from_recipe, identity, recipe, recipe_fingerprint, sources_of
from swsdist.features.interface import Extractor, Precomputed, frame_shift, frames_seconds
from swsdist.io.filesystem import Folder
from swsdist.io.frames import archive
from swsdist.store.writing import write_tracks
from swsdist.testing.conformance import check_precomputed
from tests.support.coded import raises


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


def test_it_is_right(tmp_path: Path) -> None:
    save(tmp_path, np.random.default_rng(1).normal(size=(9000, 3)))
    save(tmp_path, ONES, "q-1")
    check_precomputed(given(tmp_path))
    check_precomputed(given(tmp_path, length=0.025, kind="logits", what="net 3"), queries=True)
    assert not isinstance(given(tmp_path), Extractor)


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


def test_frames_that_are_not_as_stated(tmp_path: Path) -> None:
    posteriors, one_nan = {"kind": "posteriors"}, np.where(np.arange(5000)[:, None] == 4200, np.nan, np.ones((5000, 3)))
    negative = np.array([[1, 0, 0], [1.5, -0.5, 0]])
    for frames, options, code, values in (
        (np.ones((100, 4)), {}, families.WRONG_DIMENSION, {"shape": "100 x 4", "dimension": 3}),
        (np.ones((3, 100)), {}, families.WRONG_DIMENSION, {"shape": "3 x 100"}),
        (np.ones(300), {}, families.WRONG_DIMENSION, {"shape": "300"}),
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


def test_durations_and_shifts_that_fit_or_not(tmp_path: Path) -> None:
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


def test_where_they_lie_is_no_part_of_what_they_are(tmp_path: Path) -> None:
    save(tmp_path, ONES)
    one, other = given(tmp_path, what="x"), given(tmp_path / "..", form="npy", what="x")
    assert identity(one) == identity(other)
    assert recipe(one) != recipe(other)
    assert recipe_fingerprint(recipe(one)) == recipe_fingerprint(recipe(other))
    assert from_recipe(recipe(one)) == one
    for options in ({"what": "y"}, {"shift": 0.02}, {"dimension": 4}, {"kind": "logits"}, {"tolerance": 1.0}):
        assert identity(given(tmp_path, **{"what": "x", **options})) != identity(one)


def test_two_tracks_say_what_they_are() -> None:
    def section(track: str, **options: Any) -> Any:
        given = {"path": "x", "shift": 0.01, "dimension": 3, **options}
        return SimpleNamespace(name="external", transforms=(), dtype="float32", track=track, options=given)

    with raises(families.DUPLICATE_NAME, name="external"):
        sources_of([section("one"), section("two", path="y")])
    assert len(sources_of([section("one", what="layer 6"), section("two", path="y", what="layer 9")])) == 2


# -- what is no fault of the frames -----------------------------------------------------------------------------------


def planned(folder: Path) -> dict[str, Any]:
    """The row of a document as a task is given it."""
    one = given(folder)
    item = one.items(False, {})["a"]
    row = {"doc_id": "a", "channel": 1, "path": "", "speaker": None, "duration": None}
    return {**row, "key": "a", "item": list(item), "identity": item.identity}


def test_what_is_gone_since_the_plan_is_not_rejected(tmp_path: Path) -> None:
    row, store = planned(save(tmp_path, ONES)), Folder(str(tmp_path / "store"))
    (tmp_path / "a.npy").unlink()
    with pytest.raises(FileNotFoundError):
        write_tracks(store, "fp", [row], given(tmp_path))


def test_a_server_that_does_not_answer_rejects_nothing(tmp_path: Path) -> None:
    row = planned(save(tmp_path, ONES))
    row["item"][1] = "s3://bucket/a.npy"
    with socket.socket() as port:  # bound, and nobody listens
        port.bind(("127.0.0.1", 0))
        config = {"retries": {"max_attempts": 1}, "connect_timeout": 1}
        storage = {"endpoint_url": f"http://127.0.0.1:{port.getsockname()[1]}", "key": "k", "secret": "s"}
        store = Folder(str(tmp_path / "store"), {**storage, "config_kwargs": config})
        with pytest.raises(StorageError):
            write_tracks(store, "fp", [row], given(tmp_path))


def test_what_may_not_be_read_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = planned(save(tmp_path, ONES))

    def refuse(path: str, *_: Any) -> Any:
        raise storage_codes.S3_ACCESS_DENIED(where=path, detail="")

    monkeypatch.setattr(archive, "identify", refuse)
    (made,) = write_tracks(Folder(str(tmp_path / "store")), "fp", [row], given(tmp_path))
    rejected = [(bad["reason"], bad["remedy"]) for bad in made.rejected.to_pylist()]
    assert rejected == [(codes.UNREADABLE_FRAMES.name, storage_codes.S3_ACCESS_DENIED.remedy)]
