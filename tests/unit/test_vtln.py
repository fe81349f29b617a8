"""Warped MFCC, and factors of speakers: a voice whose frequencies were scaled is told by its factor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from swsdist.core.codes import features as codes
from swsdist.core.errors import ConfigError
from swsdist.features.blocks import in_blocks
from swsdist.features.extractors import create
from swsdist.features.fitting.interface import Document, fit
from swsdist.features.interface import for_speaker
from swsdist.features.mfcc import Mfcc
from swsdist.features.vtln import Vtln, WarpedMfcc, warped
from swsdist.io.filesystem import Folder
from swsdist.testing.conformance import check_extractor
from tests.support.coded import raises

RATE = 16000


def voice(seed: int, factor: float, seconds: float = 6.0) -> np.ndarray:
    """Vowels by three resonances of noise, all frequencies times a factor."""
    from scipy.signal import lfilter

    vowels = [(300, 2300, 3000), (700, 1200, 2600), (350, 800, 2500), (500, 1500, 2500), (450, 1900, 2700)]
    rng, parts = np.random.default_rng(seed), []
    for _ in range(int(seconds / 0.15)):
        sound = rng.normal(size=int(0.15 * RATE))
        for formant in vowels[rng.integers(0, len(vowels))]:
            radius, angle = np.exp(-np.pi * 90 / RATE), 2 * np.pi * formant * factor / RATE
            sound = lfilter([1.0], [1.0, -2 * radius * np.cos(angle), radius**2], sound)
        parts.append(sound / np.abs(sound).max())
    return (0.3 * np.concatenate(parts)).astype(np.float32)


def test_without_a_warp_it_is_mfcc() -> None:
    samples = voice(1, 1.0, 1.0)
    assert WarpedMfcc().extract(samples) == pytest.approx(Mfcc().extract(samples), abs=1e-3)
    options = {"sample_rate": 8000, "n_fft": 256, "win_length": 200, "hop_length": 80, "n_mels": 20, "fmax": 3800.0}
    assert WarpedMfcc(**options).extract(samples) == pytest.approx(Mfcc(**options).extract(samples), abs=1e-3)


def test_frequencies_are_warped_and_the_ends_stay() -> None:
    hertz = np.array([0.0, 1000, 4000, 8000])
    assert warped(hertz, 1.0, 8000) == pytest.approx(hertz)
    for factor in (0.88, 1.12):
        made = warped(np.linspace(0, 8000, 801), factor, 8000)
        assert made[[0, 100, -1]] == pytest.approx([0, 1000 * factor, 8000])
        assert (np.diff(made) > 0).all()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Fitted on speakers of three lengths, in the order long, middle, short of their vocal tracts."""
    one = Vtln(components=8)
    learned = create("vtln", one.learns_from())
    lengths = {"long": 0.9, "middle": 1.0, "short": 1.1}
    documents = [
        Document([learned.extract(voice(10 * k + n, lengths[name]))], name)  # type: ignore[union-attr]
        for n, name in enumerate(lengths)
        for k in range(2 if name != "middle" else 4)
    ]
    documents.append(Document([learned.extract(voice(99, 1.0))], None))  # type: ignore[union-attr]
    made = fit(one.rounds(), documents)
    assert fit(one.rounds(), documents[::-1]).fingerprint == made.fingerprint
    place = tmp_path_factory.mktemp("vtln")
    made.save(Folder(str(place)), "m.npz")
    return str(place / "m.npz")


def test_speakers_have_factors(model: str) -> None:
    made = Vtln(components=8, model=model)
    _, factors = made._fitted
    assert set(factors) == {"long", "middle", "short"}
    # Low resonances become those of all: times a factor above 1.
    assert factors["long"] > factors["middle"] > factors["short"]
    assert factors["middle"] == pytest.approx(1.0, abs=0.041)
    samples = voice(5, 1.1, 2.0)
    of_short = for_speaker(made, "short").extract(samples)
    assert np.array_equal(of_short, made.under(factors["short"]).extract(samples))
    assert made._bound == []
    behind = create("vtln", {"components": 8, "model": model}, transforms=[("columns", {"keep": [1, 2]})])
    found = for_speaker(behind, "short").extract(samples)  # type: ignore[arg-type]
    assert np.array_equal(found, of_short[:, 1:3])
    # One who is not known has the factor of the recording.
    assert np.array_equal(for_speaker(made, "who").extract(samples), made.extract(samples))
    assert any(np.array_equal(made.extract(samples), made.under(factor).extract(samples)) for factor in (0.88, 0.92))


def test_a_recording_has_one_factor(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that is computed in chunks, whose later ones would have others by themselves: the first tells it."""
    for name, frames in {"whole_frames": 500, "chunk_frames": 500, "overlap_frames": 100}.items():
        monkeypatch.setattr(Vtln, name, frames)
    made = Vtln(components=8, model=model)
    parts = [voice(5, 0.9, 6.0), voice(6, 1.1, 12.0)]
    first, later = (for_speaker(made, None)._best([one.extract(part) for one in made._all]) for part in parts)  # type: ignore[attr-defined]
    assert first != later
    found = np.concatenate(list(in_blocks(for_speaker(made, None), parts)))
    assert np.array_equal(found, made.under(made.factors[first]).extract(np.concatenate(parts)))
    assert made._bound == []
    known = np.concatenate(list(in_blocks(for_speaker(made, "short"), parts)))
    assert np.array_equal(known, made.under(made._fitted[1]["short"]).extract(np.concatenate(parts)))


@pytest.mark.slow
def test_the_suite_for_extractors(model: str) -> None:
    options = {"sample_rate": 8000, "n_fft": 256, "win_length": 200, "hop_length": 80, "n_mels": 20}
    check_extractor(Vtln(components=8, model=model, step=0.12, mfcc=options))


def test_what_cannot_be(model: str, tmp_path: Path) -> None:
    with raises(codes.MODEL_NOT_FITTED, name="vtln"):
        Vtln().extract(np.zeros(RATE, np.float32))
    with raises(codes.WRONG_MODEL, wanted="a vtln model for these MFCC"):
        Vtln(components=8, model=model, mfcc={"n_mfcc": 12}).extract(np.zeros(RATE, np.float32))
    with pytest.raises(ConfigError, match="n_fftt"):
        create("vtln", {"mfcc": {"n_fftt": 3}})
    assert Vtln(step=0.02).factors == [round(0.88 + 0.02 * k, 2) for k in range(13)]
    assert Vtln(lowest=1.0, step=0.05).factors == [1.0, 1.05, 1.1]
