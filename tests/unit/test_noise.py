"""Speech-to-noise ratios: mixtures of known ratio, whatever their level and however they are cut."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from swsdist.audio.speech import BINS, Meter, signal_to_noise

RATE = 16000


def mixture(
    ratio: float, *, level: float = 0.003, rate: int = RATE, seconds: int = 20, part: int = 2
) -> NDArray[np.float32]:
    """White noise, and every second (third, ...) second a voice so many dB above it: noise as well, of steady power."""
    rng = np.random.default_rng(7)
    size = seconds * rate
    on = (np.arange(size) // rate) % part == 1
    noise, voice = rng.normal(size=size), rng.normal(size=size)
    # In sum as loud as the ratio says, for the peak is one of speech and noise.
    loud = np.sqrt(max(10 ** (ratio / 10) - 1, 0))
    return (level * (noise + loud * voice * on)).astype(np.float32)


def measured(samples: NDArray[np.float32], rate: int = RATE, block: int = 1 << 30) -> float | None:
    meter = Meter(rate)
    for begin in range(0, len(samples), block):
        meter.add(samples[begin : begin + block])
    return signal_to_noise(meter.counts)


@pytest.mark.parametrize("ratio", [5, 10, 15, 20, 30, 40])
@pytest.mark.parametrize("part", [2, 4])
def test_mixtures_of_known_ratio(ratio: float, part: int) -> None:
    """The peak is the 95th percentile of windows that vary by 0.4 dB, so it lies a little above their mean."""
    assert measured(mixture(ratio, part=part)) == pytest.approx(ratio + 0.4, abs=0.4)


def test_twice_the_noise_is_3_db() -> None:
    quiet, noisy = (
        measured(mixture(30) + amount * np.random.default_rng(1).normal(size=20 * RATE).astype(np.float32))
        for amount in (0.01, 0.01 * 2**0.5)
    )
    assert quiet is not None
    assert noisy is not None
    assert quiet - noisy == pytest.approx(3, abs=0.6)


@pytest.mark.parametrize("level", [0.0003, 0.01])
@pytest.mark.parametrize("rate", [8000, 44100])
def test_level_rate_and_offset_do_not_count(level: float, rate: int) -> None:
    found = measured(mixture(15, level=level, rate=rate) + np.float32(0.1), rate)
    assert found == pytest.approx(15.4, abs=0.5)


def test_blocks_do_not_count() -> None:
    samples = mixture(20, seconds=4)
    whole = Meter(RATE)
    whole.add(samples)
    # A window of 20 ms begins each 10 ms.
    assert whole.counts.sum() == 4 * 100 - 1
    for block in (77, 160, 12345):
        other = Meter(RATE)
        for begin in range(0, len(samples), block):
            other.add(samples[begin : begin + block])
        assert (other.counts == whole.counts).all()


def test_recordings_add() -> None:
    parts = [Meter(RATE), Meter(RATE)]
    for meter, ratio in zip(parts, (20, 20), strict=True):
        meter.add(mixture(ratio, seconds=10))
    assert signal_to_noise(parts[0].counts + parts[1].counts) == signal_to_noise(parts[0].counts)


def test_digital_silence_is_no_noise() -> None:
    samples = mixture(20)
    cut = np.concatenate([samples, np.zeros(30 * RATE, np.float32), samples])
    assert measured(cut) == pytest.approx(measured(samples) or 0.0, abs=0.3)


def test_where_there_is_nothing() -> None:
    assert signal_to_noise(np.zeros(BINS, np.int64)) is None
    assert measured(np.zeros(RATE, np.float32)) is None
    assert measured(np.zeros(3, np.float32)) is None
    assert measured(np.full(RATE, 0.5, np.float32)) is None
    alone = measured(np.random.default_rng(0).normal(size=10 * RATE).astype(np.float32) * np.float32(0.01))
    assert alone is None or alone < 2
