"""Expectation and maximisation in whole numbers: as plain floating-point EM has it, and the same on any cut."""

from __future__ import annotations

import hashlib
import io
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.features.fitting.files import read_totals, summed, write_totals
from swsdist.features.fitting.interface import Document, fit
from swsdist.features.fitting.mixture import Mixture, MixtureRounds, mixture_model, split
from swsdist.features.transforms.gmm import Gmm
from swsdist.features.transforms.interface import Shape
from swsdist.io.filesystem import Folder
from tests.support.coded import raises

RNG = np.random.default_rng(7)
CENTRES = RNG.normal(0, 30, (4, 3)) + 100
DOCUMENTS = [
    Document([(CENTRES[RNG.integers(0, 4, 60 + 31 * k)] + RNG.normal(0, 4 + k, (60 + 31 * k, 3))).astype(np.float32)])
    for k in range(5)
]
FRAMES = np.concatenate([block for document in DOCUMENTS for block in document.blocks]).astype(np.float64)


def logarithms(frames: np.ndarray, weights: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """The definition: ln of weight times density, (frames, components)."""
    away = frames[:, None, :] - means[None]
    densities = -0.5 * (away**2 / variances + np.log(2 * np.pi * variances)).sum(axis=2)
    return np.log(weights) + densities


def up_or_down(components: int, component: int, column: int) -> int:
    digest = hashlib.blake2b(f"{components}.{component}.{column}".encode(), digest_size=1).digest()
    return 1 if digest[0] % 2 else -1


def plain(frames: np.ndarray, components: int, iterations: int, least: float) -> tuple[list[float], np.ndarray]:
    """The same EM in floating point, in deviations from the mean: likelihoods, and means in units of the frames."""
    mean, deviation = frames.mean(axis=0), frames.std(axis=0)
    x = (frames - mean) / deviation
    weights, means, variances = np.ones(1), np.zeros((1, 3)), np.ones((1, 3))
    likelihoods = []
    while len(weights) < components:
        chosen = np.argsort(-weights, kind="stable")[: components - len(weights)]
        signs = [[up_or_down(len(weights), k, column) for column in range(3)] for k in chosen]
        away = 0.2 * np.array(signs) * np.sqrt(variances[chosen])
        weights[chosen] /= 2
        means = np.concatenate([means, means[chosen] + away])
        means[chosen] -= away
        weights = np.concatenate([weights, weights[chosen]])
        variances = np.concatenate([variances, variances[chosen]])
        for _ in range(2 if len(weights) < components else iterations):
            known = logarithms(x, weights, means, variances)
            total = np.logaddexp.reduce(known, axis=1, keepdims=True)
            likelihoods.append(float(total.mean()))
            posteriors = np.exp(known - total)
            counts = posteriors.sum(axis=0)
            weights, means = counts / len(x), (posteriors.T @ x) / counts[:, None]
            variances = np.maximum((posteriors.T @ x**2) / counts[:, None] - means**2, least)
    return likelihoods, means * deviation + mean


@pytest.mark.parametrize("components", [2, 3, 4, 8])
def test_as_plain_expectation_and_maximisation(components: int) -> None:
    model = fit(MixtureRounds(components, 6, 0.01), DOCUMENTS)
    likelihoods, means = plain(FRAMES, components, 6, 0.01)
    assert model.settings["likelihoods"] == pytest.approx(likelihoods, abs=2e-3)
    found = model.arrays["means"] * model.arrays["deviation"] + model.arrays["mean"]
    assert np.abs(found - means).max() < 0.2
    assert np.all(np.diff(likelihoods[-6:]) >= 0)
    assert model.arrays["weights"].sum() == pytest.approx(1)


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(5)), st.lists(st.integers(1, 150), max_size=6), st.integers(1, 40))
def test_any_cut_gives_the_same_model(order: list[int], borders: list[int], rows: int) -> None:
    """Documents in any order and in tasks of any size, frames in any blocks, totals over files."""
    rounds = MixtureRounds(5, 3, 0.01)
    expected = fit(rounds, DOCUMENTS).fingerprint
    known = None
    for _ in range(100):
        several = []
        for k in order:
            (block,) = DOCUMENTS[k].blocks
            # Sums of the first round are taken by document, so its blocks stay as they are.
            cut = [block[first : first + rows] for first in range(0, len(block), rows)] if known else [block]
            several.append(rounds.totals(known, Document(cut)))
        places = sorted({0, len(several), *(border % 5 for border in borders)})
        parts = [summed(several[first:last]) for first, last in pairwise(places)]
        known, done = rounds.go_on(known, summed(map(through_a_file, parts)))
        if done:
            break
    assert done
    assert known.fingerprint == expected


