"""Mean and variance normalisation by recording, with the corpus's mean and variance as a prior.

The mean of a cut word is unreliable: subtracting it would remove the word itself. The corpus's mean and variance
therefore count as `corpus_frames` frames in addition to a recording's own: with m frames, the mean is (m own + n
corpus) / (m + n), and the second moment is averaged in the same way. The transform needs the complete recording; one of
ten minutes or more is computed in chunks of five minutes that share ten seconds, with one mean per chunk (the last is
up to ten minutes long).

Sources: Viikki and Laurila (1998), "Cepstral domain segmental feature vector normalization for noise robust speech
recognition"; the estimate with prior frames: Gauvain and Lee (1994), "Maximum a posteriori estimation for multivariate
Gaussian mixture observations of Markov chains".
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from swsdist.features.fitting.interface import Rounds
from swsdist.features.fitting.moments import OfMean, moments_of
from swsdist.features.fitting.interface import Model
from swsdist.features.transforms.interface import FittedTransform, Shape

_Moments = tuple[NDArray[np.float64], NDArray[np.float64]]

#: Least variance of a recording, relative to the corpus's variance.
_LEAST = 1e-3


class MeanVariance(FittedTransform[_Moments]):
    """Columns minus their mean, divided by their deviation."""

    variance: bool = True
    corpus_frames: Annotated[int, Field(ge=0)] = 50

    name: ClassVar[str] = "mean-variance"
    version: ClassVar[int] = 1
    context: ClassVar[int | None] = None

    def read(self, model: Model) -> _Moments:
        """Mean and deviation of the corpus's frames."""
        return moments_of(model, "moments")

    def takes(self, loaded: _Moments) -> int:
        """Number of columns of the mean."""
        return len(loaded[0])

    def shape(self, input_shape: Shape, loaded: _Moments | None) -> Shape:
        """Features of the same names."""
        return Shape(input_shape.columns, "features")

    def apply(self, frames: NDArray[np.float32]) -> NDArray[np.float32]:
        """Transform float32 (frames, columns) of a complete recording."""
        mean, deviation = self.loaded
        values, prior = (frames.astype(np.float64) - mean) / deviation, self.corpus_frames
        count = max(1, len(values) + prior)
        mean_shift = values.sum(axis=0) / count
        normalised: NDArray[np.float64] = values - mean_shift
        if self.variance:
            # In deviations of the corpus, the corpus has mean 0 and second moment 1.
            second = ((values**2).sum(axis=0) + prior) / count
            normalised /= np.sqrt(np.maximum(second - mean_shift**2, _LEAST))
        return normalised.astype(np.float32)

    def rounds(self) -> Rounds:
        """The rounds that fit mean and deviation."""
        return OfMean(lambda mean, deviation: Model("moments", 1, {"mean": mean, "deviation": deviation}))

    def matters(self) -> dict[str, object]:
        """Options that the mean depends on."""
        return {"hours": self.hours}
