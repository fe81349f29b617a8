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

#: Frames of a product, and frames of which spectra are held: so few that they stay in a cache.
_AT_ONCE, _FEW = 128, 64


def log_energies(samples: NDArray[np.floating], banks: Banks) -> NDArray[np.float64]:
    """Natural logarithms of mel energies.

    Args:
        samples: (n,), from -32768 to 32767.
        banks: rate, frames and bands.

    Returns:
        float64 (frames, bands): all frames that lie whole inside.
    """
    from scipy.fft import rfft

    from swsdist.features.phnrec.loops import powers, windowed  # compiles

    length = banks.frame_length
    if len(samples) < length:
        return np.empty((0, banks.bands))
    signal, hop = np.ascontiguousarray(samples, np.float32), banks.hop
    window, matrix = _single(banks)
    energies = np.empty((1 + (len(signal) - length) // hop, banks.bands))
    points = _points(banks)
    padded, power = np.zeros((_FEW, points), np.float32), np.empty((_AT_ONCE, points // 2), np.float32)
    for first in range(0, len(energies), _AT_ONCE):
        some = min(_AT_ONCE, len(energies) - first)
        for k in range(0, some, _FEW):
            few = min(_FEW, some - k)
            windowed(signal[(first + k) * hop :], hop, window, padded[:few])
            powers(rfft(padded[:few], axis=1).view(np.float32), power[k : k + few])
        energies[first : first + some] = power[:some] @ matrix
    silent = energies == 0.0
    energies[silent] = 1.0
    return np.log(energies, out=energies)


@lru_cache(maxsize=8)
def _single(banks: Banks) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The window, and `filters`, in float32."""
    return np.hamming(banks.frame_length).astype(np.float32), filters(banks).astype(np.float32)


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
