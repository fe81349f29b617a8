"""Posteriors of phones from the components of a mixture, fitted to a corpus and its labels (`features.fitting.phones`).

Labels come from the corpus (`corpus.alignments.phones`), or from a file: a CTM, or a master label file. The result is
not zero-resource, and if the searched documents are the labelled ones, every report says so. `automatic` declares that
a program labelled the documents from their audio alone; the labels are then no oracle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from swsdist.config.section import IsPath
from swsdist.core.codes import features as codes
from swsdist.features.fitting.interface import Rounds
from swsdist.features.fitting.mixture import NAMES, MixtureRounds
from swsdist.features.fitting.mixture import Estimator, PhoneRounds
from swsdist.features.model import Model
from swsdist.features.threads import one_thread
from swsdist.features.transforms.interface import FittedTransform
from swsdist.features.transforms.interface import Shape


class Phones(FittedTransform[Estimator]):
    """Posteriors of phones."""

    components: Annotated[int, Field(ge=1, le=4096)] = 256
    labels: IsPath | None = None
    automatic: bool = False
    iterations: Annotated[int, Field(ge=1, le=100)] = 8
    least_variance: Annotated[float, Field(gt=0, le=1)] = 0.01
    speech: bool = True
    prior: Annotated[float, Field(ge=0)] = 1.0
    values: Literal["posteriors", "logits"] = "posteriors"
    scale: Annotated[float, Field(gt=0, le=1)] = 1.0
    floor: Annotated[float, Field(gt=0, lt=0.01)] = 1e-4

    name: ClassVar[str] = "phones"
    version: ClassVar[int] = 1

    def read(self, model: Model) -> Estimator:
        """The estimator."""
        if model.name != "phones" or not {*NAMES, "conditional"} <= set(model.arrays):
            raise codes.WRONG_MODEL(name=model.name, wanted="an estimator of phones")
        estimator = Estimator.of(model)
        estimator.mixture.demand(self.components)
        return estimator

    def takes(self, loaded: Estimator) -> int:
        """Number of columns of the mixture."""
        return len(loaded.mixture.mean)

    def shape(self, input_shape: Shape, loaded: Estimator | None) -> Shape:
        """Posteriors or logits named by the labels; their number is unknown before fitting."""
        return Shape(("phones",) if loaded is None else loaded.names, self.values)

    def apply(self, frames: NDArray[np.float32]) -> NDArray[np.float32]:
        """Transform float32 (frames, input columns) to float32 (frames, phones).

        Logits are natural logarithms of posteriors, minus their mean over a frame.
        """
        with one_thread():
            posteriors = np.maximum(self.loaded.posteriors(frames, self.scale), self.floor)
        posteriors /= posteriors.sum(axis=1, keepdims=True)
        if self.values == "logits":
            posteriors = np.log(posteriors)
            posteriors -= posteriors.mean(axis=1, keepdims=True)
        return posteriors.astype(np.float32)

    def rounds(self, names: Sequence[str] = ()) -> Rounds:
        """The rounds: expectation maximisation, then counts."""
        mixture = MixtureRounds(self.components, self.iterations, self.least_variance, speech=self.speech)
        return PhoneRounds(mixture, names, self.prior)

    def matters(self) -> dict[str, object]:
        """Options of the fit; labels are identified by their content."""
        return self.model_dump(
            mode="json",
            include={"components", "hours", "iterations", "least_variance", "speech", "prior", "automatic"},
        )
