"""The feature extractor `phnrec`: posteriors or logits of phones, or of their states.

Recognisers that subtract the mean of a recording (CZ, HU, RU) are extractors of whole utterances: recordings of up to five
minutes are computed at once, and longer ones in chunks of five minutes that share ten seconds, each with a mean of its own. The
others (EN) look 15 frames to either side. Frame t covers samples [t * hop, t * hop + frame_length).
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from swsdist.config.section import IsPath
from swsdist.errors import ConfigError
from swsdist.features.interface import Kind
from swsdist.features.phnrec.mel import log_energies
from swsdist.features.phnrec.network import REACH, Networks, softmax
from swsdist.features.phnrec.weights import STATES, Recogniser, read_recogniser

#: The column that non-speech phones are merged into.
NON_SPEECH = "non-speech"

#: Posteriors below are 0: numbers of fewer digits than float32 has are slow.
_TINY = float(np.finfo(np.float32).tiny)


class Phnrec(BaseModel):
    """BUT's phoneme recognisers; its fields are its options."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    weights: IsPath = Field(description="folder of a recogniser, for example PHN_CZ_SPDAT_LCRC_N1500")
    units: Literal["phones", "states"] = Field("phones", description="phones, or the three states of each")
    values: Literal["posteriors", "logits"] = Field(
        "posteriors", description="probabilities that sum to 1, or their logarithms, less the mean over the columns"
    )
    non_speech: Literal["merge", "keep", "drop"] = Field(
        "merge", description="phones that are no speech: one column, at the end; or as they are; or none"
    )
    non_speech_phones: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        ("int", "pau", "spk"), description="their names; those that the recogniser lacks do not matter"
    )

    name: ClassVar[str] = "phnrec"
    version: ClassVar[int] = 1
    whole_frames: ClassVar[int] = 30_000
    chunk_frames: ClassVar[int] = 30_000
    overlap_frames: ClassVar[int] = 1_000

    @model_validator(mode="after")
    def _there(self) -> Phnrec:
        # Read at once, so that a wrong folder is told while a config is checked.
        phones = self.recogniser.phones
        quiet = set(self.non_speech_phones)
        if self.non_speech != "keep" and not 0 < len(quiet & set(phones)) < len(phones):
            raise ConfigError(
                f"of the phones of {self.weights}, {', '.join(sorted(quiet & set(phones))) or 'none'} are no speech",
                where="features.options.non_speech_phones",
                remedy=f"name some of: {', '.join(phones)}; or set non_speech: keep",
            )
        return self

    @cached_property
    def recogniser(self) -> Recogniser:
        """What the folder says."""
        return read_recogniser(self.weights)

    @property
    def sample_rate(self) -> int:
        """Hz."""
        return self.recogniser.banks.rate

    @property
    def frame_length(self) -> int:
        """Samples under a frame."""
        return self.recogniser.banks.frame_length

    @property
    def hop(self) -> int:
        """Samples from one frame to the next."""
        return self.recogniser.banks.hop

    @property
    def context(self) -> int | None:
        """None where the mean of the recording is subtracted."""
        return None if self.recogniser.subtract_mean else REACH

    @property
    def kind(self) -> Kind:
        """What the numbers are."""
        return self.values

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of phones, or of states: `a.1`, `a.2`, `a.3`."""
        names = [name for names, _ in self._groups for name in names]
        return tuple(names)

    @property
    def dimension(self) -> int:
        """Numbers a frame."""
        return len(self.columns)

    def describe(self) -> dict[str, Any]:
        """All options with their values."""
        return self.model_dump(mode="json")

    def files(self) -> list[Path]:
        """Configuration, phones, windows and weights."""
        return self.recogniser.files

    @cached_property
    def _networks(self) -> Networks:
        return Networks(self.recogniser)

    @cached_property
    def _groups(self) -> list[tuple[list[str], list[int]]]:
        """Names of columns, and outputs that belong to them: as many outputs as columns, or several of one column."""
        phones = self.recogniser.phones
        quiet = [k for k, phone in enumerate(phones) if phone in self.non_speech_phones]
        kept = [k for k in range(len(phones)) if self.non_speech == "keep" or k not in quiet]
        groups: list[tuple[list[str], list[int]]] = []
        for k in kept:
            outputs = list(range(STATES * k, STATES * (k + 1)))
            named = [f"{phones[k]}.{state + 1}" for state in range(STATES)] if self.units == "states" else [phones[k]]
            groups.append((named, outputs))
        if self.non_speech == "merge":
            groups.append(([NON_SPEECH], [STATES * k + state for k in quiet for state in range(STATES)]))
        return groups

    def extract(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """Posteriors or logits of a stretch of samples.

        Args:
            samples: float32 (n,), full scale 1.

        Returns:
            float32 (frames, dimension). Posteriors are normalised over the columns: the class `oth`, and what is dropped, do
            not count. Logits are natural logarithms of the same, less their mean over the columns of a frame.
        """
        logits = self.state_logits(samples)
        if self.values == "posteriors":
            made = self._summed(softmax(logits).astype(np.float64))
            total = made.sum(axis=1, keepdims=True)
            # Where all that is left is 0 in float32, nothing is known.
            made = np.where(total > _TINY, made / np.maximum(total, _TINY), 1.0 / self.dimension)
            made[made < _TINY] = 0.0
            return made.astype(np.float32)
        made = self._summed(logits.astype(np.float64), logarithms=True)
        made -= made.mean(axis=1, keepdims=True)
        return made.astype(np.float32)

    def state_logits(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """What the networks put out, before the normalised exponential: float32 (frames, 3 x phones + 3)."""
        energies = log_energies(samples * np.float32(32768), self.recogniser.banks)
        with _one_thread():
            return self._networks.logits(energies)

    def _summed(self, outputs: NDArray[np.float64], *, logarithms: bool = False) -> NDArray[np.float64]:
        """Outputs of each column added up; of logarithms, the logarithm of their sum."""
        made = np.empty((len(outputs), self.dimension))
        first = 0
        for names, chosen in self._groups:
            part = outputs[:, chosen]
            if len(names) < len(chosen):
                if logarithms:
                    most = part.max(axis=1, keepdims=True)
                    part = np.log(np.exp(part - most).sum(axis=1, keepdims=True)) + most
                else:
                    part = part.sum(axis=1, keepdims=True)
            made[:, first : first + len(names)] = part
            first += len(names)
        return made


def _one_thread() -> Any:
    """Products in one thread of the BLAS: cut for several, they are rounded differently."""
    return _controller().limit(limits=1, user_api="blas")


def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    if not _known:
        _known.append(ThreadpoolController())
    return _known[0]


#: Libraries of this process; looking for them takes some milliseconds.
_known: list[Any] = []