def through_a_file(totals: dict) -> dict:
    out = io.BytesIO()
    write_totals(out, totals)
    out.seek(0)
    return read_totals(out)


def test_a_frames_posteriors_are_its_own_and_those_of_the_definition(tmp_path: Path) -> None:
    fitted = fit(MixtureRounds(8, 2, 0.01), DOCUMENTS)
    fitted.save(Folder(str(tmp_path)), "m.npz")
    made, frames = partial(Gmm, components=8, model=str(tmp_path / "m.npz")), FRAMES.astype(np.float32)
    whole = made().apply(frames)
    for first, last in ((0, 1), (5, 9), (100, 331)):
        assert made().apply(frames[first:last]).tobytes() == whole[first:last].tobytes()
    model = Mixture.of(fitted)
    known = logarithms((FRAMES - model.mean) / model.deviation, model.weights, model.means, model.variances)
    exact = np.exp(known - np.logaddexp.reduce(known, axis=1, keepdims=True))
    assert np.abs(whole - exact).max() < 0.005
    kept = made(keep=2, floor=0).apply(frames)
    assert ((kept > 0).sum(axis=1) <= 2).all()
    for posteriors in (whole, kept):
        assert posteriors.sum(axis=1) == pytest.approx(np.ones(len(frames)), abs=1e-5)
    logits = made(values="logits").apply(frames)
    assert logits == pytest.approx(np.log(whole) - np.log(whole).mean(axis=1, keepdims=True), abs=1e-3)


def test_from_elsewhere(tmp_path: Path) -> None:
    """A mixture in the units of the features: of a library, or of another corpus."""
    weights, variances = np.array([0.1, 0.2, 0.3, 0.4]), RNG.uniform(20, 90, (4, 3))
    mixture_model(weights, CENTRES, variances).save(Folder(str(tmp_path)), "m.npz")
    known = logarithms(FRAMES, weights, CENTRES, variances)
    exact = np.exp(known - np.logaddexp.reduce(known, axis=1, keepdims=True))
    made = Gmm(components=4, model=str(tmp_path / "m.npz"))
    assert made.becomes(Shape(tuple("abc"), "features")) == Shape(("g0", "g1", "g2", "g3"), "posteriors")
    assert np.abs(made.apply(FRAMES.astype(np.float32)) - exact).max() < 0.005
    with raises(families.MISMATCH, expected=3, columns=2):
        made.becomes(Shape(tuple("ab"), "features"))
    with pytest.raises(ValueError, match="above 0"):
        mixture_model(weights, CENTRES, -variances)


@pytest.mark.parametrize("frames", [1, 9, 30, 300])
def test_a_number_that_nobody_chose_is_as_many_as_frames_allow(tmp_path: Path, frames: int) -> None:
    document = Document([FRAMES[:frames].astype(np.float32)])
    made = fit(Gmm(iterations=1).rounds(), [document])
    made.save(Folder(str(tmp_path)), "m.npz")
    count = min(128, max(1, frames // 8))
    held = Gmm(model=str(tmp_path / "m.npz"))
    assert len(held.becomes(Shape(tuple("abc"), "features")).columns) == count
    assert held.apply(document.blocks[0]).shape == (frames, count)
    with raises(families.NOTHING_TO_FIT, components=128):
        fit(Gmm(components=128).rounds(), [document])
    with raises(families.NOTHING_TO_FIT):
        fit(MixtureRounds(5, 2, 0.01), [])
    with raises(codes.MODEL_NOT_FITTED):
        Gmm().apply(np.zeros((1, 3), np.float32))
    (tmp_path / "bad.npz").write_bytes(b"no")
    with raises(families.UNUSABLE_MODEL):
        Gmm(model=str(tmp_path / "bad.npz")).becomes(Shape(tuple("abc"), "features"))


def test_one_component_and_splits_of_some() -> None:
    model = fit(MixtureRounds(1, 2, 0.01), DOCUMENTS)
    assert model.arrays["weights"].tolist() == [1.0]
    three = split(split(Mixture.of(model), 2), 3)
    assert three.weights.tolist() == [0.25, 0.5, 0.25]
    assert (three.weights[:, None] * three.means).sum(axis=0) == pytest.approx(np.zeros(3), abs=1e-12)
