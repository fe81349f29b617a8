"""Log mel energies as phnrec computes them.

Frame t covers samples [t * hop, t * hop + frame_length), under a Hamming window, zeros behind it up to the next power of two.
Bands are triangles that are linear in mel, mel(f) = 1127 ln(1 + f / 700), as in HTK; their height is 1. The natural logarithm
of a band's power is taken, and where the power is exactly 0 (digital silence) the number is 0. Samples are in the range of 16
bits; spectra are in float32.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from swsdist.features.phnrec.weights import Banks

#: Frames of which spectra are held.
_AT_ONCE = 128


def log_energies(samples: NDArray[np.floating], banks: Banks) -> NDArray[np.float64]:
    """Natural logarithms of mel energies.

    Args:
        samples: (n,), from -32768 to 32767.
        banks: rate, frames and bands.

    Returns:
        float64 (frames, bands): all frames that lie whole inside.
    """
    from scipy.fft import rfft

    length = banks.frame_length
    if len(samples) < length:
        return np.empty((0, banks.bands))
    frames = np.lib.stride_tricks.sliding_window_view(samples.astype(np.float32), length)[:: banks.hop]
    window, points = np.hamming(length).astype(np.float32), _points(banks)
    matrix = filters(banks).astype(np.float32)
    made = np.empty((len(frames), banks.bands))
    for first in range(0, len(frames), _AT_ONCE):
        spectrum = rfft(frames[first : first + _AT_ONCE] * window, points, axis=1)[:, : points // 2]
        power = spectrum.real**2
        power += spectrum.imag**2
        made[first : first + _AT_ONCE] = power @ matrix
    silent = made == 0.0
    made[silent] = 1.0
    return np.log(made, out=made)


@lru_cache(maxsize=8)
def filters(banks: Banks) -> NDArray[np.float64]:
    """Weights of the spectrum's points in each band: float64 (points / 2, bands); the highest frequency has none."""
    points = _points(banks)
    width = banks.rate / points
    centres = np.linspace(_mel(banks.lowest), _mel(banks.highest), banks.bands + 2)
    first = max(1, int(banks.lowest / width + 1.5))
    last = min(points // 2 - 1, int(banks.highest / width - 0.5))
    matrix = np.zeros((points // 2, banks.bands))
    for k in range(first, last + 1):
        place = _mel(k * width)
        above = min(max(int(np.searchsorted(centres, place, side="right")), 1), banks.bands + 1)
        share = (place - centres[above - 1]) / (centres[above] - centres[above - 1])
        if above <= banks.bands:
            matrix[k, above - 1] = share
        if above >= 2:
            matrix[k, above - 2] = 1 - share
    matrix.setflags(write=False)
    return matrix


def _points(banks: Banks) -> int:
    return 1 << (banks.frame_length - 1).bit_length()


def _mel(frequency: float) -> float:
    return 1127.0 * math.log1p(frequency / 700.0)
