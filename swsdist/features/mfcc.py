"""Mel-frequency cepstral coefficients with deltas.

Defined by librosa 0.11 (`librosa.feature.mfcc` and `librosa.feature.delta`) with the options stated here,
``center=False`` and ``top_db=None``: power spectrum of `win_length` samples under a periodic window, centred in
`n_fft`; mel filters (Slaney's scale, area normalised); 10 log10 with a floor of 1e-10; orthonormal DCT-II. Deltas are
the slopes, and second deltas the curvatures, of the least-squares line and parabola through `delta_width` frames;
beyond the ends the end frames are repeated. Equal to librosa to 1e-4 (tests/parity). `kernels.cepstra` computes them; a
frame has the same bytes in any block and on any processor.

Frame t covers samples [t * hop_length, t * hop_length + n_fft).

With ``fmax="common"`` a chain chooses the band by the collection before it is indexed (`features.fitting.interface`).
"""

from __future__ import annotations

import math
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

from swsdist.config.section import IsPath
from swsdist.core.arrays import Floats, Singles
from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.core.errors import ConfigError
from swsdist.features.fitting.interface import COMMON, BandRounds, Rounds, band_of, read_model
from swsdist.io.filesystem import local_file

if TYPE_CHECKING:
    from swsdist.kernels.cepstra import Filters


