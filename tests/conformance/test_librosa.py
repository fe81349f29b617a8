"""Functions of librosa.feature as features: frames are librosa's, options are its own, and unusable ones are refused."""

from typing import Any

import numpy as np
import pytest

from swsdist.core.errors import ConfigError
from swsdist.features.extractors import create
from swsdist.features.interface import Extractor
from swsdist.features.librosa import Librosa, library
from swsdist.testing.conformance import check_extractor

RATE = 4000
WINDOW = {"n_fft": 256, "win_length": 200, "hop_length": 100}
CQT = {"hop_length": 128, "n_octaves": 4}
FRAMES = {"frame_length": 200, "hop_length": 100}

#: Each function with options by its own names, and which of them are tried a second time without a centre.
FUNCTIONS: dict[str, dict[str, Any]] = {
    "mfcc": {**WINDOW, "n_mfcc": 12, "n_mels": 20, "dct_type": 3, "lifter": 22, "mel_norm": None, "htk": True},
    "melspectrogram": {**WINDOW, "n_mels": 20, "fmin": 100.0, "norm": None, "power": 1.0, "window": ["kaiser", 8.0]},
    "chroma_stft": {**WINDOW, "tuning": 0.1, "n_chroma": 6, "norm": "inf", "octwidth": None, "pad_mode": "reflect"},
    "chroma_cqt": {**CQT, "threshold": 0.1, "norm": 1},
    "chroma_cens": {**CQT, "win_len_smooth": 11},
    "spectral_centroid": WINDOW,
    "spectral_bandwidth": {**WINDOW, "p": 3.0, "norm": False},
    "spectral_contrast": {**WINDOW, "n_bands": 3, "fmin": 100.0, "quantile": 0.05},
    "spectral_flatness": {**WINDOW, "amin": 1e-8},
    "spectral_rolloff": {**WINDOW, "roll_percent": 0.5},
    "tonnetz": {**CQT, "norm": 2},
    "poly_features": {**WINDOW, "order": 2},
    "rms": {**FRAMES, "pad_mode": "edge"},
    "zero_crossing_rate": {**FRAMES, "threshold": 1e-3},
}
NOISE = np.random.default_rng(1).normal(scale=0.1, size=2 * RATE + 17).astype(np.float32)


def made(feature: str, **options: Any) -> Librosa:
    extractor = create("librosa", {"feature": feature, "sample_rate": RATE, **options})
    assert isinstance(extractor, Librosa)
    return extractor


def by_librosa(feature: str, samples: np.ndarray, **options: Any) -> np.ndarray:
    rate = {} if feature in ("rms", "zero_crossing_rate", "spectral_flatness") else {"sr": RATE}
    arguments = {key: tuple(v) if isinstance(v, list) else np.inf if v == "inf" else v for key, v in options.items()}
    return getattr(library().feature, feature)(y=samples, **rate, **arguments).T


@pytest.mark.parametrize("feature", FUNCTIONS)
def test_frames_are_librosas(feature: str) -> None:
    """Of a recording in the middle of zeros too; without a centre, as many as librosa gives."""
    options = FUNCTIONS[feature]
    expected = by_librosa(feature, NOISE, **options)
    frames = made(feature, **options).extract(NOISE)
    assert len(frames) == len(NOISE) // options["hop_length"] == len(expected) - 1
    assert np.array_equal(frames, expected[:-1].astype(np.float32))
    if "n_octaves" not in options:
        plain = {**options, "center": False}
        assert np.array_equal(made(feature, **plain).extract(NOISE), by_librosa(feature, NOISE, **plain).astype("f4"))


@pytest.mark.parametrize(
    "feature",
    [pytest.param(name, marks=pytest.mark.slow) if "n_octaves" in FUNCTIONS[name] else name for name in FUNCTIONS],
)
def test_the_suite_of_extractors(feature: str) -> None:
    local = {"mfcc": {"power_to_db": {"top_db": None}}, "spectral_contrast": {"linear": True}}.get(feature, {})
    extractor = made(feature, **FUNCTIONS[feature], **local, deltas=1)
    assert (extractor.context is None) == ("n_octaves" in FUNCTIONS[feature])
    check_extractor(extractor)
    if "n_octaves" not in FUNCTIONS[feature]:
        check_extractor(made(feature, **FUNCTIONS[feature], **local, center=False))


