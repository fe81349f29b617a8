"""Principal components, whitened or not, fitted to the documents of the corpus before the first is indexed.

A chain fits it (`features.fitting`), and puts the model in the place of the option `model`; it is then the projection
of that model, with its exact sums (`features.transforms.project`).

Source: the eigenvectors of the covariance by falling eigenvalue; whitened, each is divided by the root of its eigenvalue, so
that columns have variance 1.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from swsdist.core.codes import features as codes
from swsdist.features.fitting.interface import Rounds
from swsdist.features.fitting.moments import Moments, OfCovariance
from swsdist.features.model import Model
from swsdist.features.transforms.fitted import Hours
from swsdist.features.transforms.project import FittedProjection, directed, projection

#: Of the largest eigenvalue: what varies less cannot be whitened.
_LEAST = 1e-9


class Pca(FittedProjection):
    """The first principal components."""

    whiten: bool = True
    hours: Hours = 0.25

    name: ClassVar[str] = "pca"
    version: ClassVar[int] = 1
    makes: ClassVar[str] = "principal components"
    letter: ClassVar[str] = "p"

    def solve(self, moments: Moments) -> Model:
        """The projection that a covariance gives.

        Raises:
            ConfigError: there are fewer dimensions that vary than components.
        """
        values, axes = np.linalg.eigh(moments.covariance)
        values, axes = values[::-1][: self.columns], axes[:, ::-1][:, : self.columns]
        if not values[-1] > _LEAST * values[0]:
            vary = int((values > _LEAST * values[0]).sum())
            raise codes.TOO_MANY_COMPONENTS(
                where="features.transforms: pca, columns",
                wanted=self.columns,
                kind="principal components",
                available=max(vary, 1),
            )
        axes = directed(axes)
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
