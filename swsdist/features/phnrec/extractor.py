"""The feature extractor `phnrec`: posteriors or logits of phones, or of their states.

Recognisers that subtract the mean of a recording (CZ, HU, RU) are whole-utterance extractors: recordings of up to five
minutes are computed at once, and longer ones in chunks of five minutes that share ten seconds, with one mean per chunk.
The others (EN) need 15 frames of context on either side. Frame t covers samples [t * hop, t * hop + frame_length).

The mean of a word cut out of speech is unreliable, and higher than that of a sentence with pauses. With `corpus_frames`
n, the mean of a recording of m frames is (m own + n corpus) / (n + m); a chain fits the corpus's mean first.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from swsdist.config.section import IsPath
from swsdist.core.arrays import Floats, Singles
from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.features.fitting.interface import Model, Rounds, read_model
from swsdist.features.fitting.moments import OfMean
from swsdist.features.interface import Kind, one_thread
from swsdist.features.phnrec.network import REACH, Networks, log_energies, softmax
from swsdist.features.phnrec.weights import STATES, Recogniser, read_recogniser
from swsdist.io.filesystem import local_file

#: The column that non-speech phones are merged into.
NON_SPEECH = "non-speech"

#: Smaller posteriors are set to 0: subnormal float32 numbers are slow.
_TINY = float(np.finfo(np.float32).tiny)


class Phnrec(BaseModel):
    """BUT's phoneme recognisers; its fields are its options."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    weights: IsPath = Field(description="folder of a recogniser, for example PHN_CZ_SPDAT_LCRC_N1500")
    units: Literal["phones", "states"] = Field("phones", description="phones, or the three states of each")
    values: Literal["posteriors", "logits", "energies"] = Field(
        "posteriors",
        description="posteriors: probabilities that sum to 1; logits: their logarithms, less the mean over the columns; "
        "energies: log mel energies",
    )
    non_speech: Literal["merge", "keep", "drop"] = Field(
        "merge",
        description="phones that are no speech; merge: into one column, the last; keep: as they are; drop: without them",
    )
    non_speech_phones: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        ("int", "pau", "spk"), description="their names; those that the recogniser lacks do not matter"
    )
    corpus_frames: int = Field(
        0,
        ge=0,
        description="weight, in frames, of the corpus's mean energies when averaged with the recording's own; 300 suits short "
        "queries",
    )
    hours: Annotated[float, Field(gt=0, le=100)] = Field(0.25, description="of documents that this mean is taken of")
    model: IsPath | None = Field(None, description="file of this mean; by default it is fitted to the corpus")

    name: ClassVar[str] = "phnrec"
    version: ClassVar[int] = 1
    whole_frames: ClassVar[int] = 30_000
    chunk_frames: ClassVar[int] = 30_000
    overlap_frames: ClassVar[int] = 1_000

    @model_validator(mode="after")
    def _there(self) -> Phnrec:
        # Read now, so that a wrong folder is reported when a config is checked.
        phones = self.recogniser.phones
        quiet = set(self.non_speech_phones)
        if self.model is not None and not self.corpus_frames:
            raise codes.MODEL_WITHOUT_USE.invalid(option="corpus_frames", value=0, other="300")
        if self.non_speech != "keep" and not 0 < len(quiet & set(phones)) < len(phones):
            raise families.UNUSABLE_MODEL(
                "the non-speech phones of {folder} are {phones}: some must be, and not all",
                "name some of: {known}; or set non_speech: keep",
                where="features.options.non_speech_phones",
                folder=self.weights,
                phones=", ".join(sorted(quiet & set(phones))) or "none",
                known=", ".join(phones),
            )
        return self

    @cached_property
    def recogniser(self) -> Recogniser:
        """The recogniser that the folder describes."""
        return read_recogniser(self.weights)

    @property
    def sample_rate(self) -> int:
        """Hz."""
        return self.recogniser.banks.rate

    @property
    def frame_length(self) -> int:
        """Samples of a frame."""
        return self.recogniser.banks.frame_length

    @property
    def hop(self) -> int:
        """Samples from one frame to the next."""
        return self.recogniser.banks.hop

    @property
    def context(self) -> int | None:
        """Frames on either side; None if the mean of the recording is subtracted."""
        if self.values == "energies":
            return 0
        return None if self.recogniser.subtract_mean else REACH

    @property
    def kind(self) -> Kind:
        """Kind of the frames."""
        return "features" if self.values == "energies" else self.values

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of phones, or of states: `a.1`, `a.2`, `a.3`; or of bands."""
        if self.values == "energies":
            return tuple(f"band{k}" for k in range(self.recogniser.banks.bands))
        phones = [self.recogniser.phones[k] for k in self._kept]
        if self.units == "states":
            phones = [f"{phone}.{state + 1}" for phone in phones for state in range(STATES)]
        return (*phones, *([NON_SPEECH] if self._merged else []))

    @property
    def dimension(self) -> int:
        """Numbers a frame."""
        return len(self.columns)

    def describe(self) -> dict[str, Any]:
        """All options with their values."""
        return self.model_dump(mode="json")

    def files(self) -> list[Path]:
        """Configuration, phones, windows and weights, and the corpus's mean."""
        return [*self.recogniser.files, *([] if self.model is None else [local_file(self.model)])]

    # -- fitting to the corpus (features.fitting)
    # ------------------------------------------------------------------------

    @property
    def learns(self) -> bool:
        """Whether the corpus's mean is requested but not yet fitted."""
        return (
            self.corpus_frames > 0
            and self.recogniser.subtract_mean
            and self.values != "energies"
            and self.model is None
        )

    def learns_from(self) -> dict[str, object]:
        """Options of the extractor for fitting, which yields energies; these do not depend on the output options."""
        return {"weights": self.weights, "values": "energies"}

    def rounds(self) -> Rounds:
        """The rounds that fit the mean."""
        return OfMean(lambda mean, deviation: Model("mel-mean", 1, {"mean": mean}))

    def matters(self) -> dict[str, object]:
        """Options that the mean depends on; recognisers with the same energies share it."""
        return {"hours": self.hours}

    def with_model(self, path: str) -> dict[str, object]:
        """The options with the path of the fitted model."""
        return {**self.describe(), "model": path}

    @cached_property
    def _corpus_mean(self) -> Floats | None:
        if not self.corpus_frames or not self.recogniser.subtract_mean:
            return None
        where = "features.options.model"
        if self.model is None:
            raise codes.MODEL_NOT_FITTED(
                where=where, name="the mean of the corpus", otherwise=", or set corpus_frames: 0"
            )
        return read_model(self.model, f"{where}: {self.model}", self._mean_of)

    def _mean_of(self, model: Model) -> Floats:
        mean, bands = model.arrays.get("mean"), self.recogniser.banks.bands
        if model.name != "mel-mean" or mean is None or mean.shape != (bands,):
            raise codes.WRONG_MODEL(name=model.name, wanted=f"a mean of {bands} bands")
        return np.asarray(mean, np.float64)

    @cached_property
    def _networks(self) -> Networks:
        return Networks(self.recogniser)

    @cached_property
    def _kept(self) -> list[int]:
        """Phones with separate columns."""
        phones = enumerate(self.recogniser.phones)
        return [k for k, phone in phones if self.non_speech == "keep" or phone not in self.non_speech_phones]

    @cached_property
    def _merged(self) -> list[int]:
        """Outputs, three per phone, that form the last column."""
        phones = range(len(self.recogniser.phones)) if self.non_speech == "merge" else ()
        return [STATES * k + state for k in phones if k not in self._kept for state in range(STATES)]

    @cached_property
    def _columns_of_outputs(self) -> Floats:
        """1 where an output contributes to a column: float64 (outputs, dimension)."""
        made = np.zeros((STATES * (len(self.recogniser.phones) + 1), self.dimension))
        column = 0
        for k in self._kept:
            for state in range(STATES):
                made[STATES * k + state, column] = 1.0
                column += self.units == "states" or state == STATES - 1
        made[self._merged, -1:] = 1.0
        return made

    def extract(self, samples: Singles) -> Singles:
        """Posteriors or logits of a stretch of samples.

        Args:
            samples: float32 (n,), full scale 1.

        Returns:
            float32 (frames, dimension). Posteriors are normalised over the columns, without the class `oth` and dropped
            phones. Logits are their natural logarithms, minus the mean over the columns of a frame.
        """
        if self.values == "energies":
            return self._energies(samples).astype(np.float32)
        if self.values == "posteriors":
            with one_thread():
                made = softmax(self._logits(samples)).astype(np.float64) @ self._columns_of_outputs
            total = made.sum(axis=1, keepdims=True)
            # If all remaining posteriors are 0 in float32, all columns are 0.
            made /= np.maximum(total, _TINY)
            made[total[:, 0] <= _TINY] = 1.0 / self.dimension
            made[made < _TINY] = 0.0
            return made.astype(np.float32)
        made = self._log_summed(self.state_logits(samples).astype(np.float64))
        made -= made.mean(axis=1, keepdims=True)
        return made.astype(np.float32)

    def state_logits(self, samples: Singles) -> Singles:
        """Outputs of the networks before the softmax: float32 (frames, 3 x phones + 3)."""
        with one_thread():  # several threads split products, and round them differently
            return self._logits(samples)

    def _logits(self, samples: Singles) -> Singles:
        return self._networks.logits(self._energies(samples), self._corpus_mean, self.corpus_frames)

    def _energies(self, samples: Singles) -> Floats:
        return log_energies(samples * np.float32(32768), self.recogniser.banks)

    def _log_summed(self, logarithms: Floats) -> Floats:
        """The logarithm of the sum of each column's outputs."""
        phones = len(self.recogniser.phones)
        made = logarithms[:, : STATES * phones].reshape(len(logarithms), phones, STATES)[:, self._kept]
        made = made.reshape(len(made), STATES * len(self._kept)) if self.units == "states" else _log_of_sum(made)
        if self._merged:
            made = np.column_stack([made, _log_of_sum(logarithms[:, self._merged])])
        return made


def _log_of_sum(logarithms: Floats) -> Floats:
    """The logarithm of the sum over the last axis."""
    most = logarithms.max(axis=-1, keepdims=True)
    made: Floats = np.log(np.exp(logarithms - most).sum(axis=-1)) + most[..., 0]
    return made
