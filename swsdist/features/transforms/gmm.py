"""Posteriors of the components of a Gaussian mixture, fitted to the corpus's speech before the first document is indexed.

What they stand for nobody said: no label and no other language is needed. A chain fits the mixture
(`features.fitting.mixture`).

Source: Zhang and Glass (2009), "Unsupervised spoken keyword spotting via segmental DTW on Gaussian posteriorgrams"; floor and
renormalisation as there: each probability is at least `floor`, and they sum to 1 again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr

from swsdist.config.section import IsPath
from swsdist.errors import ConfigError, DataError
from swsdist.features.fitting.interface import Rounds
from swsdist.features.fitting.mixture import NAMES, Mixture, MixtureRounds
from swsdist.features.model import load_model
from swsdist.features.threads import one_thread
from swsdist.features.transforms.interface import Shape, TransformOptions
from swsdist.io.filesystem import locate

#: Frames computed at a time: keeps what is between in cache.
_ROWS = 512

_WHERE = "features.transforms: gmm, model"


class Gmm(TransformOptions):
    """Posteriors of the components of a Gaussian mixture."""

    components: Annotated[int, Field(ge=1, le=4096)] = 128
    hours: Annotated[float, Field(gt=0, le=100)] = 0.5
    iterations: Annotated[int, Field(ge=1, le=100)] = 8
    least_variance: Annotated[float, Field(gt=0, le=1)] = 0.01
    speech: bool = True
    values: Literal["posteriors", "logits"] = "posteriors"
    scale: Annotated[float, Field(gt=0, le=1)] = 1.0
    keep: Annotated[int, Field(ge=1)] | None = None
    floor: Annotated[float, Field(ge=0, lt=0.01)] = 1e-5
    model: IsPath | None = None

    name: ClassVar[str] = "gmm"
    version: ClassVar[int] = 1

    _mixture: list[Mixture] = PrivateAttr(default_factory=list)

    def becomes(self, given: Shape) -> Shape:
        """Posteriors or logits g0, g1, ..."""
        count = self.components
        if self.model is not None:
            count = self._fitted().components
            if len(self._fitted().mean) != len(given.columns):
                raise ConfigError(
                    f"the mixture is one of {len(self._fitted().mean)} columns, and there are {len(given.columns)}",
                    where=f"{_WHERE}: {self.model}",
                    remedy="name the model that was made for these features",
                )
        return Shape(tuple(f"g{k}" for k in range(count)), self.values)

    def _fitted(self) -> Mixture:
        if self.model is None:
            raise ConfigError(
                "the transform gmm is not fitted",
                where=_WHERE,
                remedy="run a chain that fits it (search), or name a model",
            )
        if not self._mixture:
            where = f"{_WHERE}: {self.model}"
            try:
                model = load_model(*locate(self.model))
            except DataError as error:
                raise ConfigError(error.message, where=where, remedy=error.remedy) from None
            if (model.name, model.version) != ("gmm", 1) or not set(NAMES) <= set(model.arrays):
                raise ConfigError(
                    f"it is a {model.name} of version {model.version}, no mixture of version 1",
                    where=where,
                    remedy="make it with swsdist.features.fitting.mixture.mixture_model, or fit it",
                )
            self._mixture.append(Mixture.of(model))
        return self._mixture[0]

    def apply(self, frames: NDArray[np.float32]) -> NDArray[np.float32]:
        """Float32 (frames, columns given) to float32 (frames, components).

        Logits are natural logarithms of posteriors, less their mean over a frame.
        """
        with one_thread():
            return self._posteriors(frames, self._fitted())

    def _posteriors(self, frames: NDArray[np.float32], mixture: Mixture) -> NDArray[np.float32]:
        made = np.empty((len(frames), mixture.components), np.float32)
        for first in range(0, len(frames), _ROWS):
            posteriors = mixture.posteriors(frames[first : first + _ROWS], self.scale)
            if self.keep is not None and self.keep < mixture.components:
                least = np.partition(posteriors, -self.keep, axis=1)[:, [-self.keep]]
                posteriors[posteriors < least] = 0.0
            posteriors = np.maximum(posteriors, self.floor)
            posteriors /= posteriors.sum(axis=1, keepdims=True)
            posteriors[posteriors < 1e-30] = 0.0  # what float32 has no whole digits for is slow to multiply
            if self.values == "logits":
                posteriors = np.log(np.maximum(posteriors, 1e-30))
                posteriors -= posteriors.mean(axis=1, keepdims=True)
            made[first : first + _ROWS] = posteriors
        return made

    def rounds(self) -> Rounds:
        """By expectation and maximisation."""
        return MixtureRounds(self.components, self.iterations, self.least_variance, speech=self.speech)

    def matters(self) -> dict[str, object]:
        """How the mixture is fitted; not what is made of it."""
        return self.model_dump(mode="json", include={"components", "hours", "iterations", "least_variance", "speech"})

    def with_model(self, path: str) -> dict[str, object]:
        """Its options, with the model that was fitted."""
        return {**self.describe(), "model": path}

    def files(self) -> list[Path]:
        """The model."""
        return [] if self.model is None else [Path(self.model)]
