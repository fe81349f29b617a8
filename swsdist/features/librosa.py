"""Functions of `librosa.feature` as extractors, by their own names and options, and fingerprints of MFCC.

Frames of a function are those of ``librosa.feature.FEATURE(y=samples, sr=sample_rate, **options)``. An option that is
left out has librosa's default, except those of time: windows of 25 ms every 10 ms at 16 kHz (`win_length`, or
`frame_length` of rms and zero_crossing_rate, and `hop_length`). `power_to_db` holds options of `librosa.power_to_db`;
differences are those of `librosa.feature.delta` with mode "nearest".

With `center`, librosa's default, frame t is centred at sample t * hop_length, and covers that hop here: the frame
behind the last complete hop is left out. Without it, frame t covers samples [t * hop_length, t * hop_length + n_fft).

A function of single frames is computed in blocks. The others (a constant-Q transform, tuning that is estimated,
decibels below the loudest frame) are computed at once for recordings of up to five minutes, and in chunks for longer
ones.

Fingerprints of MFCC (`MfccFingerprint`): one bit per coefficient and frame, from a mask that detects falling slopes.
With S(i, j) coefficient i of frame j::

    phi = S(i, j) - S(i, j + 1) + S(i - 1, j) - S(i - 1, j + 1)
    F(i, j) = 1 where phi > 0, else 0

The paper does not define the edges. Here i begins with the second coefficient, so that i - 1 exists: 39 coefficients
yield 38 bits. The last frame of a recording is repeated, so its phi is 0 and so are its bits. The coefficients are
those of `swsdist.features.mfcc`, with its options, under a window of 20 ms as in the paper: twelve and C0, with their
first and second differences. They are compared as float32, so equal frames have no bits.

Source of the fingerprints: Tejedor et al. 2016, "Comparison of ALBAYZIN query-by-example spoken term detection 2012 and
2014 evaluations", section "MFCC fingerprint-based QbE STD system", eq. 2 (after Neves, Veiga, Sa and Perdigao 2009).
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from functools import cache, cached_property
from types import ModuleType
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator
from pydantic_core import PydanticCustomError

from swsdist.core.arrays import Singles
from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.core.codes.config import UNKNOWN_ENTRY_OPTION
from swsdist.core.text import suggestion
from swsdist.features.mfcc import Mfcc
from swsdist.kernels.compiled import one_process_compiles

_CQT = ("feature.chroma_cqt",)

#: Functions that take the options of a feature: its own, and those to which it passes what it does not take itself.
_TAKEN_BY: dict[str, tuple[str, ...]] = {
    "mfcc": ("feature.mfcc", "feature.melspectrogram", "filters.mel"),
    "melspectrogram": ("feature.melspectrogram", "filters.mel"),
    "chroma_stft": ("feature.chroma_stft", "filters.chroma"),
    "chroma_cqt": _CQT,
    "chroma_cens": ("feature.chroma_cens",),
    "spectral_centroid": ("feature.spectral_centroid",),
    "spectral_bandwidth": ("feature.spectral_bandwidth",),
    "spectral_contrast": ("feature.spectral_contrast",),
    "spectral_flatness": ("feature.spectral_flatness",),
    "spectral_rolloff": ("feature.spectral_rolloff",),
    "poly_features": ("feature.poly_features",),
    "tonnetz": ("feature.tonnetz", *_CQT),
    "rms": ("feature.rms",),
    "zero_crossing_rate": ("feature.zero_crossing_rate", "zero_crossings"),
}

#: Parameters that are no options: sound, what is made of it, and types.
_NO_OPTIONS = frozenset(["y", "sr", "S", "C", "freq", "centroid", "chroma", "dtype", "axis", "kwargs", "hop_length"])

#: Infinity, a norm of chroma, as JSON can hold it.
_INFINITE = "inf"

#: The greatest whole number that an option may be: filters and spectra of more would not fit into memory.
_MOST = 1 << 16

#: Samples under a window: 25 ms at 16 kHz.
_WINDOW = 400


class Librosa(BaseModel):
    """A function of `librosa.feature`; options that are not fields are passed to that function."""

    model_config = ConfigDict(extra="allow", frozen=True)

    feature: Literal[tuple(_TAKEN_BY)] = Field(description="function of librosa.feature")  # type: ignore[valid-type]
    sample_rate: PositiveInt = Field(16000, le=768_000, description="Hz; `sr` of the function")
    hop_length: PositiveInt = Field(160, le=_MOST, description="samples between frames: 10 ms at 16 kHz")
    power_to_db: bool | dict[str, float | str | None] = Field(
        False,
        description="of melspectrogram and mfcc: `true`, or options of librosa.power_to_db: `ref` (a number or `max`), `amin`, "
        "`top_db`. mfcc takes decibels anyway; `{top_db: null}` lets it be computed in blocks",
    )
    deltas: Annotated[int, Field(ge=0, le=2)] = Field(0, description="0: none, 1: slopes, 2: slopes and curvatures")
    delta_width: Annotated[int, Field(ge=3)] = Field(9, description="frames of a delta, odd")

    name: ClassVar[str] = "librosa"
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ("librosa", "scipy")

    @model_validator(mode="after")
    def _consistent(self) -> Librosa:
        if self.delta_width % 2 == 0:
            raise codes.EVEN_DELTA_WIDTH.invalid(width=self.delta_width)
        accepted = self._known
        for option, value in self._options.items():
            if option not in accepted:
                all_of_them = [*type(self).model_fields, *accepted]
                meant, shown = suggestion(option, all_of_them), ", ".join(all_of_them)
                raise UNKNOWN_ENTRY_OPTION.invalid(
                    kind="function of librosa.feature", name=self.feature, option=option, meant=meant, options=shown
                )
            if not _fits(value, accepted[option]):
                limits = f" (whole numbers are from 0 to {_MOST})" if isinstance(value, int) else ""
                raise self._invalid(f"{option} is {value!r}, and librosa's default is {accepted[option]!r}{limits}")
        if self.power_to_db is not False and self.feature not in ("mfcc", "melspectrogram"):
            raise self._invalid(f"power_to_db is for melspectrogram and mfcc, and {self.feature} has no power")
        values: dict[str, Any] = {**accepted, **self._arguments}
        n_fft, n_mels, n_mfcc = (values.get(key) for key in ("n_fft", "n_mels", "n_mfcc"))
        if n_fft and n_mels and n_mels > 1 + n_fft // 2:
            raise self._invalid(f"n_mels is {n_mels}, and a spectrum of n_fft {n_fft} has {1 + n_fft // 2} points")
        if n_mels and n_mfcc and n_mfcc > n_mels:  # librosa gives fewer without a word
            raise codes.TOO_MANY_CEPSTRA.invalid(key="n_mfcc", count=n_mfcc, bound="n_mels", most=n_mels)
        try:
            frames = self._computed(np.random.default_rng(0).normal(scale=0.1, size=self._trial).astype(np.float32))
        except Exception as error:  # librosa, numpy and scipy raise whatever they like for an unusable value
            raise self._invalid(f"{self.feature} refuses it: {type(error).__name__}: {error}") from None
        if frames.shape[1] == 0 or not np.isfinite(frames).all():
            raise self._invalid(f"{self.feature} gives frames that are empty or not finite")
        return self

    def _invalid(self, problem: str) -> PydanticCustomError:
        return codes.INVALID_FEATURE_OPTION.invalid(name=self.name, problem=problem)

    @property
    def _options(self) -> dict[str, Any]:
        return self.__pydantic_extra__ or {}

    @cached_property
    def _known(self) -> dict[str, object]:
        """Options of the function, and librosa's defaults."""
        options: dict[str, object] = {}
        for place in _TAKEN_BY[self.feature]:
            function: Any = library()
            for part in place.split("."):
                function = getattr(function, part)
            for option, parameter in inspect.signature(function).parameters.items():
                if option not in _NO_OPTIONS:
                    default = parameter.default
                    options.setdefault(option, float(default) if parameter.annotation is float else default)
        if self.feature == "zero_crossing_rate":
            options["pad"] = False  # zero_crossing_rate's own default for zero_crossings
        return options

    @property
    def _window(self) -> str | None:
        """The option that is the length of a frame; None: a constant-Q transform has a length for each tone."""
        return next((option for option in ("n_fft", "frame_length") if option in self._known), None)

    @property
    def _arguments(self) -> dict[str, Any]:
        """Keywords of the function."""
        keywords = {option: _number(value) for option, value in self._options.items()}
        if self._window == "n_fft":
            n_fft: Any = keywords.setdefault("n_fft", self._known["n_fft"])
            keywords.setdefault("win_length", min(_WINDOW, n_fft) if isinstance(n_fft, int) else None)
        elif self._window is not None:
            keywords.setdefault(self._window, _WINDOW)
        return {"hop_length": self.hop_length, **keywords}

    @property
    def _decibels(self) -> dict[str, Any] | None:
        """Keywords of power_to_db; None: it is not called here."""
        if self.power_to_db is False:
            return None
        options = {} if self.power_to_db is True else dict(self.power_to_db)
        return {**options, "ref": np.max} if options.get("ref") == "max" else options

    @property
    def _is_local(self) -> bool:
        """Whether a frame does not depend on all of the recording."""
        if self._window is None:
            return False
        if self.feature == "chroma_stft":
            return self._arguments.get("tuning") is not None
        if self.feature == "spectral_contrast":  # decibels below the loudest frame
            return bool(self._arguments.get("linear", False))
        decibels = self._decibels
        if decibels is None:
            return bool(self.feature != "mfcc")
        return decibels.get("top_db", 80.0) is None and decibels.get("ref") is not np.max

    @property
    def _length(self) -> int:
        """Samples of a window."""
        return int(self._arguments[str(self._window)])

    @property
    def _is_centred(self) -> bool:
        return self._window is None or bool(self._arguments.get("center", True))

    @property
    def hop(self) -> int:
        """Samples from one frame to the next."""
        return self.hop_length

    @property
    def frame_length(self) -> int:
        """Samples that a frame covers."""
        return self.hop_length if self._is_centred else self._length

    @property
    def context(self) -> int | None:
        """Frames to either side: half a window that is centred, and the differences; None: the recording."""
        if not self._is_local:
            return None
        half = self._length // 2 if self._is_centred else 0
        return math.ceil(half / self.hop_length) + (self.delta_width // 2 if self.deltas else 0)

    @property
    def whole_frames(self) -> int:
        """Frames of five minutes: longer recordings are computed in chunks of as many."""
        return math.ceil(300 * self.sample_rate / self.hop_length)

    @property
    def chunk_frames(self) -> int:
        """Frames of a chunk: those of five minutes."""
        return self.whole_frames

    @property
    def overlap_frames(self) -> int:
        """Frames of eight seconds, more than the longest filter of a constant-Q transform looks to either side."""
        return self.whole_frames * 8 // 300

    @property
    def _trial(self) -> int:
        """Samples of the noise that options are tried on."""
        window = self._arguments.get(str(self._window), 0)
        return self.sample_rate + 4 * self.hop_length + (window if isinstance(window, int) and window > 0 else 0)

    @cached_property
    def dimension(self) -> int:
        """Numbers a frame."""
        return int(self._computed(np.zeros(self._trial, np.float32)).shape[1])

    def describe(self) -> dict[str, Any]:
        """Fields, and the options that were given."""
        return {option: _shown(value) for option, value in self.model_dump(mode="python").items()}

    def extract(self, samples: Singles) -> Singles:
        """Frames of a stretch of samples.

        Args:
            samples: float32 (n,), full scale 1.

        Returns:
            float32 (frames, dimension): the function's rows, then their slopes, then their curvatures.
        """
        count = max(0, 1 + (len(samples) - self.frame_length) // self.hop_length)
        if count == 0:
            return np.empty((0, self.dimension), np.float32)
        return np.ascontiguousarray(self._computed(samples)[:count])

    def _computed(self, samples: Singles) -> Singles:
        arguments, decibels = self._arguments, self._decibels
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # recordings shorter than a window, silence without a pitch
            warnings.filterwarnings("error", "Empty filters")
            if decibels is None:
                if "sr" in inspect.signature(self._function).parameters:
                    arguments["sr"] = self.sample_rate
                rows = self._function(y=samples, **arguments)
            else:
                rows = self._in_decibels(samples, arguments, decibels)
        if self.deltas:
            rows = np.concatenate([rows, *(self._delta(rows, order) for order in range(1, self.deltas + 1))])
        return np.asarray(rows.T, np.float32)

    @property
    def _function(self) -> Callable[..., NDArray[Any]]:
        function: Callable[..., NDArray[Any]] = getattr(library().feature, self.feature)
        return function

    def _in_decibels(self, samples: Singles, arguments: dict[str, Any], decibels: dict[str, Any]) -> NDArray[Any]:
        cepstral = {}
        if self.feature == "mfcc":  # as librosa.feature.mfcc calls melspectrogram
            of_mfcc = inspect.signature(self._function).parameters
            cepstral = {option: arguments.pop(option) for option in of_mfcc if option in arguments}
            if "mel_norm" in cepstral:
                arguments["norm"] = cepstral.pop("mel_norm")
        power = library().feature.melspectrogram(y=samples, sr=self.sample_rate, **arguments)
        rows: NDArray[Any] = library().power_to_db(power, **decibels)
        return self._function(S=rows, **cepstral) if self.feature == "mfcc" else rows

    def _delta(self, rows: NDArray[Any], order: int) -> NDArray[Any]:
        result: NDArray[Any] = library().feature.delta(rows, width=self.delta_width, order=order, mode="nearest")
        return result


@cache
def library() -> ModuleType:
    """librosa, with its compiled functions loaded."""
    with one_process_compiles():
        import librosa
        import librosa.core.pitch
        import librosa.feature
        import librosa.util.utils
    return librosa


def _fits(value: object, default: object) -> bool:
    """Whether a value is of the kind of librosa's default; None and infinity are tried."""
    if value is None or value == _INFINITE:
        return True
    if isinstance(value, float) and math.isnan(value):
        return False
    if isinstance(value, bool) or isinstance(default, bool):
        return type(value) is type(default)
    if isinstance(value, int) and not 0 <= value <= _MOST:
        return False
    if isinstance(default, int):
        return isinstance(value, int)
    return isinstance(value, (int, float) if isinstance(default, float) else (int, float, str, list))


def _number(value: object) -> object:
    """A keyword's value: lists of YAML are tuples, and `inf` is a number."""
    return math.inf if value == _INFINITE else tuple(value) if isinstance(value, list) else value


def _shown(value: object) -> object:
    return _INFINITE if value == math.inf else value


class MfccFingerprint(Mfcc):
    """Fingerprints of MFCC; its fields are its options, those of `Mfcc`."""

    win_length: PositiveInt = Field(320, description="samples of the window: 20 ms at 16 kHz")

    name: ClassVar[str] = "mfcc-fingerprint"
    version: ClassVar[int] = 2
    chooses: ClassVar[bool] = False

    @model_validator(mode="after")
    def _two_coefficients(self) -> MfccFingerprint:
        if self.dimension == 0:
            raise families.INVALID_VALUE.saying(
                "a fingerprint needs two coefficients or more", "raise n_mfcc, or add deltas"
            ).invalid()
        return self

    @property
    def context(self) -> int:
        """Frames on either side for the differences, and the next frame."""
        return super().context + 1

    @property
    def dimension(self) -> int:
        """Bits per frame: one fewer than coefficients."""
        return super().dimension - 1

    def extract(self, samples: Singles) -> Singles:
        """Fingerprints of a stretch of samples.

        Args:
            samples: float32 (n,), full scale 1.

        Returns:
            float32 (frames, dimension) of zeros and ones: of the second coefficient, the third, and so on.
        """
        coefficients = super().extract(samples)
        return fingerprints(coefficients) if len(coefficients) else np.empty((0, self.dimension), np.float32)


def fingerprints(coefficients: Singles) -> Singles:
    """Eq. 2, for all frames of a recording.

    Args:
        coefficients: float32 (frames, n), n at least 2.

    Returns:
        float32 (frames, n - 1), zeros and ones.
    """
    values = coefficients.astype(np.float64)
    following = np.concatenate([values[1:], values[-1:]])
    fall = values - following
    bits: Singles = (fall[:, 1:] + fall[:, :-1] > 0).astype(np.float32)
    return bits
