"""Mel-frequency cepstral coefficients with deltas.

Defined by librosa 0.11 (`librosa.feature.mfcc` and `librosa.feature.delta`) with what this options model states, and
``center=False``, ``top_db=None``: power spectrum of `win_length` samples under a periodic window, centred in `n_fft`;
mel filters (Slaney's scale, area normalised); 10 log10 with a floor of 1e-10; orthonormal DCT-II. Deltas are the slopes,
and second deltas the curvatures, of the least-squares line and parabola through `delta_width` frames; beyond the ends
the end frames are repeated. Equal to librosa to 1e-4 (tests/parity).

Frame t covers samples [t * hop_length, t * hop_length + n_fft).

With ``fmax="common"`` a chain chooses the band by the collection before it is indexed (`features.fitting.band`).
"""

from __future__ import annotations

import math
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

from swsdist.config.section import IsPath
from swsdist.core.codes import features as codes
from swsdist.features.fitting.band import COMMON, BandRounds, band_of
from swsdist.features.fitting.interface import Rounds
from swsdist.features.model import read_model
from swsdist.io.remote.copies import local_file


class Mfcc(BaseModel):
    """MFCC extractor; its fields are its options."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sample_rate: PositiveInt = Field(16000, description="Hz")
    n_mfcc: PositiveInt = Field(13, description="coefficients, the first (energy-like) included")
    n_mels: PositiveInt = Field(40, description="mel filters")
    n_fft: PositiveInt = Field(512, description="points of the Fourier transform")
    win_length: PositiveInt = Field(400, description="samples under the window: 25 ms at 16 kHz")
    hop_length: PositiveInt = Field(160, description="samples between frames: 10 ms at 16 kHz")
    window: Literal["hann", "hamming"] = Field("hann", description="window function, periodic")
    fmin: float = Field(0.0, ge=0, description="Hz, lower edge of the lowest filter")
    fmax: PositiveFloat | Literal["common"] | None = Field(
        None,
        description="Hz, upper edge of the highest filter; default: half the rate; `common`: 3700 for a collection of which "
        "more than 5 % is telephone speech, for others half the rate",
    )
    deltas: Annotated[int, Field(ge=0, le=2)] = Field(2, description="0: none, 1: slopes, 2: slopes and curvatures")
    delta_width: Annotated[int, Field(ge=3)] = Field(9, description="frames, odd, that a delta is fitted through")
    model: IsPath | None = Field(None, description="file of what `common` chose; by default it is chosen by the corpus")

    name: ClassVar[str] = "mfcc"
    version: ClassVar[int] = 1
    hours: ClassVar[float] = 4.0
    #: Whether `fmax` may be `common`.
    chooses: ClassVar[bool] = True

    @model_validator(mode="after")
    def _consistent(self) -> Mfcc:
        if self.win_length > self.n_fft:
            raise codes.WINDOW_EXCEEDS_FFT.invalid(win_length=self.win_length, n_fft=self.n_fft)
        if self.n_mfcc > self.n_mels:
            raise codes.TOO_MANY_CEPSTRA.invalid(key="n_mfcc", count=self.n_mfcc, bound="n_mels", most=self.n_mels)
        if self.delta_width % 2 == 0:
            raise codes.EVEN_DELTA_WIDTH.invalid(width=self.delta_width)
        if self.fmax == "common" and not self.chooses:
            raise codes.NO_COMMON_BAND.invalid()
        if self.model is not None and self.fmax != "common":
            raise codes.MODEL_WITHOUT_USE.invalid(option="fmax", value=self.fmax or "not set", other="common")
        top = self.sample_rate / 2
        fmax = COMMON if self.fmax == "common" else self.fmax or top
        if not self.fmin < fmax <= top:
            raise codes.INVALID_BAND.invalid(fmin=self.fmin, fmax=fmax, top=top)
        return self

    @property
    def frame_length(self) -> int:
        """Samples under a frame."""
        return self.n_fft

    @property
    def hop(self) -> int:
        """Samples from one frame to the next."""
        return self.hop_length

    @property
    def context(self) -> int:
        """Frames that deltas look to either side."""
        return self.delta_width // 2 if self.deltas else 0

    @property
    def dimension(self) -> int:
        """Numbers a frame."""
        return self.n_mfcc * (1 + self.deltas)

    def describe(self) -> dict[str, Any]:
        """All options with their values; `model` only where it matters."""
        return self.model_dump(mode="json", exclude=None if self.fmax == "common" else {"model"})

    def files(self) -> list[Path]:
        """The model."""
        return [] if self.model is None else [local_file(self.model)]

    @cached_property
    def upper_edge(self) -> float:
        """Upper edge of the highest filter, Hz.

        Raises:
            ConfigError: it is `common` and not fitted, or the model is unusable.
        """
        fmax = self._chosen() if self.fmax == "common" else self.fmax
        return self.sample_rate / 2 if fmax is None else fmax

    # -- fitting to the corpus (features.fitting)
    # ------------------------------------------------------------------------

    @property
    def learns(self) -> bool:
        """Whether the band is requested but not yet fitted."""
        return self.fmax == "common" and self.model is None

    def learns_from(self) -> dict[str, object]:
        """Options of the extractor for fitting; extractors of one rate share the model, which needs few frames."""
        return {"sample_rate": self.sample_rate, "hop_length": max(1, self.sample_rate // 25), "n_mfcc": 1, "deltas": 0}

    def rounds(self) -> Rounds:
        """The round that counts narrow documents."""
        return BandRounds(self.sample_rate)

    def matters(self) -> dict[str, object]:
        """Options that the band depends on."""
        return {"hours": self.hours}

    def with_model(self, path: str) -> dict[str, object]:
        """The options with the path of the fitted model."""
        return {**self.describe(), "model": path}

    def _chosen(self) -> float | None:
        where = "features.options.model"
        if self.model is None:
            raise codes.MODEL_NOT_FITTED(where=where, name="the common band", otherwise=", or set fmax")
        return read_model(self.model, f"{where}: {self.model}", band_of)

    # -- frames ----------------------------------------------------------------------------------------------------------

    @cached_property
    def _window(self) -> NDArray[np.float64]:
        from scipy.signal import get_window

        left = (self.n_fft - self.win_length) // 2
        padded = np.zeros(self.n_fft)
        padded[left : left + self.win_length] = get_window(self.window, self.win_length, fftbins=True)
        return padded

    @cached_property
    def _mel(self) -> NDArray[np.float64]:
        from librosa.filters import mel

        return np.ascontiguousarray(
            mel(
                sr=self.sample_rate,
                n_fft=self.n_fft,
                n_mels=self.n_mels,
                fmin=self.fmin,
                fmax=self.upper_edge,
                dtype=np.float64,
            ).T
        )

    def extract(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """MFCC of a stretch of samples.

        Args:
            samples: float32 (n,), full scale 1.

        Returns:
            float32 (frames, dimension): coefficients, then their slopes, then their curvatures.
        """
        from scipy.fft import dct, rfft

        if len(samples) < self.n_fft:
            return np.empty((0, self.dimension), np.float32)
        frames = np.lib.stride_tricks.sliding_window_view(samples, self.n_fft)[:: self.hop_length]
        static = np.empty((len(frames), self.n_mfcc))
        for first in range(0, len(frames), 512):  # keeps the spectra in cache
            spectrum = rfft(frames[first : first + 512] * self._window, axis=1)
            power = spectrum.real**2 + spectrum.imag**2
            decibels = 10.0 * np.log10(np.maximum(power @ self._mel, 1e-10))
            static[first : first + 512] = dct(decibels, type=2, norm="ortho", axis=1)[:, : self.n_mfcc]
        return with_deltas(static, self.deltas, self.delta_width)


def with_deltas(static: NDArray[np.float64], deltas: int, width: int) -> NDArray[np.float32]:
    """Coefficients and, beside them, their differences.

    Args:
        static: float64 (frames, n).
        deltas: 0: none, 1: slopes, 2: slopes and curvatures.
        width: frames, odd, that a difference is fitted through; at the ends the end frames are repeated.

    Returns:
        float32 (frames, n * (1 + deltas)).
    """
    from scipy.ndimage import correlate1d

    columns = [static]
    for order in range(1, deltas + 1):
        columns.append(correlate1d(static, _delta_weights(width, order), axis=0, mode="nearest"))
    return np.concatenate(columns, axis=1).astype(np.float32)


@cache
def _delta_weights(width: int, order: int) -> NDArray[np.float64]:
    """Weights that give the derivative, at the middle, of the polynomial of degree `order` fitted to `width` frames.

    Savitzky and Golay (1964); librosa.feature.delta fits a polynomial of the same degree as the order of the delta.
    """
    positions = np.arange(width) - width // 2
    fitted = np.linalg.pinv(np.vander(positions.astype(np.float64), order + 1, increasing=True))
    return np.asarray(fitted[order] * math.factorial(order), np.float64)
