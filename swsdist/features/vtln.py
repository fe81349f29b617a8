"""The feature extractor `vtln`: MFCC with frequencies warped per speaker, to normalise the length of vocal tracts.

A speaker's factor is the value of a grid under which the speaker's MFCC are most likely by a Gaussian mixture of all
speakers' unwarped MFCC. A factor above 1 means a long vocal tract, whose resonances are low. A chain fits the mixture,
and then the factors (`features.fitting.mixture`). For a speaker who is unknown or was absent from fitting, the factor
is estimated from the recording itself: for a query from its example; for a recording computed in chunks from the first
chunk.

Below a corner at 4/5 of the highest frequency, filter frequency f is taken from f / factor; above it, from the straight
line that keeps the highest frequency fixed. With factor 1 the frames equal those of `mfcc`.

Sources: Lee and Rose (1996), "Speaker normalization using efficient frequency warping procedures"; likelihood of a
mixture: Wegmann, McAllaster, Orloff and Peskin (1996), "Speaker normalization on conversational telephone speech";
piecewise linear: the HTK Book, 5.6.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from swsdist.config.section import IsPath
from swsdist.core.arrays import Floats, Singles
from swsdist.core.codes import features as codes
from swsdist.features.fitting.interface import Model, Rounds, read_model
from swsdist.features.fitting.mixture import Mixture, MixtureRounds, WarpRounds, likelihoods
from swsdist.features.interface import one_thread
from swsdist.features.mfcc import Mfcc
from swsdist.io.filesystem import local_file

#: Corner of the piecewise linear warp, relative to the highest frequency.
_CORNER = 0.8


class WarpedMfcc(Mfcc):
    """MFCC with frequencies warped by a factor."""

    factor: float = Field(1.0, gt=0.5, lt=2)

    chooses: ClassVar[bool] = False

    @property
    def _bins(self) -> Floats:
        """Frequencies of the spectrum, warped."""
        return warped(super()._bins, self.factor, self.upper_edge)


def warped(frequencies: Floats, factor: float, highest: float) -> Floats:
    """Warp frequencies, float64 (n,), Hz: times `factor` up to a corner, then linear to the highest, which is fixed."""
    corner = _CORNER * highest / max(factor, 1.0)
    slope = (highest - factor * corner) / (highest - corner)
    above = factor * corner + slope * (frequencies - corner)
    return np.where(frequencies <= corner, factor * frequencies, above)


class Vtln(BaseModel):
    """MFCC with a warp per speaker; its fields are its options."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mfcc: dict[str, Any] = Field({}, description="options of `mfcc`")
    lowest: Annotated[float, Field(gt=0.7, le=1)] = Field(0.88, description="least factor")
    highest: Annotated[float, Field(ge=1, lt=1.4)] = Field(1.12, description="greatest factor")
    step: Annotated[float, Field(ge=0.005, le=0.2)] = Field(0.04, description="from one factor to the next, from 1 on")
    components: Annotated[int, Field(ge=1, le=1024)] = Field(64, description="of the mixture")
    iterations: Annotated[int, Field(ge=1, le=100)] = Field(4, description="rounds after its last split")
    hours: Annotated[float, Field(gt=0, le=100)] = Field(0.5, description="of documents that it is fitted on")
    model: IsPath | None = Field(
        None, description="file of mixture and factors; by default they are fitted to the corpus"
    )
    warps: Literal["best", "all"] = Field(
        "best", description="best: MFCC under the speaker's factor; all: under all factors, side by side"
    )

    name: ClassVar[str] = "vtln"
    version: ClassVar[int] = 3
    whole_frames: ClassVar[int] = 30_000
    chunk_frames: ClassVar[int] = 30_000
    overlap_frames: ClassVar[int] = 1_000

    #: MFCC under the speaker's factor, if this is the extractor of a speaker.
    _bound: list[WarpedMfcc] = PrivateAttr(default_factory=list)

    @model_validator(mode="after")
    def _made(self) -> Vtln:
        self.under(1.0)  # validates the options early
        if self.model is not None and self.warps == "all":
            raise codes.MODEL_WITHOUT_USE.invalid(option="warps", value="all", other="best")
        return self

    def under(self, factor: float) -> WarpedMfcc:
        """MFCC under a factor."""
        return WarpedMfcc(**self.mfcc, factor=factor)

    @cached_property
    def _all(self) -> list[WarpedMfcc]:
        return [self.under(factor) for factor in self.factors]

    @cached_property
    def factors(self) -> list[float]:
        """The grid in ascending order; it contains 1."""
        below, above = int((1 - self.lowest) / self.step + 1e-9), int((self.highest - 1) / self.step + 1e-9)
        return [round(1 + k * self.step, 6) for k in range(-below, above + 1)]

    @property
    def sample_rate(self) -> int:
        """Hz."""
        return self._all[0].sample_rate

    @property
    def frame_length(self) -> int:
        """Samples under a frame."""
        return self._all[0].frame_length

    @property
    def hop(self) -> int:
        """Samples from one frame to the next."""
        return self._all[0].hop

    @property
    def context(self) -> int | None:
        """None, because a factor may depend on the entire recording."""
        return self._all[0].context if self.warps == "all" else None

    @property
    def dimension(self) -> int:
        """Numbers a frame."""
        return self._all[0].dimension * (len(self.factors) if self.warps == "all" else 1)

    @property
    def upper_edge(self) -> float:
        """Upper edge of the highest filter, Hz."""
        return self._all[0].upper_edge

    def describe(self) -> dict[str, Any]:
        """All options with their values."""
        return self.model_dump(mode="json")

    def files(self) -> list[Path]:
        """The model."""
        return [] if self.model is None else [local_file(self.model)]

    # -- fitting to the corpus (features.fitting)
    # ------------------------------------------------------------------------

    @property
    def learns(self) -> bool:
        """Whether the mixture and the factors are requested but not yet fitted."""
        return self.warps == "best" and self.model is None

    def learns_from(self) -> dict[str, object]:
        """Options of the extractor for fitting, which yields MFCC under all factors."""
        grid = {"lowest": self.lowest, "highest": self.highest, "step": self.step}
        return {"mfcc": self.mfcc, **grid, "warps": "all"}

    def rounds(self) -> Rounds:
        """The rounds of the mixture, and one for the factors."""
        return WarpRounds(MixtureRounds(self.components, self.iterations, 0.01), self.factors)

    def matters(self) -> dict[str, object]:
        """Options of the mixture that the model depends on."""
        return {"components": self.components, "iterations": self.iterations, "hours": self.hours}

    def with_model(self, path: str) -> dict[str, object]:
        """The options with the path of the fitted model."""
        return {**self.describe(), "model": path}

    @cached_property
    def _fitted(self) -> tuple[Mixture, dict[str, float]]:
        """The mixture, and the factors of speakers."""
        where = "features.options.model"
        if self.model is None:
            raise codes.MODEL_NOT_FITTED(where=where, name="vtln", otherwise="")
        return read_model(self.model, f"{where}: {self.model}", self._read)

    def _read(self, model: Model) -> tuple[Mixture, dict[str, float]]:
        speakers: Any = model.settings.get("speakers")
        if model.name != "vtln" or len(model.arrays["mean"]) != self._all[0].dimension:
            raise codes.WRONG_MODEL(name=model.name, wanted="a vtln model for these MFCC")
        return Mixture.of(model).demand(self.components), dict(
            zip(speakers, model.arrays["factors"].tolist(), strict=True)
        )

    # -- frames ----------------------------------------------------------------------------------------------------------

    def of_speaker(self, speaker: str | None) -> Vtln:
        """The extractor for a speaker; for an unknown speaker each recording has its own factor."""
        factors = self._fitted[1] if self.warps == "best" else {}
        if speaker not in factors:
            return self
        factor = factors[speaker]
        return self._under(self._all[self.factors.index(factor)] if factor in self.factors else self.under(factor))

    def of_recording(self, samples: Singles) -> Vtln:
        """The extractor for a recording that begins with these samples, with a single factor throughout."""
        if self.warps == "all" or self._bound:
            return self
        return self._under(self._all[self._best([item.extract(samples) for item in self._all])])

    def _under(self, warped_mfcc: WarpedMfcc) -> Vtln:
        copy = self.model_copy()
        copy._bound = [warped_mfcc]
        return copy

    def extract(self, samples: Singles) -> Singles:
        """MFCC of a stretch of samples, float32 (n,), full scale 1: float32 (frames, dimension)."""
        if self.warps == "best" and self._bound:
            return self._bound[0].extract(samples)
        under = [item.extract(samples) for item in self._all]
        if self.warps == "all":
            return np.concatenate(under, axis=1)
        return under[self._best(under)]

    def _best(self, under: list[Singles]) -> int:
        """Index of the factor under which the louder half of a recording's frames is most likely."""
        loudness = under[self.factors.index(1.0)][:, 0]
        loud = loudness >= np.median(loudness) if len(loudness) else np.ones(0, np.bool_)
        with one_thread():
            return WarpRounds.best(likelihoods(self._fitted[0], [item[loud] for item in under]), self.factors)
