"""Principal components, whitened or not, fitted to the documents of the corpus before the first is indexed.

A chain fits it (`features.fitting`), and puts the model in the place of the option `model`; it is then the projection
of that model, with its exact sums (`features.transforms.project`).

Source: the eigenvectors of the covariance by falling eigenvalue; whitened, each is divided by the root of its eigenvalue, so
that columns have variance 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr

from swsdist.config.section import IsPath
from swsdist.errors import ConfigError
from swsdist.features.fitting.interface import Rounds
from swsdist.features.fitting.moments import Moments, OfCovariance
from swsdist.features.model import Model
from swsdist.features.transforms.interface import Shape, TransformOptions
from swsdist.features.transforms.project import Project, projection

#: Of the largest eigenvalue: what varies less cannot be whitened.
_LEAST = 1e-9


class Pca(TransformOptions):
    """The first principal components."""

    columns: Annotated[int, Field(ge=1)]
    whiten: bool = True
    hours: Annotated[float, Field(gt=0, le=100)] = 0.25
    model: IsPath | None = None

    name: ClassVar[str] = "pca"
    version: ClassVar[int] = 1

    _project: list[Project] = PrivateAttr(default_factory=list)

    def becomes(self, given: Shape) -> Shape:
        """Features p0, p1, ..."""
        if self.columns > len(given.columns):
            raise ConfigError(
                f"{self.columns} principal components of {len(given.columns)} columns",
                where="features.transforms: pca, columns",
                remedy="ask for fewer",
            )
        if self.model is not None:
            return self._fitted().becomes(given)
        return Shape(tuple(f"p{k}" for k in range(self.columns)), "features")

    def _fitted(self) -> Project:
        if self.model is None:
            raise ConfigError(
                "the transform pca is not fitted",
                where="features.transforms: pca, model",
                remedy="run a chain that fits it (search), or name a model",
            )
        if not self._project:
            self._project.append(Project(model=self.model, columns=self.columns))
        return self._project[0]

    def apply(self, frames: NDArray[np.float32]) -> NDArray[np.float32]:
        """Float32 (frames, columns given) to float32 (frames, columns made)."""
        return self._fitted().apply(frames)

    def solve(self, moments: Moments) -> Model:
        """The projection that a covariance gives.

        Raises:
            ConfigError: there are fewer dimensions that vary than components.
        """
        values, axes = np.linalg.eigh(moments.covariance)
        values, axes = values[::-1][: self.columns], axes[:, ::-1][:, : self.columns]
        if not values[-1] > _LEAST * values[0]:
            vary = int((values > _LEAST * values[0]).sum())
            raise ConfigError(
                f"{self.columns} principal components of features of which {vary} vary",
                where="features.transforms: pca, columns",
                remedy=f"ask for {max(vary, 1)} at most",
            )
        # An axis has two directions: the one whose largest number is positive.
        largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=0, keepdims=True), axis=0)
        axes = axes * np.sign(largest)
        if self.whiten:
            axes = axes / np.sqrt(values)
        deviation = np.sqrt(np.diag(moments.covariance))
        return projection(moments.mean, axes, np.where(deviation > 0, deviation, 1.0))

    def rounds(self) -> Rounds:
        """By the covariance."""
        return OfCovariance(self.solve)

    def matters(self) -> dict[str, object]:
        """All options."""
        return self.model_dump(mode="json", exclude={"model"})

    def with_model(self, path: str) -> dict[str, object]:
        """Its options, with the model that was fitted."""
        return {**self.describe(), "model": path}

    def files(self) -> list[Path]:
        """The model."""
        return [] if self.model is None else [Path(self.model)]
