"""Speakers: constant properties of a voice, and of its recording place and microphone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from swsdist.testing.synthesis.phonology import VOWELS

_CORNERS = np.array([0.0, 1000.0, 2000.0, 4000.0, 8000.0])


@dataclass(frozen=True)
class Voice:
    """A speaker.

    Attributes:
        name: for tables.
        tract: factor on all formants: 1 for a man's vocal tract, about 1.17 for a woman's.
        pitch: middle fundamental frequency in Hz.
        range: relative excursion of the fundamental frequency.
        open_quotient: part of the period during which the glottis is open.
        tilt: Hz, corner of the low-pass that softens the voice.
        breathiness: dB added to the noise at the glottis while it sounds.
        jitter: relative deviation of the length of single periods.
        rate: factor on all durations.
        accent: factors on F1, F2 and F3 of each vowel.
        response: the microphone; frequencies in Hz, and the gain in dB at them: (2, 5).
        noise: dB of the background where this speaker is recorded, relative to the speech.
    """

    name: str
    tract: float
    pitch: float
    range: float
    open_quotient: float
    tilt: float
    breathiness: float
    jitter: float
    rate: float
    accent: dict[str, NDArray[np.float64]]
    response: NDArray[np.float64]
    noise: float


def draw_voice(rng: np.random.Generator, index: int) -> Voice:
    """Draw a speaker; even indices are lower voices, odd ones higher."""
    high = index % 2
    return Voice(
        name=f"voice{index + 1}",
        tract=(0.99, 1.15)[high] * rng.uniform(0.97, 1.04),
        pitch=(112.0, 196.0)[high] * rng.uniform(0.84, 1.2),
        range=rng.uniform(0.08, 0.2),
        open_quotient=(0.52, 0.64)[high] + rng.uniform(-0.06, 0.06),
        tilt=rng.uniform(2200, 6000),
        breathiness=rng.uniform(-5, 5),
        jitter=rng.uniform(0.004, 0.015),
        rate=rng.uniform(0.9, 1.12),
        accent={vowel: np.exp(rng.normal(0, (0.05, 0.035, 0.02))) for vowel in VOWELS},
        response=np.stack([_CORNERS, np.append(0.0, rng.uniform(-5, 5, _CORNERS.size - 1))]),
        noise=rng.uniform(-36, -23),
    )
