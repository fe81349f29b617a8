"""Speech-to-noise ratios: mixtures of known ratio, whatever their level and however they are cut."""

import numpy as np
import pytest
from numpy.typing import NDArray

from swsdist.audio.speech import BINS, Meter, signal_to_noise

RATE = 16000


def mixture(ratio: float, *, level: float = 0.003, rate: int = RATE, seconds: int = 20, part: int = 2) -> np.ndarray:
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


def test_mixtures_of_known_ratio() -> None:
    """The peak is the 95th percentile of windows that vary by 0.4 dB, so it lies a little above their mean."""
    for ratio in (5, 10, 15, 20, 30, 40):
        for part in (2, 4):
            assert measured(mixture(ratio, part=part)) == pytest.approx(ratio + 0.4, abs=0.4), (ratio, part)
    for level in (0.0003, 0.01):  # level, rate and offset do not count
        for rate in (8000, 44100):
            found = measured(mixture(15, level=level, rate=rate) + np.float32(0.1), rate)
            assert found == pytest.approx(15.4, abs=0.5), (level, rate)


def test_blocks_do_not_count_and_digital_silence_is_no_noise() -> None:
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
    samples = mixture(20)
    cut = np.concatenate([samples, np.zeros(30 * RATE, np.float32), samples])
    assert measured(cut) == pytest.approx(measured(samples) or 0.0, abs=0.3)
    assert signal_to_noise(np.zeros(BINS, np.int64)) is None
    for nothing in (np.zeros(RATE, np.float32), np.zeros(3, np.float32), np.full(RATE, 0.5, np.float32)):
        assert measured(nothing) is None
    alone = measured(np.random.default_rng(0).normal(size=10 * RATE).astype(np.float32) * np.float32(0.01))
    assert alone is None or alone < 2
