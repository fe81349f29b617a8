"""How high a recording's sound reaches: of what is left of it, not of its rate."""

from __future__ import annotations

import numpy as np
import pytest
import soxr

from swsdist.audio.speech import Bandwidth, levels

RATE = 16000


def heard(samples: np.ndarray, rate: int = RATE, pieces: int = 1) -> float | None:
    found = Bandwidth(rate)
    for part in np.array_split(samples.astype(np.float32), pieces):
        found.add(levels(part, rate))
    return found.hz


@pytest.fixture(scope="module")
def speech() -> np.ndarray:
    """White noise in bursts: a spectrum up to half the rate, and pauses."""
    random = np.random.default_rng(1)
    return np.concatenate(
        [part for _ in range(20) for part in (random.normal(0, 0.1, 3200), random.normal(0, 1e-5, 3200))]
    )


def test_what_came_through_a_lower_rate(speech: np.ndarray) -> None:
    for rate, hz in ((8000, 4000.0), (10000, 5000.0), (12000, 6000.0)):
        through = soxr.resample(soxr.resample(speech, RATE, rate), rate, RATE)
        coded = np.round(through * 32767) / 32767  # with the noise of 16 bits
        assert heard(through) == heard(coded) == heard(0.01 * coded) == hz
        if rate == 8000:
            hiss = np.random.default_rng(2).normal(0, np.sqrt((through**2).mean()) * 10 ** (-50 / 20), len(through))
            assert heard(through + hiss) == hz
    assert heard(speech, pieces=7) == heard(speech) == RATE / 2
    assert [heard(soxr.resample(speech, RATE, rate), rate) for rate in (8000, 6000)] == [4000.0, 3000.0]
    assert heard(np.zeros(RATE)) is heard(np.zeros(10)) is None