@pytest.mark.parametrize(
    ("feature", "options"),
    [
        ("mfcc", {}),
        ("mfcc", {"power_to_db": {"ref": "max", "top_db": None}}),
        ("melspectrogram", {"power_to_db": True}),
        ("spectral_contrast", {"n_bands": 3}),
        ("chroma_stft", {}),
    ],
    ids=str,
)
def test_what_depends_on_the_recording(feature: str, options: dict[str, Any]) -> None:
    extractor = made(feature, **WINDOW, **({"n_mels": 20} if "mel" in feature or feature == "mfcc" else {}), **options)
    assert extractor.context is None
    check_extractor(extractor)


def test_decibels_and_differences() -> None:
    options = {**WINDOW, "n_mels": 20}
    decibels = library().power_to_db(by_librosa("melspectrogram", NOISE, **options).T, ref=np.max, amin=1e-6, top_db=60)
    width = [library().feature.delta(decibels, width=5, order=order, mode="nearest") for order in (1, 2)]
    expected = np.concatenate([decibels, *width]).T[:-1]
    chosen = {"ref": "max", "amin": 1e-6, "top_db": 60}
    extractor = made("melspectrogram", **options, power_to_db=chosen, deltas=2, delta_width=5)
    assert extractor.dimension == 60
    assert np.array_equal(extractor.extract(NOISE), expected.astype(np.float32))
    power = by_librosa("melspectrogram", NOISE, **options, norm=None).T
    expected = library().feature.mfcc(S=library().power_to_db(power, top_db=None), n_mfcc=5).T[:-1]
    extractor = made("mfcc", **options, n_mfcc=5, mel_norm=None, power_to_db={"top_db": None})
    assert np.array_equal(extractor.extract(NOISE), expected.astype(np.float32))


def test_what_is_left_out() -> None:
    """25 ms every 10 ms at 16 kHz; the rest is librosa's."""
    noise = np.random.default_rng(2).normal(scale=0.1, size=16000).astype(np.float32)
    extractor = create("librosa", {"feature": "melspectrogram"})
    assert isinstance(extractor, Extractor)
    expected = library().feature.melspectrogram(y=noise, sr=16000, hop_length=160, win_length=400)
    assert np.array_equal(extractor.extract(noise), expected.T[:100])


def test_unusable_options() -> None:
    for options, named in (
        ({"feature": "tempo"}, "feature"),
        ({"feature": "rms", "n_fft": 512}, "n_fft"),
        ({"feature": "mfcc", "n_mfc": 12}, "did you mean n_mfcc"),
        ({"feature": "mfcc", "n_mels": True}, "n_mels"),
        ({"feature": "mfcc", "n_mels": 12.5}, "n_mels"),
        ({"feature": "mfcc", "n_mfcc": 129}, "n_mfcc"),
        ({"feature": "mfcc", "n_mfcc": -1}, "n_mfcc"),
        ({"feature": "melspectrogram", "n_fft": 300_000_000}, "n_fft"),
        ({"feature": "melspectrogram", "n_mels": 60_000}, "n_mels"),
        ({"feature": "rms", "hop_length": 1 << 40}, "hop_length"),
        ({"feature": "rms", "sample_rate": 1 << 40}, "sample_rate"),
        ({"feature": "mfcc", "lifter": float("nan")}, "lifter"),
        ({"feature": "melspectrogram", "n_fft": 256}, "Empty filters"),
        ({"feature": "melspectrogram", "n_mels": 0}, "melspectrogram"),
        ({"feature": "melspectrogram", "fmax": "x"}, "melspectrogram"),
        ({"feature": "melspectrogram", "window": "nonsense"}, "nonsense"),
        ({"feature": "melspectrogram", "power_to_db": {"topdb": 60}}, "topdb"),
        ({"feature": "melspectrogram", "y": [0.0]}, "y"),
        ({"feature": "rms", "power_to_db": True}, "power_to_db"),
        ({"feature": "chroma_cqt", "sample_rate": 8000}, "Nyquist"),
        ({"feature": "rms", "deltas": 1, "delta_width": 4}, "odd"),
    ):
        with pytest.raises(ConfigError, match=named) as error:
            create("librosa", options)
        assert str(error.value.where).startswith("features.options")