class Mfcc(BaseModel):
    """MFCC extractor; its fields are its options."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sample_rate: PositiveInt = Field(16000, description="Hz")
    n_mfcc: PositiveInt = Field(13, description="coefficients, the first (energy-like) included")
    n_mels: PositiveInt = Field(40, description="mel filters")
    n_fft: PositiveInt = Field(512, description="points of the Fourier transform")
    win_length: PositiveInt = Field(400, description="samples of the window: 25 ms at 16 kHz")
    hop_length: PositiveInt = Field(160, description="samples between frames: 10 ms at 16 kHz")
    window: Literal["hann", "hamming"] = Field("hann", description="window function, periodic: hann or hamming")
    fmin: float = Field(0.0, ge=0, description="Hz, lower edge of the lowest filter")
    fmax: PositiveFloat | Literal["common"] | None = Field(
        None,
        description="Hz, upper edge of the highest filter; default: half the rate; `common`: 3700 for a collection of which "
        "more than 5 % is telephone speech, for others half the rate",
    )
    deltas: Annotated[int, Field(ge=0, le=2)] = Field(2, description="0: none, 1: slopes, 2: slopes and curvatures")
    delta_width: Annotated[int, Field(ge=3)] = Field(9, description="frames of a delta, odd")
    model: IsPath | None = Field(None, description="file of what `common` chose; by default it is chosen by the corpus")

    name: ClassVar[str] = "mfcc"
    version: ClassVar[int] = 2
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
            raise (
                families.UNSUPPORTED.of(ConfigError)
                .saying(
                    "only mfcc chooses its band by the collection (fmax: common)",
                    "set fmax to Hz, 3700 for telephone speech, or to null",
                )
                .invalid()
            )
        if self.model is not None and self.fmax != "common":
            raise codes.MODEL_WITHOUT_USE.invalid(option="fmax", value=self.fmax or "not set", other="common")
        top = self.sample_rate / 2
        fmax = COMMON if self.fmax == "common" else self.fmax or top
        if not self.fmin < fmax <= top:
            raise families.INVALID_VALUE.saying(
                "no band from fmin {fmin:g} Hz to fmax {fmax:g} Hz within half the rate, {top:g} Hz",
                (
                    "set 0 <= fmin < fmax <= half of sample_rate; for a collection with telephone speech "
                    "`common` is 3700"
                ),
            ).invalid(fmin=self.fmin, fmax=fmax, top=top)
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
    def _window(self) -> Floats:
        from swsdist.kernels.cepstra import circle

        height = 0.5 if self.window == "hann" else 0.54
        window: Floats = height - (1 - height) * circle(self.win_length, self.win_length)[0]
        return window

    @cached_property
    def _filters(self) -> Filters:
        from swsdist.kernels.cepstra import packed

        return packed(triangles(self._edges, self._bins))

    @cached_property
    def _edges(self) -> Floats:
        """Edges of the filters, float64 (n_mels + 2,), Hz: each reaches from one to the next but one."""
        return mel_frequencies(self.n_mels + 2, self.fmin, self.upper_edge)

    @property
    def _bins(self) -> Floats:
        """Frequencies of the spectrum, float64 (n_fft // 2 + 1,), Hz."""
        return np.fft.rfftfreq(self.n_fft, 1.0 / self.sample_rate).astype(np.float64)

    @cached_property
    def _cosines(self) -> Floats:
        """The orthonormal DCT-II, float64 (n_mfcc, n_mels)."""
        from swsdist.kernels.cepstra import circle

        turns = np.outer(np.arange(self.n_mfcc), 2 * np.arange(self.n_mels) + 1) % (4 * self.n_mels)
        cosines = circle(4 * self.n_mels, 4 * self.n_mels)[0][turns] * math.sqrt(2 / self.n_mels)
        cosines[0] = math.sqrt(1 / self.n_mels)
        return cosines

    def extract(self, samples: Singles) -> Singles:
        """MFCC of a stretch of samples.

        Args:
            samples: float32 (n,), full scale 1.

        Returns:
            float32 (frames, dimension): coefficients, then their slopes, then their curvatures.
        """
        from swsdist.kernels.cepstra import cepstra

        if len(samples) < self.n_fft:
            return np.empty((0, self.dimension), np.float32)
        static = cepstra(samples, self.hop_length, self._window, self.n_fft, self._filters, 1e-10, self._cosines)
        return with_deltas(static, self.deltas, self.delta_width)


def mel_frequencies(count: int, fmin: float, fmax: float) -> Floats:
    """Frequencies, float64 (count,), Hz, at equal distances on Slaney's scale: linear to 1000 Hz, logarithmic above."""
    linear, corner, step = 200.0 / 3, 1000.0, math.log(6.4) / 27.0
    knee = corner / linear

    def mel(hz: float) -> float:
        return knee + math.log(hz / corner) / step if hz >= corner else hz / linear

    places = np.linspace(mel(fmin), mel(fmax), count)
    return np.array([corner * math.exp(step * (k - knee)) if k >= knee else linear * k for k in places.tolist()])


def triangles(edges: Floats, bins: Floats) -> Floats:
    """Triangular filters of equal area.

    Args:
        edges: float64 (filters + 2,), Hz.
        bins: float64 (bins,), Hz, where they are evaluated.

    Returns:
        float64 (filters, bins).
    """
    widths, ramps = np.diff(edges), edges[:, None] - bins[None]
    rising, falling = -ramps[:-2] / widths[:-1, None], ramps[2:] / widths[1:, None]
    filters: Floats = np.maximum(0.0, np.minimum(rising, falling)) * (2.0 / (edges[2:] - edges[:-2]))[:, None]
    return filters


def with_deltas(static: Floats, deltas: int, width: int) -> Singles:
    """Coefficients and, beside them, their differences.

    Args:
        static: float64 (frames, n).
        deltas: 0: none, 1: slopes, 2: slopes and curvatures.
        width: frames, odd, that a difference is fitted through; at the ends the end frames are repeated.

    Returns:
        float32 (frames, n * (1 + deltas)).
    """
    from swsdist.kernels.cepstra import differences

    count = static.shape[1]
    out = np.empty((len(static), count * (1 + deltas)), np.float32)
    out[:, :count] = static
    for order in range(1, deltas + 1):
        into = out[:, order * count : (order + 1) * count]
        differences(np.ascontiguousarray(static), _delta_weights(width, order), (-1.0) ** order, into)
    return out


@cache
def _delta_weights(width: int, order: int) -> Floats:
    """Weights that give the derivative, at the middle, of the polynomial of degree `order` fitted to `width` frames.

    Savitzky and Golay (1964); librosa.feature.delta fits a polynomial of the same degree as the order of the delta. Quotients
    of integers, each rounded once.
    """
    places = range(-(width // 2), width // 2 + 1)
    squares, fourths = sum(k**2 for k in places), sum(k**4 for k in places)
    if order == 1:
        return np.array([k / squares for k in places])
    return np.array([2 * (width * k**2 - squares) / (width * fourths - squares**2) for k in places])
