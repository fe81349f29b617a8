"""Posteriors of phones by the components of a mixture, fitted to a corpus and its labels (`features.fitting.phones`).

Labels are those of the corpus (`corpus.alignments.phones`), or of a file that is named: a CTM, or a master label file. What is
made with them is not zero resource, and where the documents that are searched are those of the labels, every report says so.
`automatic` says that a program made the labels, which heard the documents and was told nothing: they are no oracle then.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr

from swsdist.config.section import IsPath
from swsdist.errors import ConfigError, DataError
from swsdist.features.fitting.interface import Rounds
from swsdist.features.fitting.mixture import NAMES, MixtureRounds
from swsdist.features.fitting.phones import Estimator, PhoneRounds
from swsdist.features.model import load_model
from swsdist.features.threads import one_thread
from swsdist.features.transforms.interface import Shape, TransformOptions
from swsdist.io.filesystem import locate

_WHERE = "features.transforms: phones, model"


class Phones(TransformOptions):
    """Posteriors of phones."""

    components: Annotated[int, Field(ge=1, le=4096)] = 256
    labels: IsPath | None = None
    automatic: bool = False
    hours: Annotated[float, Field(gt=0, le=100)] = 0.5
    iterations: Annotated[int, Field(ge=1, le=100)] = 8
    least_variance: Annotated[float, Field(gt=0, le=1)] = 0.01
    speech: bool = True
    prior: Annotated[float, Field(ge=0)] = 1.0
    values: Literal["posteriors", "logits"] = "posteriors"
    scale: Annotated[float, Field(gt=0, le=1)] = 1.0
    floor: Annotated[float, Field(gt=0, lt=0.01)] = 1e-4
    model: IsPath | None = None

    name: ClassVar[str] = "phones"
    version: ClassVar[int] = 1

    _loaded: list[Estimator] = PrivateAttr(default_factory=list)

    def becomes(self, given: Shape) -> Shape:
        """Posteriors or logits by the names of the labels; how many there are is not known before it is fitted."""
        if self.model is None:
            return Shape(("phones",), self.values)
        fitted = self._fitted()
        if len(fitted.mixture.mean) != len(given.columns):
            raise ConfigError(
                f"the mixture is one of {len(fitted.mixture.mean)} columns, and there are {len(given.columns)}",
                where=f"{_WHERE}: {self.model}",
                remedy="name the model that was made for these features",
            )
        return Shape(fitted.names, self.values)

    def _fitted(self) -> Estimator:
        if self.model is None:
            raise ConfigError(
                "the transform phones is not fitted",
                where=_WHERE,
                remedy="run a chain that fits it (search), or name a model",
            )
        if not self._loaded:
            where = f"{_WHERE}: {self.model}"
            try:
                model = load_model(*locate(self.model))
            except DataError as error:
                raise ConfigError(error.message, where=where, remedy=error.remedy) from None
            if model.name != "phones" or not {*NAMES, "conditional"} <= set(model.arrays):
                raise ConfigError(f"it is a {model.name}, no estimator of phones", where=where, remedy="fit it again")
            self._loaded.append(Estimator.of(model))
        return self._loaded[0]

    def apply(self, frames: NDArray[np.float32]) -> NDArray[np.float32]:
        """Float32 (frames, columns given) to float32 (frames, phones).

        Logits are natural logarithms of posteriors, less their mean over a frame.
        """
        with one_thread():
            made = np.maximum(self._fitted().posteriors(frames, self.scale), self.floor)
        made /= made.sum(axis=1, keepdims=True)
        if self.values == "logits":
            made = np.log(made)
            made -= made.mean(axis=1, keepdims=True)
        return made.astype(np.float32)

    def rounds(self, names: Sequence[str] = ()) -> Rounds:
        """By expectation and maximisation, and counts."""
        mixture = MixtureRounds(self.components, self.iterations, self.least_variance, speech=self.speech)
        return PhoneRounds(mixture, names, self.prior)

    def matters(self) -> dict[str, object]:
        """How it is fitted; what the labels are is known by their content."""
        return self.model_dump(
            mode="json",
            include={"components", "hours", "iterations", "least_variance", "speech", "prior", "automatic"},
        )

    def with_model(self, path: str) -> dict[str, object]:
        """Its options, with the model that was fitted."""
        return {**self.describe(), "labels": None, "model": path}

    def files(self) -> list[Path]:
        """The model."""
        return [] if self.model is None else [Path(self.model)]
