"""Feature warping: ranks by hand, against a plain definition, and the same however a recording is cut."""

from __future__ import annotations

from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.features.blocks import in_blocks
from swsdist.features.extractors import create
from swsdist.features.fitting.interface import Document, Model, fit
from swsdist.features.interface import Extractor, surroundings
from swsdist.features.transforms.interface import Shape
from swsdist.features.transforms.mean_variance import Warp
from swsdist.io.filesystem import Folder
from tests.support.coded import raises

NORMAL = NormalDist()


def fitted(place: Path, mean: list[float], deviation: list[float], **options: Any) -> Warp:
    Model("warp", 1, {"mean": np.array(mean), "deviation": np.array(deviation)}).save(Folder(str(place)), "warp.npz")
    return Warp(model=str(place / "warp.npz"), **options)


def column(warp: Warp, values: list[float]) -> list[float]:
    found: list[float] = warp.apply(np.array(values, np.float32)[:, None])[:, 0].tolist()
    return found


@settings(max_examples=40, deadline=None)
@given(values=st.lists(st.integers(-3, 3), min_size=1, max_size=40), half=st.integers(1, 9))
def test_is_its_definition(tmp_path_factory: pytest.TempPathFactory, values: list[int], half: int) -> None:
    """By ranks in the window (equal ones have their mean), filled up with the corpus where a window lacks frames."""
    warp = fitted(tmp_path_factory.mktemp("warp"), [0.5], [2.0], frames=2 * half + 1)
    expected = []
    for t, x in enumerate(values):
        window = values[max(0, t - half) : t + half + 1]
        below = sum(u < x for u in window) + sum(u == x for u in window) / 2
        corpus = (warp.frames - len(window)) * NORMAL.cdf((x - 0.5) / 2)
        expected.append(NORMAL.inv_cdf((below + corpus) / warp.frames))
    assert column(warp, [float(x) for x in values]) == pytest.approx(expected, abs=1e-5)
    assert np.isfinite(column(warp, [1e30, -1e30])).all()


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    model = fit(Warp().rounds(), [Document([np.array([[-1, 2], [3, 2]], np.float32)])])
    assert {name: model.arrays[name].tolist() for name in ("mean", "deviation")} == {
        "mean": [1, 2],
        "deviation": [2, 1],
    }
    with raises(codes.MODEL_NOT_FITTED):
        Warp().apply(np.zeros((1, 1), np.float32))
    with raises(families.MISMATCH, expected=2, columns=3):
        fitted(tmp_path, [0, 0], [1, 1]).becomes(Shape(("a", "b", "c"), "features"))
    with raises(codes.WRONG_MODEL, wanted="a mean and deviation of columns"):
        fitted(tmp_path, [0, 0], [1, 0]).becomes(Shape(("a", "b"), "features"))
    with raises(families.INVALID_VALUE):
        create("mfcc", {}, transforms=[("warp", {"frames": 300})])


@pytest.fixture
def warped(tmp_path: Path) -> Extractor:
    """MFCC, warped."""
    path = fitted(tmp_path, [0.0] * 39, [20.0] * 39).model
    made = create("mfcc", {}, transforms=[("warp", {"model": path})])
    assert isinstance(made, Extractor)
    return made


def test_a_place_in_a_document_has_the_document_s_frames(warped: Extractor) -> None:
    assert (warped.context, surroundings(warped)) == (4 + 150, 154)
    rng = np.random.default_rng(3)
    samples = (rng.normal(size=160 * 9000) * np.linspace(0.01, 0.3, 160 * 9000)).astype(np.float32)
    whole = np.concatenate(list(in_blocks(warped, [samples])))
    for piece in (7_001, 300_000):
        parts = [samples[k : k + piece] for k in range(0, len(samples), piece)]
        assert np.concatenate(list(in_blocks(warped, parts))).tobytes() == whole.tobytes()
    # Of a place the audio around it is read as far as its frames look, here over the seam of two blocks.
    first, count, around = 4080, 45, surroundings(warped)
    cut = samples[(first - around) * 160 : (first + count + around) * 160 + warped.frame_length]
    place = np.concatenate(list(in_blocks(warped, [cut])))[around : around + count]
    np.testing.assert_allclose(place, whole[first : first + count], atol=1e-6)
