"""Speech-to-noise ratio, as NIST's program `stnr` defines it.

The ratio is 10 log10 (peak speech power / mean noise power), where a power is the variance of the samples of 20 ms. The
leftmost hill of the histogram of powers is noise: a raised cosine is fitted to its left side, and the middle of the cosine is
the noise level. The rest of the histogram is speech, with its peak at the 95th percentile.

Source: NIST, Speech Quality Assurance Package (SPQA), `stnr`, its documentation and constants. It is what evaluations of spoken
term detection report (Tejedor et al. 2016, table 1 and [56]). The program searches for the best cosine step by step from a
first guess; here all middles within 2 dB of that guess are tried, with all widths, the height being that of least squares.

Only the histogram of a recording is kept; histograms of its parts add.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

#: Of the histogram of powers: bins, and their range in dB above a power of one step of 16 bits.
BINS, LOW, HIGH = 500, -28.125, 96.875

_STEP = (HIGH - LOW) / BINS
_HALF = 0.010  # s, from one window to the next; a window is two of it
_FULL_SCALE = 32768.0
#: Bins to either side that a mean of smoothing takes, and that a slope is measured over.
_SMOOTH, _SLOPE = 7, 2
#: A hill begins where the smoothed histogram exceeds this part of its greatest height.
_BEGIN = 0.05
#: Of the fit, in bins: how far from the first guess, and widths of a cosine.
_REACH, _NARROWEST, _WIDEST = 8, 4, 160
#: Of what is not noise, the part that the peak of speech exceeds.
_PEAK = 0.95

Counts = NDArray[np.int64]


class Meter:
    """Histogram of the powers of a recording, which is added block by block.

    Args:
        rate: Hz.

    Attributes:
        counts: int64 (500,), windows by power; those without any variance are not counted.
    """

    def __init__(self, rate: int) -> None:
        self._size = max(1, round(_HALF * rate))
        self._rest = np.empty(0, np.float32)
        self.counts: Counts = np.zeros(BINS, np.int64)

    def add(self, samples: NDArray[np.float32]) -> None:
        """Add the next samples, float32 (n,), full scale 1."""
        joined = np.concatenate([self._rest, samples])
        halves = len(joined) // self._size
        if halves < 2:
            self._rest = joined
            return
        parts = joined[: halves * self._size].reshape(halves, self._size).astype(np.float64)
        sums, squares = parts.sum(axis=1), np.einsum("ij,ij->i", parts, parts)
        mean = (sums[1:] + sums[:-1]) / (2 * self._size)
        variance = (squares[1:] + squares[:-1]) / (2 * self._size) - mean**2
        sounding = variance[variance * _FULL_SCALE**2 > 10 ** (LOW / 10)]
        bins = np.floor((10 * np.log10(sounding * _FULL_SCALE**2) - LOW) / _STEP).astype(np.int64)
        self.counts += np.bincount(bins.clip(0, BINS - 1), minlength=BINS)
        # Windows overlap by half.
        self._rest = joined[(halves - 1) * self._size :]


def signal_to_noise(counts: Counts) -> float | None:
    """Speech-to-noise ratio in dB; None for silence, or without speech above the noise.

    Args:
        counts: int64 (500,), of a recording, or the sum of several.
    """
    if not counts.any():
        return None
    middle, cosine = _noise(counts.astype(np.float64))
    rest = np.clip(counts - cosine, 0.0, None).cumsum()
    if rest[-1] < 1:
        return None
    peak = int(np.searchsorted(rest, _PEAK * rest[-1]))
    return (peak - middle) * _STEP


def _noise(counts: NDArray[np.float64]) -> tuple[int, NDArray[np.float64]]:
    """Middle of the noise (bin), and its raised cosine, float64 (500,)."""
    width = 2 * _SMOOTH + 1
    smooth = np.convolve(counts, np.full(width, 1 / width), mode="same")
    begin = int(np.argmax(smooth > _BEGIN * smooth.max()))
    slope = np.zeros(BINS)
    slope[_SLOPE:-_SLOPE] = smooth[2 * _SLOPE :] - smooth[: -2 * _SLOPE]
    falls = np.flatnonzero(slope[begin:] < 0)
    guess = begin + int(falls[0]) if len(falls) else BINS - 1
    shapes, half = _shapes(), _WIDEST // 2
    best = (-1.0, guess, np.zeros(BINS))
    for middle in range(max(0, guess - _REACH), min(BINS, guess + _REACH + 1)):
        first, last = max(0, middle - half), min(guess, middle + half)
        flank = shapes[:, first - middle + half : last - middle + half + 1]
        weight = (flank**2).sum(axis=1)
        common = flank @ counts[first : last + 1]
        # Of least squares: what a cosine of the best height takes from the sum of squares; hardly any of a cosine may be there.
        taken = np.where(weight >= 1, common**2 / np.maximum(weight, 1), -1.0)
        k = int(taken.argmax())
        if taken[k] > best[0]:
            cosine = np.zeros(BINS)
            first, last = max(0, middle - half), min(BINS - 1, middle + half)
            shape = shapes[k, first - middle + half : last - middle + half + 1]
            cosine[first : last + 1] = shape * (common[k] / weight[k])
            best = (float(taken[k]), middle, cosine)
    return best[1], best[2]


@functools.cache
def _shapes() -> NDArray[np.float64]:
    """Raised cosines of height 1, float64 (widths, bins around the middle)."""
    widths = np.arange(_NARROWEST, _WIDEST + 1, 2)
    distance = np.abs(np.arange(-(_WIDEST // 2), _WIDEST // 2 + 1)) / widths[:, None]
    return np.where(distance <= 0.5, 0.5 + 0.5 * np.cos(2 * np.pi * distance), 0.0)
