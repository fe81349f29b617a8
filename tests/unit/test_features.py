"""Which extractors there are, how they are made, and what identifies them."""

from __future__ import annotations

import pytest

from swsdist.core.codes import families
from swsdist.core.errors import ConfigError
from swsdist.core.fingerprint import fingerprint
from swsdist.features.blocks import BLOCK_FRAMES
from swsdist.features.extractors import create, identity
from swsdist.features.interface import frame_count, frame_shift
from swsdist.features.mfcc import Mfcc
from tests.support.coded import raises


def test_extractors_are_made_by_their_names() -> None:
    assert create("mfcc", {"n_mfcc": 20}) == Mfcc(n_mfcc=20)
    with raises(families.UNKNOWN_NAME, where="features.name"):
        create("mfc", {})
    for options, where in (
        ({"n_mffc": 13}, ".n_mffc"),
        ({"n_mfcc": 0}, ".n_mfcc"),
        ({"window": "boxcar"}, ".window"),
        ({"win_length": 1024}, ""),
        ({"sample_rate": "fast"}, ".sample_rate"),
    ):
        with pytest.raises(ConfigError) as caught:
            create("mfcc", options)
        assert caught.value.where == f"features.options{where}"


def test_frames_that_lie_whole_inside() -> None:
    counts = {0: 0, 1: 0, 511: 0, 512: 1, 671: 1, 672: 2, 16000: 97}
    assert {samples: frame_count(Mfcc(), samples) for samples in counts} == counts
    assert (frame_shift(Mfcc()), frame_shift(Mfcc(sample_rate=8000))) == (0.01, 0.02)


def test_identity_holds_all_that_frames_depend_on() -> None:
    found = identity(Mfcc())
    assert (found["name"], found["version"], found["block_frames"]) == ("mfcc", Mfcc.version, BLOCK_FRAMES)
    assert set(found["options"]) == set(Mfcc.model_fields) - {"model"}
    assert len({fingerprint(identity(Mfcc(**options))) for options in ({}, {"n_mfcc": 12}, {"fmin": 1.0})}) == 3
    assert fingerprint(identity(Mfcc())) == fingerprint(identity(Mfcc(n_mfcc=13)))
