"""Perceptual linear prediction.

The power spectrum under a Hamming window is summed in critical bands, weighted by equal loudness at 40 dB, and raised
to 0.33. The all-pole model of that spectrum (its inverse Fourier transform is an autocorrelation, which the
Levinson-Durbin recursion solves) is turned into cepstra, which are liftered as in HTK, and their differences are
appended.

Frame t covers samples [t * hop_length, t * hop_length + win_length). Samples are in the range of 16 bits, and a band's
power is at least 1, as in HTK. Differences are those of `swsdist.features.mfcc`.

Bands are Hermansky's (`bands: bark`: about one a Bark, masking curves of eq. 4), or HTK's (`bands: mel`: triangles,
linear in mel), with which the cepstra are those of HTK's kind PLP (tests/golden/test_plp.py). The lowest and the
highest band do not lie inside the spectrum, and take the values of their neighbours: with Bark these are the first and
last band, with mel two that are added.

`rasta` removes what changes slowly, the channel, from the logarithm of each band. The original filter never forgets;
here it forgets after a second, which bounds the context of a frame; a constant is still removed.

Sources: Hermansky 1990, "Perceptual linear predictive (PLP) analysis of speech", J. Acoust. Soc. Am. 87(4), section I;
RASTA: Hermansky and Morgan 1994.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

from swsdist.core.arrays import Floats, Singles
from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.features.mfcc import with_deltas

#: Memory of RASTA in frames.
_MEMORY = 100


class Plp(BaseModel):
    """PLP extractor; its fields are its options."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sample_rate: PositiveInt = Field(16000, description="Hz")
    n_ceps: PositiveInt = Field(13, description="cepstra, the first (energy-like) included")
    order: PositiveInt = Field(12, description="poles of the model")
    bands: Literal["bark", "mel"] = Field(
        "bark", description="bark: Hermansky's critical bands; mel: HTK's mel filters"
    )
    n_bands: PositiveInt | None = Field(
        None, description="bands; default: about one a Bark (21 at 16 kHz, 17 at 8 kHz), of mel 23"
    )
    compression: PositiveFloat = Field(0.33, description="exponent of the intensity-to-loudness law")
    lifter: Annotated[int, Field(ge=0)] = Field(22, description="as HTK's CEPLIFTER; 0: none")
    rasta: bool = Field(False, description="take slow changes out of the bands")
    n_fft: PositiveInt = Field(512, description="points of the Fourier transform")
    win_length: PositiveInt = Field(400, description="samples of the window: 25 ms at 16 kHz")
    hop_length: PositiveInt = Field(160, description="samples between frames: 10 ms at 16 kHz")
    deltas: Annotated[int, Field(ge=0, le=2)] = Field(2, description="0: none, 1: slopes, 2: slopes and curvatures")
    delta_width: Annotated[int, Field(ge=3)] = Field(9, description="frames of a delta, odd")

    name: ClassVar[str] = "plp"
    version: ClassVar[int] = 2

    @model_validator(mode="after")
    def _consistent(self) -> Plp:
        if self.win_length > self.n_fft:
            raise codes.WINDOW_EXCEEDS_FFT.invalid(win_length=self.win_length, n_fft=self.n_fft)
        if self.n_ceps > self.order + 1:
            raise codes.TOO_MANY_CEPSTRA.invalid(
                key="n_ceps", count=self.n_ceps, bound="order + 1 =", most=self.order + 1
            )
        if self.order >= self._bands():
            raise families.INVALID_VALUE.saying(
                "order {order} is not below the number of bands, {bands}", "lower it"
            ).invalid(order=self.order, bands=self._bands())
        if self.delta_width % 2 == 0:
            raise codes.EVEN_DELTA_WIDTH.invalid(width=self.delta_width)
        empty = np.flatnonzero(self._filters.sum(axis=0) == 0)
        if len(empty):
            raise families.INVALID_VALUE.saying(
                "band {band} of {bands} contains no point of the spectrum", "use fewer bands, or a larger n_fft"
            ).invalid(band=int(empty[0]), bands=self._bands())
        return self

    def _bands(self) -> int:
        if self.n_bands is not None:
            return self.n_bands
        return math.ceil(bark(self.sample_rate / 2)) + 1 if self.bands == "bark" else 23

    @property
    def frame_length(self) -> int:
        """Samples of a frame."""
        return self.win_length

    @property
    def hop(self) -> int:
        """Samples from one frame to the next."""
        return self.hop_length

    @property
    def context(self) -> int:
        """Frames on either side for the differences, and the memory of RASTA."""
        return (self.delta_width // 2 if self.deltas else 0) + (_MEMORY if self.rasta else 0)

    @property
    def dimension(self) -> int:
        """Numbers per frame."""
        return self.n_ceps * (1 + self.deltas)

    def describe(self) -> dict[str, Any]:
        """All options with their values."""
        return self.model_dump(mode="json")

    @cached_property
    def _centres(self) -> Floats:
        """Centre of each band, Hz."""
        count, top = self._bands(), self.sample_rate / 2
        if self.bands == "bark":
            return np.array([600.0 * math.sinh(place / 6.0) for place in np.linspace(0.0, bark(top), count)])
        places = np.linspace(0.0, math.log1p(top / 700.0), count + 2)[1:-1]
        return np.array([700.0 * math.expm1(place) for place in places])

    @cached_property
    def _filters(self) -> Floats:
        """Weights of the spectrum's points, float64 (n_fft / 2 + 1, bands)."""
        frequencies = np.arange(self.n_fft // 2 + 1) * self.sample_rate / self.n_fft
        if self.bands == "bark":
            # Of a point at x Bark below a band's centre; above it, x is negative.
            x = np.array([bark(f) for f in self._centres]) - np.array([bark(f) for f in frequencies])[:, None]
            curve = 10.0 ** np.minimum(0.0, np.minimum(2.5 * (x + 0.5), 0.5 - x))
            return np.where((x < -1.3) | (x > 2.5), 0.0, curve)
        top = math.log1p(self.sample_rate / 2 / 700.0)
        places = np.array([math.log1p(f / 700.0) for f in frequencies]) / top * (self._bands() + 1)
        made = np.maximum(0.0, 1.0 - np.abs(places[:, None] - np.arange(1, self._bands() + 1)))
        made[[0, -1]] = 0.0  # as in HTK
        return made

    @cached_property
    def _loudness(self) -> Floats:
        """Hermansky's eq. 7, in Hz."""
        square = self._centres**2
        return (square / (square + 1.6e5)) ** 2 * (square + 1.44e6) / (square + 9.61e6)

    @cached_property
    def _to_autocorrelation(self) -> Floats:
        """Inverse Fourier transform of a real and even spectrum: float64 (points from 0 to half the rate, order + 1)."""
        points = self._bands() + (2 if self.bands == "mel" else 0)
        angle = np.pi / (points - 1) * np.outer(np.arange(points), np.arange(self.order + 1))
        weights = np.full((points, 1), 2.0)
        weights[[0, -1]] = 1.0
        return np.asarray(np.cos(angle) * weights / (2 * (points - 1)))

    def extract(self, samples: Singles) -> Singles:
        """PLP of a stretch of samples.

        Args:
            samples: float32 (n,), full scale 1.

        Returns:
            float32 (frames, dimension): cepstra, then their slopes, then their curvatures.
        """
        if len(samples) < self.win_length:
            return np.empty((0, self.dimension), np.float32)
        frames = np.lib.stride_tricks.sliding_window_view(samples, self.win_length)[:: self.hop_length]
        energies = self._energies(frames)
        if self.rasta:
            energies = np.exp(without_slow_changes(np.log(energies)))
        return with_deltas(self._cepstra(energies), self.deltas, self.delta_width)

    def _energies(self, frames: Singles) -> Floats:
        """Power in each band, at least 1."""
        from scipy.fft import rfft

        window = np.hamming(self.win_length) * 32768.0
        made = np.empty((len(frames), self._bands()))
        for first in range(0, len(frames), 512):  # keeps the spectra in cache
            spectrum = rfft(frames[first : first + 512] * window, self.n_fft, axis=1)
            made[first : first + 512] = (spectrum.real**2 + spectrum.imag**2) @ self._filters
        return np.maximum(made, 1.0)

    def _cepstra(self, energies: Floats) -> Floats:
        spectrum = (energies * self._loudness) ** self.compression
        if self.bands == "mel":
            spectrum = np.concatenate([spectrum[:, :1], spectrum, spectrum[:, -1:]], axis=1)
        else:
            spectrum[:, 0], spectrum[:, -1] = spectrum[:, 1], spectrum[:, -2]
        prediction, error = levinson(spectrum @ self._to_autocorrelation)
        made = np.empty((len(energies), self.n_ceps))
        made[:, 0] = np.log(error)
        made[:, 1:] = to_cepstra(prediction)[:, : self.n_ceps - 1]
        if self.lifter:
            made *= 1.0 + self.lifter / 2 * np.sin(np.pi * np.arange(self.n_ceps) / self.lifter)
        return made


def bark(frequency: float) -> float:
    """Hz to Bark, Hermansky's eq. 3 (Schroeder 1977)."""
    return 6.0 * math.asinh(frequency / 600.0)


def without_slow_changes(logarithms: Floats) -> Floats:
    """RASTA filter, 0.1 (2 + z^-1 - z^-3 - 2 z^-4) / (1 - 0.94 z^-1); the first frame is repeated.

    Args:
        logarithms: float64 (frames, bands).

    Returns:
        float64 (frames, bands).
    """
    from scipy.ndimage import convolve1d
    from scipy.signal import lfilter

    answer = lfilter([0.2, 0.1, 0.0, -0.1, -0.2], [1.0, -0.94], np.eye(1, _MEMORY + 1)[0])
    answer[-1] -= answer.sum()
    # The centre tap is the frame itself; later frames have zero weight.
    return np.asarray(convolve1d(logarithms, np.concatenate([np.zeros(_MEMORY), answer]), axis=0, mode="nearest"))


def levinson(autocorrelation: Floats) -> tuple[Floats, Floats]:
    """The Levinson-Durbin recursion, a row a frame.

    Args:
        autocorrelation: float64 (frames, order + 1), positive definite.

    Returns:
        a, float64 (frames, order), of the model 1 / (1 + sum of a[k] z^-k), and the power of what is not predicted, (frames,).
    """
    order = autocorrelation.shape[1] - 1
    prediction = np.zeros((len(autocorrelation), order))
    error = autocorrelation[:, 0].copy()
    for i in range(order):
        before = prediction[:, :i].copy()
        reflection = autocorrelation[:, i + 1].copy()
        for j in range(i):
            reflection += before[:, j] * autocorrelation[:, i - j]
        reflection /= error
        prediction[:, :i] = before - reflection[:, None] * before[:, ::-1]
        prediction[:, i] = -reflection
        error *= 1.0 - reflection**2
    return prediction, error


def to_cepstra(prediction: Floats) -> Floats:
    """Cepstra 1, 2, ... of models from `levinson`, as many as poles: float64 (frames, order) to the same shape."""
    made = np.empty_like(prediction)
    for i in range(prediction.shape[1]):
        made[:, i] = -prediction[:, i]
        for j in range(i):
            made[:, i] -= (i - j) / (i + 1) * prediction[:, j] * made[:, i - j - 1]
    return made
