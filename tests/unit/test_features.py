"""Which extractors there are, how they are made, and what identifies them."""

from __future__ import annotations

import pytest

from swsdist.core.errors import ConfigError
from swsdist.core.fingerprint import fingerprint
from swsdist.features.blocks import BLOCK_FRAMES
from swsdist.features.extractors import create, identity
from swsdist.features.interface import frame_count, frame_shift
from swsdist.features.mfcc import Mfcc
from swsdist.registry.registries import FEATURES


def test_mfcc_is_installed() -> None:
    assert dict(FEATURES.targets())["mfcc"] == "swsdist.features.mfcc:Mfcc"
    assert create("mfcc", {"n_mfcc": 20}) == Mfcc(n_mfcc=20)


def test_unknown_extractor() -> None:
    with pytest.raises(ConfigError, match="unknown feature extractor 'mfc'; did you mean mfcc") as caught:
        create("mfc", {})
    assert caught.value.code == "unknown-name"
    assert "mfcc" in str(caught.value)
    assert caught.value.where == "features.name"


@pytest.mark.parametrize(
    ("options", "place", "complaint"),
    [
        ({"n_mffc": 13}, "features.options.n_mffc", "mfcc has no option n_mffc; did you mean n_mfcc"),
        ({"n_mfcc": 0}, "features.options.n_mfcc", "greater than 0"),
        ({"window": "boxcar"}, "features.options.window", "'hann' or 'hamming'"),
        ({"win_length": 1024}, "features.options", r"win_length 1024 .* n_fft 512.*\[invalid-value\]"),
        ({"sample_rate": "fast"}, "features.options.sample_rate", "valid integer"),
    ],
)
def test_wrong_options_name_their_place(options: dict, place: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        create("mfcc", options)
    assert caught.value.where == place


@pytest.mark.parametrize(("samples", "frames"), [(0, 0), (1, 0), (511, 0), (512, 1), (671, 1), (672, 2), (16000, 97)])
def test_frames_that_lie_whole_inside(samples: int, frames: int) -> None:
    assert frame_count(Mfcc(), samples) == frames


def test_frame_shift() -> None:
    assert frame_shift(Mfcc()) == 0.01
    assert frame_shift(Mfcc(sample_rate=8000)) == 0.02


def test_identity_holds_all_that_frames_depend_on() -> None:
    found = identity(Mfcc())
    assert found["name"] == "mfcc"
    assert found["version"] == Mfcc.version
    assert found["block_frames"] == BLOCK_FRAMES
    assert set(found["options"]) == set(Mfcc.model_fields) - {"model"}
    assert len({fingerprint(identity(Mfcc(**options))) for options in ({}, {"n_mfcc": 12}, {"fmin": 1.0})}) == 3
    assert fingerprint(identity(Mfcc())) == fingerprint(identity(Mfcc(n_mfcc=13)))
