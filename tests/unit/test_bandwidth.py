"""How high a recording's sound reaches, and the band that a collection has in common."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import soxr

from swsdist.audio.speech import Bandwidth, levels
from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.features.extractors import create, identity, recipe_fingerprint
from swsdist.features.fitting.interface import BandRounds, Document, Learning, Model, fit
from swsdist.features.interface import Extractor
from swsdist.features.mfcc import Mfcc
from swsdist.io.filesystem import Folder
from swsdist.methods.query.speech_trimming import reach
from swsdist.testing.conformance import check_extractor
from tests.support.coded import raises

RATE = 16000


def heard(samples: np.ndarray, rate: int = RATE, pieces: int = 1) -> float | None:
    found = Bandwidth(rate)
    for part in np.array_split(samples.astype(np.float32), pieces):
        found.add(levels(part, rate))
    return found.hz


def test_what_came_through_a_lower_rate_is_narrow_and_one_in_twenty_chooses() -> None:
    speech = bursts()
    for rate, hz in ((8000, 4000.0), (10000, 5000.0), (12000, 6000.0)):
        coded = through(speech, rate)
        assert heard(coded) == heard(0.01 * coded) == heard(hissing(coded, 50)) == hz
    assert heard(speech, pieces=7) == heard(speech) == RATE / 2
    assert [heard(soxr.resample(speech, RATE, rate), rate) for rate in (8000, 6000)] == [4000.0, 3000.0]
    assert heard(np.zeros(RATE)) is heard(np.zeros(10)) is None
    wide, narrow = bursts(), through(bursts(), 8000)
    assert all(map(is_narrow, (narrow, 0.05 * narrow, hissing(narrow, 50))))
    # The last is next to nothing to be heard.
    assert not any(map(is_narrow, (wide, hissing(narrow, 20), through(wide, 12000), 1e-4 * narrow)))
    assert not is_narrow(bursts(rate=8000), 8000)  # it has what the rate allows
    assert is_narrow(soxr.resample(narrow, RATE, 44100), 44100)
    assert not is_narrow(bursts(rate=44100), 44100)
    wide, narrow = document(bursts()), document(through(bursts(), 8000))
    rounds = Mfcc(fmax="common").rounds()
    one = fit(rounds, [narrow] + 19 * [wide])
    two = fit(rounds, 2 * [narrow] + 19 * [wide])
    assert [model.settings["fmax"] for model in (one, two)] == [None, 3700.0]
    # Collections that choose alike have the same model, whatever the order or the blocks.
    cut = narrow._replace(blocks=[narrow.blocks[0][first:last] for first, last in pairwise([0, 7, 40, None])])
    assert fit(rounds, [wide, cut]).to_bytes() == two.to_bytes()
    assert fit(rounds, [wide]).to_bytes() == one.to_bytes()
    # Stores that are there keep their names.
    assert recipe_fingerprint(identity(Mfcc())) == "b69225cbd6d6d58e169a839fc8f2f0f8"
    assert recipe_fingerprint(identity(Mfcc(fmax=3700))) == "d6f5830cd779b208197c27598c24e31f"
    assert recipe_fingerprint(identity(create("mfcc-fingerprint", {}))) == "64dda1cdf5275c02ebd2b25f2edf45bc"
    assert not Mfcc().learns
    assert not Mfcc(fmax=3700).learns


def bursts(seed: int = 1, rate: int = RATE) -> np.ndarray:
    """White noise in bursts: a spectrum up to half the rate, and pauses."""
    random, length = np.random.default_rng(seed), rate // 5
    parts = [part for _ in range(10) for part in (random.normal(0, 0.1, length), random.normal(0, 1e-5, length))]
    return np.concatenate(parts).astype(np.float32)


def through(sound: np.ndarray, rate: int) -> np.ndarray:
    """With the noise of 16 bits."""
    made = soxr.resample(soxr.resample(sound, RATE, rate), rate, RATE)
    return (np.round(made * 32767) / 32767).astype(np.float32)


def hissing(sound: np.ndarray, decibels: float) -> np.ndarray:
    level = np.sqrt((sound**2).mean()) * 10 ** (-decibels / 20)
    return sound + np.random.default_rng(2).normal(0, level, len(sound)).astype(np.float32)


def document(sound: np.ndarray, rate: int = RATE) -> Document:
    extractor = create("mfcc", Mfcc(sample_rate=rate, fmax="common").learns_from())
    assert isinstance(extractor, Extractor)
    bandwidth = Bandwidth(rate)
    bandwidth.add(levels(sound, rate))
    return Document([extractor.extract(sound)], bandwidth=bandwidth.hz)


def is_narrow(sound: np.ndarray, rate: int = RATE) -> bool:
    return bool(BandRounds(rate).totals(None, document(sound, rate))["narrow"][0])


@pytest.fixture
def chosen(tmp_path: Path):
    """Makes an extractor with a model of that choice."""

    def make(fmax: float | None, **options: object) -> Mfcc:
        Model("band", 1, {}, {"fmax": fmax}).save(Folder(str(tmp_path)), f"{fmax}.npz")
        made = create("mfcc", {"fmax": "common", "model": str(tmp_path / f"{fmax}.npz"), **options})
        assert isinstance(made, Mfcc)
        return made

    return make


def test_frames_and_identity_are_those_of_the_chosen_band(chosen) -> None:
    for fmax, hz in ((3700.0, 3700.0), (None, 8000.0)):
        made, sound = chosen(fmax), bursts()
        assert np.array_equal(made.extract(sound), Mfcc(fmax=fmax).extract(sound))
        assert (made.learns, made.upper_edge, reach([made])) == (False, hz, hz)
        check_extractor(made)
    options = {"fmax": "common", "model": chosen(3700.0).model}
    assert reach([create("mfcc", options, transforms=[("columns", {"keep": [1, 2]})])]) == 3700.0
    assert reach([create("vtln", {"mfcc": {"fmax": 3000}}), Mfcc(fmax=3700)]) == 3700.0
    assert reach([create("plp", {})]) == 8000.0
    unfitted = Mfcc(fmax="common")
    assert isinstance(unfitted, Learning)
    assert unfitted.learns
    prints = [recipe_fingerprint(identity(one)) for one in (unfitted, chosen(3700.0), chosen(None), Mfcc(fmax=3700))]
    assert len(set(prints)) == 4
    assert unfitted.learns_from() == Mfcc(fmax="common", n_mfcc=20, hop_length=80).learns_from()  # one model for both


def test_what_cannot_be(tmp_path: Path) -> None:
    with raises(codes.MODEL_NOT_FITTED, name="the common band"):
        Mfcc(fmax="common").extract(bursts())
    Model("mel-mean", 1, {"mean": np.ones(3)}).save(Folder(str(tmp_path)), "m.npz")
    with raises(codes.WRONG_MODEL, name="mel-mean", wanted="a choice of a band"):
        Mfcc(fmax="common", model=str(tmp_path / "m.npz")).extract(bursts())
    no_bands: list[dict[str, object]] = [{"fmin": 8000.0}, {"fmin": 300.0, "fmax": 300.0}, {"fmax": 9000.0}]
    no_bands += [{"fmin": 4000.0, "fmax": "common"}, {"sample_rate": 6000, "fmax": "common"}]
    for name, options, code in (
        *(("mfcc", options, families.INVALID_VALUE) for options in no_bands),
        ("mfcc-fingerprint", {"fmax": "common"}, families.UNSUPPORTED),
        ("vtln", {"mfcc": {"fmax": "common"}}, families.UNSUPPORTED),
        ("mfcc", {"model": "band.npz"}, codes.MODEL_WITHOUT_USE),
        ("mfcc", {"model": "band.npz", "fmax": 3700.0}, codes.MODEL_WITHOUT_USE),
        ("mfcc", {"fmax": "commn"}, codes.INVALID_FEATURE_OPTION),
    ):
        with raises(code, where="features.options"):
            create(name, options)
