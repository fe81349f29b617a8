"""Posteriors of a Gaussian mixture's components, and of phones by its components, fitted to a corpus.

A chain fits the models before the first document is indexed (`features.fitting.mixture`).

Components (`Gmm`) have no given meaning, and need neither labels nor another language. Each probability is raised to at
least `floor`, and all are scaled to sum to 1 again.

Phones (`Phones`) need labels of frames: those of the corpus (`corpus.alignments.phones`), or of a file, a CTM or a
master label file. The result is not zero-resource, and if the searched documents are the labelled ones, every report
says so. `automatic` declares that a program labelled the documents from their audio alone; the labels are then no
oracle.

Source: Zhang and Glass (2009), "Unsupervised spoken keyword spotting via segmental DTW on Gaussian posteriorgrams".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from swsdist.config.section import IsPath
from swsdist.core.arrays import Singles
from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.features.fitting.interface import FEWER, Model, Rounds
from swsdist.features.fitting.mixture import NAMES, Estimator, Mixture, MixtureRounds, PhoneRounds
from swsdist.features.interface import one_thread
from swsdist.features.transforms.interface import FittedTransform, Shape

#: Frames computed at a time, so that intermediate results fit the cache.
_ROWS = 512


class Gmm(FittedTransform[Mixture]):
    """Posteriors of the components of a Gaussian mixture."""

    components: Annotated[int, Field(ge=1, le=4096)] = 128
    iterations: Annotated[int, Field(ge=1, le=100)] = 8
    least_variance: Annotated[float, Field(gt=0, le=1)] = 0.01
    speech: bool = True
    values: Literal["posteriors", "logits"] = "posteriors"
    scale: Annotated[float, Field(gt=0, le=1)] = 1.0
    keep: Annotated[int, Field(ge=1)] | None = None
    floor: Annotated[float, Field(ge=0, lt=0.01)] = 1e-5

    name: ClassVar[str] = "gmm"
    version: ClassVar[int] = 1

    def read(self, model: Model) -> Mixture:
        """The mixture of a model.

        Raises:
            ConfigError: it is another model, or has another number of components.
        """
        if (model.name, model.version) != ("gmm", 1) or not set(NAMES) <= set(model.arrays):
            raise families.UNUSABLE_MODEL(
                "the model {name!r} of version {version} is not a mixture of version 1",
                "create it with swsdist.features.fitting.mixture.mixture_model, or fit it",
                name=model.name,
                version=model.version,
            )
        mixture = Mixture.of(model)
        return mixture if model.settings.get(FEWER) == self.components else mixture.demand(self.components)

    def takes(self, loaded: Mixture) -> int:
        """Number of columns of the mixture."""
        return len(loaded.mean)

    def shape(self, input_shape: Shape, loaded: Mixture | None) -> Shape:
        """Posteriors or logits g0, g1, ..."""
        count = self.components if loaded is None else loaded.components
        return Shape(tuple(f"g{k}" for k in range(count)), self.values)

    def apply(self, frames: Singles) -> Singles:
        """Transform float32 (frames, input columns) to float32 (frames, components).

        Logits are natural logarithms of posteriors, minus their mean over a frame.
        """
        with one_thread():
            return self._posteriors(frames, self.loaded)

    def _posteriors(self, frames: Singles, mixture: Mixture) -> Singles:
        output = np.empty((len(frames), mixture.components), np.float32)
        for first in range(0, len(frames), _ROWS):
            posteriors = mixture.posteriors(frames[first : first + _ROWS], self.scale)
            if self.keep is not None and self.keep < mixture.components:
                least = np.partition(posteriors, -self.keep, axis=1)[:, [-self.keep]]
                posteriors[posteriors < least] = 0.0
            np.maximum(posteriors, self.floor, out=posteriors)
            posteriors /= posteriors.sum(axis=1, keepdims=True)
            posteriors[posteriors < 1e-30] = 0.0  # subnormal float32 numbers are slow to multiply
            if self.values == "logits":
                np.log(np.maximum(posteriors, 1e-30, out=posteriors), out=posteriors)
                posteriors -= posteriors.mean(axis=1, keepdims=True)
            output[first : first + _ROWS] = posteriors
        return output

    def rounds(self) -> Rounds:
        """The rounds of the mixture."""
        chosen = "components" in self.model_fields_set
        return MixtureRounds(self.components, self.iterations, self.least_variance, speech=self.speech, chosen=chosen)

    def matters(self) -> dict[str, object]:
        """Options of the mixture, without those of the output."""
        return self.model_dump(mode="json", include={"components", "hours", "iterations", "least_variance", "speech"})


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
        """The estimator of a model.

        Raises:
            ConfigError: it is another model, or has another number of components.
        """
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

    def apply(self, frames: Singles) -> Singles:
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
