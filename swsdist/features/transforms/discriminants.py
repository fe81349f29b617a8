"""Linear discriminants of labels (LDA), and with a covariance a class (HLDA), fitted to the corpus before its first document is
indexed. A chain fits them (`features.fitting.scatter`); each is then the projection of its model, with exact sums.

Labels are those of the corpus (`corpus.alignments.phones`), or of a file that is named: a CTM, or a master label file. What is
made with them is not zero resource, and where the documents that are searched are those of the labels, every report says so.
`automatic` says that a program made the labels, which heard the documents and was told nothing: they are no oracle then.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr

from swsdist.config.section import IsPath
from swsdist.errors import ConfigError
from swsdist.features.fitting.interface import Rounds
from swsdist.features.fitting.scatter import OfClasses
from swsdist.features.transforms.interface import Shape, TransformOptions
from swsdist.features.transforms.project import Project


class Lda(TransformOptions):
    """The first discriminants."""

    columns: Annotated[int, Field(ge=1)]
    labels: IsPath | None = None
    automatic: bool = False
    hours: Annotated[float, Field(gt=0, le=100)] = 0.5
    model: IsPath | None = None

    name: ClassVar[str] = "lda"
    version: ClassVar[int] = 1

    _project: list[Project] = PrivateAttr(default_factory=list)

    def becomes(self, given: Shape) -> Shape:
        """Features d0, d1, ..."""
        if self.columns > len(given.columns):
            raise ConfigError(
                f"{self.columns} discriminants of {len(given.columns)} columns",
                where=f"features.transforms: {self.name}, columns",
                remedy="ask for fewer",
            )
        if self.model is not None:
            self._fitted().becomes(given)
        return Shape(tuple(f"d{k}" for k in range(self.columns)), "features")

    def _fitted(self) -> Project:
        if self.model is None:
            raise ConfigError(
                f"the transform {self.name} is not fitted",
                where=f"features.transforms: {self.name}, model",
                remedy="run a chain that fits it (search), or name a model",
            )
        if not self._project:
            self._project.append(Project(model=self.model, columns=self.columns))
        return self._project[0]

    def apply(self, frames: NDArray[np.float32]) -> NDArray[np.float32]:
        """Float32 (frames, columns given) to float32 (frames, columns made)."""
        return self._fitted().apply(frames)

    def rounds(self, names: Sequence[str] = ()) -> Rounds:
        """By products of columns by class."""
        return OfClasses(names, self.columns, heteroscedastic=self.name == "hlda", who=self.name)

    def matters(self) -> dict[str, object]:
        """How many, and of how many hours; what the labels are is known by their content."""
        return {"columns": self.columns, "hours": self.hours, "automatic": self.automatic}

    def with_model(self, path: str) -> dict[str, object]:
        """Its options, with the model that was fitted."""
        return {**self.describe(), "labels": None, "model": path}

    def files(self) -> list[Path]:
        """The model."""
        return [] if self.model is None else [Path(self.model)]


class Hlda(Lda):
    """The same with a covariance a class."""

    name: ClassVar[str] = "hlda"
    version: ClassVar[int] = 1
