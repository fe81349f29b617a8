"""Mean and variance normalisation by recording, with the corpus's mean and variance counted in.

A cut word has no mean worth the name: what is taken out of it would be the word itself. So the corpus's mean and variance
count as `corpus_frames` frames beside a recording's own: with m frames, the mean is (m own + n corpus) / (m + n), and the
second moment is averaged in the same way. It looks at the whole recording; one of ten minutes or more is computed in chunks of
five minutes that share ten seconds, each with a mean of its own (the last is up to ten minutes long).

Sources: Viikki and Laurila (1998), "Cepstral domain segmental feature vector normalization for noise robust speech
recognition"; the estimate with prior frames: Gauvain and Lee (1994), "Maximum a posteriori estimation for multivariate
Gaussian mixture observations of Markov chains".
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr

from swsdist.config.section import IsPath
from swsdist.errors import ConfigError, DataError
from swsdist.features.fitting.interface import Rounds
from swsdist.features.fitting.moments import OfMean, mean_and_deviation
from swsdist.features.model import Model, load_model
from swsdist.features.transforms.interface import Shape, TransformOptions
from swsdist.io.filesystem import locate

_WHERE = "features.transforms: mean-variance, model"

#: Of the corpus's variance: the least that a recording has.
_LEAST = 1e-3


class MeanVariance(TransformOptions):
    """Columns less their mean, in deviations."""

    variance: bool = True
    corpus_frames: Annotated[int, Field(ge=0)] = 50
    hours: Annotated[float, Field(gt=0, le=100)] = 0.5
    model: IsPath | None = None

    name: ClassVar[str] = "mean-variance"
    version: ClassVar[int] = 1
    context: ClassVar[int | None] = None

    _loaded: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = PrivateAttr(default_factory=list)

    def becomes(self, given: Shape) -> Shape:
        """Features of the same names."""
        if self.model is not None and len(self._corpus()[0]) != len(given.columns):
            raise ConfigError(
                f"the model is of {len(self._corpus()[0])} columns, and there are {len(given.columns)}",
                where=f"{_WHERE}: {self.model}",
                remedy="name the model that was made for these features",
            )
        return Shape(given.columns, "features")

    def _corpus(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and deviation of the corpus's frames."""
        if self.model is None:
            raise ConfigError(
                "the mean and variance of the corpus are not fitted",
                where=_WHERE,
                remedy="run a chain that fits them (search), or name a model",
            )
        if not self._loaded:
            try:
                model = load_model(*locate(self.model))
            except DataError as error:
                raise ConfigError(error.message, where=f"{_WHERE}: {self.model}", remedy=error.remedy) from None
            if not {"mean", "deviation"} <= set(model.arrays):
                raise ConfigError(
                    f"it is a {model.name}, and has no mean and deviation",
                    where=f"{_WHERE}: {self.model}",
                    remedy="fit it again",
                )
            self._loaded.append(mean_and_deviation(model))
        return self._loaded[0]

    def apply(self, frames: NDArray[np.float32]) -> NDArray[np.float32]:
        """Float32 (frames, columns), those of a whole recording, to the same shape."""
        mean, deviation = self._corpus()
        values, prior = (frames.astype(np.float64) - mean) / deviation, self.corpus_frames
        count = max(1, len(values) + prior)
        own = values.sum(axis=0) / count
        made: NDArray[np.float64] = values - own
        if self.variance:
            # In deviations of the corpus its mean is 0 and its second moment 1.
            second = ((values**2).sum(axis=0) + prior) / count
            made /= np.sqrt(np.maximum(second - own**2, _LEAST))
        return made.astype(np.float32)

    def rounds(self) -> Rounds:
        """By the mean and deviation."""
        return OfMean(lambda mean, deviation: Model("moments", 1, {"mean": mean, "deviation": deviation}))

    def matters(self) -> dict[str, object]:
        """What the mean is taken of."""
        return {"hours": self.hours}

    def with_model(self, path: str) -> dict[str, object]:
        """Its options, with the model that was fitted."""
        return {**self.describe(), "model": path}

    def files(self) -> list[Path]:
        """The model."""
        return [] if self.model is None else [Path(self.model)]
