"""From control tracks to sound: glottal pulses and noise through filters that change every 5 ms.

The source is cut into Hann windows of 10 ms, 5 ms apart (they add up to one); each piece passes through the filter of
its time as a product of spectra, and the filtered pieces, tails included, are added up. So an utterance needs a few
array operations, and no filter state.

Filters are Klatt's (1980, section I) digital resonators: in cascade for the glottal source, a single one, as a
band-pass, for noise made in the mouth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from swsdist.testing.synthesis.articulation import STEP, Tracks
from swsdist.testing.synthesis.phonology import NASAL_POLE
from swsdist.testing.synthesis.voice import Voice

#: Samples per second.
RATE = 16000

_HOP = round(STEP * RATE)
#: Length of the transforms: a window and 22 ms for its tail.
_SIZE = 512
_HIGHER_FORMANTS = (3500.0, 4500.0, 5500.0, 6500.0, 7500.0)


def synthesise(rng: np.random.Generator, voice: Voice, tracks: Tracks) -> NDArray[np.float32]:
    """The sound of the tracks, 5 ms a point, 16 kHz, with the noise of the place and through the microphone.

    Returns:
        float32 (80 n,), the largest magnitude a little below 1.
    """
    points = len(tracks.pitch)
    pulses, opening = _glottis(rng, voice, tracks.pitch)
    hiss = rng.standard_normal(pulses.size)
    # Breath is strongest while the glottis is open.
    throat = pulses * _hold(tracks.voicing) + hiss * (0.35 + opening) * _hold(tracks.breath)
    mouth = rng.standard_normal(pulses.size) * _hold(tracks.noise)

    z = np.exp(-2j * np.pi * np.arange(_SIZE // 2 + 1) / _SIZE)
    corners, response = voice.response
    # The position of the speaker varies.
    response = response + rng.normal(0, 1.5, response.size)
    microphone = 10 ** (np.interp(np.arange(z.size) * RATE / _SIZE, corners, response) / 20)
    spectra = _pieces(throat, points) * _vocal_tract(voice, tracks, z)
    spectra += _pieces(mouth, points) * _band(tracks.band, z)
    spectra *= microphone
    sound = _overlap_add(np.fft.irfft(spectra, _SIZE, axis=1), points)

    sound /= np.sqrt(np.mean(sound**2))
    sound += _background(rng, sound.size) * 10 ** ((voice.noise + rng.normal(0, 4)) / 20)
    return np.asarray(sound * (0.9 / np.abs(sound).max()), dtype=np.float32)


def _glottis(
    rng: np.random.Generator, voice: Voice, pitch: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Derivative of the flow, and the flow itself: KLGLOTT88, flow x^2 - x^3 over the open part of the period."""
    cycles = 1.0 + np.cumsum(_hold(pitch)) / RATE
    last = int(cycles[-1]) + 3
    # Random variation of a period's end (jitter) and strength (shimmer).
    ends = np.arange(last) + rng.normal(0, voice.jitter, last)
    period = np.searchsorted(ends, cycles, side="right") - 1
    phase = (cycles - ends[period]) / (ends[period + 1] - ends[period])
    strength = np.exp(rng.normal(0, 3 * voice.jitter, last))[period]
    x = np.minimum(phase / voice.open_quotient, 1.0)
    flow = (x**2 - x**3) * (27 / 4) * strength
    # The factor makes the peak of a pulse about 1, so that levels of the phones are relative to it.
    return np.diff(flow, prepend=0.0) * 10.0, flow


def _vocal_tract(voice: Voice, tracks: Tracks, z: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Spectra (points, bins) of the cascade: voice tilt, nasal pair, three moving formants, the fixed higher ones."""
    soften = np.exp(-2 * np.pi * voice.tilt / RATE)
    fixed = (1 - soften) / (1 - soften * z) / _poles(NASAL_POLE, 100.0, z)
    for frequency in _HIGHER_FORMANTS:
        if frequency * voice.tract < 7800:
            fixed = fixed / _poles(frequency * voice.tract, 0.07 * frequency, z)
    # An open nose makes the formants broader.
    widening = np.where(tracks.nasal_zero > NASAL_POLE + 50, 60.0, 0.0)[:, None]
    moving = np.ones((1, 1), dtype=np.complex128)
    for k, width in enumerate((60.0, 90.0, 150.0)):
        moving = moving * _poles(tracks.formants[:, k : k + 1], width + widening, z)
    return np.asarray(fixed * _poles(tracks.nasal_zero[:, None], 100.0, z) / moving)


def _poles(
    frequency: float | NDArray[np.floating], width: float | NDArray[np.floating], z: NDArray[np.complex128]
) -> NDArray[np.complex128]:
    """Denominator of a resonator of gain 1 at 0 Hz."""
    radius = np.exp(-np.pi * width / RATE)
    c = -(radius**2)
    b = 2 * radius * np.cos(2 * np.pi * frequency / RATE)
    return np.asarray((1 - b * z - c * z**2) / (1 - b - c))


def _band(band: NDArray[np.float64], z: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Band-pass spectra (points, bins) of mean power 1: a resonator with zeros at 0 Hz and 8 kHz."""
    response = (1 - z**2) / _poles(np.minimum(band[:, :1], 7500.0), band[:, 1:], z)
    return np.asarray(response / np.sqrt(np.mean(np.abs(response) ** 2, axis=1, keepdims=True)))


def _pieces(source: NDArray[np.float64], points: int) -> NDArray[np.complex128]:
    """Spectra (points, bins) of the windows centred on each point."""
    padded = np.pad(source, (_HOP // 2, _HOP + _HOP // 2))
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * _HOP)[::_HOP][:points]
    hann = 0.5 - 0.5 * np.cos(np.pi * (np.arange(2 * _HOP) + 0.5) / _HOP)
    return np.fft.rfft(windows * hann, _SIZE, axis=1)


def _overlap_add(pieces: NDArray[np.float64], points: int) -> NDArray[np.float64]:
    hops = -(-_SIZE // _HOP)
    blocks = np.pad(pieces, ((0, 0), (0, hops * _HOP - _SIZE))).reshape(points, hops, _HOP)
    sound = np.zeros((points + hops, _HOP))
    for hop in range(hops):
        sound[hop : hop + points] += blocks[:, hop]
    return sound.ravel()[_HOP // 2 : _HOP // 2 + points * _HOP]


def _hold(track: NDArray[np.float64]) -> NDArray[np.float64]:
    """A track at each sample: straight lines between the points, which lie in the middle of their 5 ms."""
    at = (np.arange(track.size * _HOP) + 0.5) / _HOP - 0.5
    return np.interp(at, np.arange(track.size), track)


def _background(rng: np.random.Generator, samples: int) -> NDArray[np.float64]:
    """Noise of a room, power 1, falling by 3 dB an octave above 60 Hz."""
    spectrum = np.fft.rfft(rng.standard_normal(samples))
    frequency = np.arange(spectrum.size) * RATE / samples
    noise = np.fft.irfft(spectrum / np.sqrt(np.maximum(frequency, 60.0)), samples)
    return np.asarray(noise / np.sqrt(np.mean(noise**2)))
