"""Projections fitted to the corpus: principal components (PCA), whitened or not, and linear discriminants (LDA, HLDA).

A chain fits them before the first document is indexed (`features.fitting.moments`), and puts the model in the place of
the option `model`. Each is then the projection of its model, with exact sums (`features.transforms.project`).

Principal components are the eigenvectors of the covariance by falling eigenvalue; whitened, each is divided by the root
of its eigenvalue, so that columns have variance 1. Frames of an encoder that processes a stretch also tell their
position in it, in some layers more than what is said (`docs/concepts/encoders.md`). With `positions`, the directions in
which the means of the frames at each position differ most are removed first (nuisance attribute projection).

Discriminants need labels of frames: those of the corpus (`corpus.alignments.phones`), or of a file, a CTM or a master
label file. The result is not zero-resource, and if the searched documents are the labelled ones, every report says so.
`automatic` declares that a program labelled the documents from their audio alone; the labels are then no oracle.

Sources: positions: Solomonoff, Quillen and Campbell (2004), "Channel compensation for SVM speaker recognition";
discriminants: those of `swsdist.features.fitting.moments`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from swsdist.config.section import IsPath
from swsdist.core.codes import families
from swsdist.core.errors import ConfigError
from swsdist.features.fitting.interface import FEWER, Model, Rounds
from swsdist.features.fitting.moments import Moments, OfClasses, OfCovariance
from swsdist.features.transforms.interface import Hours
from swsdist.features.transforms.project import FittedProjection, directed, projection

#: Of the largest eigenvalue: what varies less cannot be whitened.
_LEAST = 1e-9


class Pca(FittedProjection):
    """The first principal components."""

    whiten: bool = True
    hours: Hours = 0.25
    positions: Annotated[int, Field(ge=0)] = 0

    name: ClassVar[str] = "pca"
    version: ClassVar[int] = 1
    makes: ClassVar[str] = "principal components"
    letter: ClassVar[str] = "p"

    def solve(self, moments: Moments) -> Model:
        """The projection that a covariance gives: fewer components, if fewer dimensions vary.

        Raises:
            ConfigError: positions are to be removed from frames that have none.
        """
        covariance = moments.covariance
        if self.positions and moments.at_positions is None:
            raise families.UNSUPPORTED.of(ConfigError)(
                "these frames are the same wherever in a recording they stand",
                "leave out positions: it is for encoders that read a stretch at once",
                where="features.transforms: pca, positions",
            )
        if moments.at_positions is not None and len(moments.at_positions):
            spread, directions = np.linalg.eigh(moments.at_positions.T @ moments.at_positions)
            # Of few positions there are fewer directions.
            away = directions[:, -self.positions :][:, spread[-self.positions :] > _LEAST * spread[-1]]
            kept = np.eye(len(away)) - away @ away.T
            covariance = kept @ covariance @ kept
        values, axes = np.linalg.eigh(covariance)
        count = min(self.columns, max(1, int((values > _LEAST * values[-1]).sum())))
        values, axes = values[::-1][:count], directed(axes[:, ::-1][:, :count])
        if self.whiten:
            axes = axes / np.sqrt(values)
        deviation = np.sqrt(np.diag(moments.covariance))
        model = projection(moments.mean, axes, np.where(deviation > 0, deviation, 1.0))
        if count == self.columns:
            return model
        return Model(model.name, model.version, model.arrays, {"most": count, FEWER: self.columns})

    def rounds(self) -> Rounds:
        """The rounds, over sums of frames and products of columns."""
        return OfCovariance(self.solve, positions=self.positions > 0)

    def describe(self) -> dict[str, object]:
        """All options; `positions` where it is set, so that others keep their identity."""
        return self.model_dump(mode="json", exclude=set() if self.positions else {"positions"})

    def matters(self) -> dict[str, object]:
        """All options but the model."""
        return {name: value for name, value in self.describe().items() if name != "model"}


class Lda(FittedProjection):
    """The first discriminants."""

    labels: IsPath | None = None
    automatic: bool = False

    name: ClassVar[str] = "lda"
    version: ClassVar[int] = 1
    makes: ClassVar[str] = "discriminants"
    letter: ClassVar[str] = "d"

    def rounds(self, names: Sequence[str] = ()) -> Rounds:
        """The rounds, over products of columns by class."""
        return OfClasses(names, self.columns, heteroscedastic=self.name == "hlda", transform=self.name)

    def matters(self) -> dict[str, object]:
        """The number of columns and the hours; labels are identified by their content."""
        return {"columns": self.columns, "hours": self.hours, "automatic": self.automatic}


class Hlda(Lda):
    """Discriminants with one covariance per class."""

    name: ClassVar[str] = "hlda"
    version: ClassVar[int] = 2
