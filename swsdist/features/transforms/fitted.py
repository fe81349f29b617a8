"""Base of the transforms that are fitted to the corpus before its first document is indexed.

A subclass declares its options, what its model file holds (`read`), how many columns that takes (`takes`), what frames become
(`shape`, `apply`), and how the model is fitted (`matters`, and `rounds` as of `features.fitting.interface`). All else that is
said of what is fitted is here.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from swsdist.config.section import IsPath
from swsdist.core.codes import features as codes
from swsdist.features.model import Model, read_model
from swsdist.features.transforms.interface import Shape, TransformOptions
from swsdist.io.remote.copies import local_file

Held = TypeVar("Held")

#: Of documents, at most, that a model is fitted on.
Hours = Annotated[float, Field(gt=0, le=100)]


class FittedTransform(TransformOptions, Generic[Held]):
    """A transform with a model; `Held` is what it makes of the model to compute with."""

    name: ClassVar[str]
    version: ClassVar[int]

    hours: Hours = 0.5
    model: IsPath | None = None

    @abstractmethod
    def read(self, model: Model) -> Held:
        """What the model holds.

        Raises:
            DataError: it is another model, or a damaged one.
        """

    @abstractmethod
    def takes(self, held: Held) -> int:
        """How many columns frames must have."""

    @abstractmethod
    def shape(self, given: Shape, held: Held | None) -> Shape:
        """What frames of a shape become, by the model where there is one; their columns are as many as it takes.

        Raises:
            ConfigError: the options do not go with such frames.
        """

    @abstractmethod
    def apply(self, frames: NDArray[np.float32]) -> NDArray[np.float32]:
        """As of `Transform`; by `held`."""

    @abstractmethod
    def matters(self) -> dict[str, object]:
        """Options that the model depends on, `hours` among them, as plain JSON."""

    @property
    def where(self) -> str:
        """The place of the model in a config, for messages."""
        return model_place(self.name, self.model)

    @cached_property
    def held(self) -> Held:
        """What the model holds; it is read once.

        Raises:
            ConfigError: it is not fitted, or the file is not such a model.
        """
        if self.model is None:
            raise codes.MODEL_NOT_FITTED(where=self.where, name=f"the transform {self.name}", otherwise="")
        return read_model(self.model, self.where, self.read)

    @final
    def becomes(self, given: Shape) -> Shape:
        """What frames of a shape become; before it is fitted, as far as that is known.

        Raises:
            ConfigError: it does not take such frames, or the file is not such a model.
        """
        held = None if self.model is None else self.held
        if held is not None:
            check_columns(given, self.takes(held), self.where)
        return self.shape(given, held)

    def with_model(self, path: str) -> dict[str, object]:
        """Its options, with the model that was fitted, and without the labels that it was fitted by."""
        labels: dict[str, object] = {"labels": None} if "labels" in type(self).model_fields else {}
        return {**self.describe(), **labels, "model": path}

    def files(self) -> list[Path]:
        """The model."""
        return [] if self.model is None else [local_file(self.model)]


def model_place(name: str, model: str | None) -> str:
    """The place of the model of a transform in a config, and the file if there is one."""
    return f"features.transforms: {name}, model{'' if model is None else f': {model}'}"


def check_columns(shape: Shape, columns: int, where: str) -> None:
    """Check that frames have as many columns as a model takes.

    Raises:
        ConfigError: the numbers differ.
    """
    if columns != len(shape.columns):
        raise codes.MODEL_COLUMNS_MISMATCH(where=where, expected=columns, columns=len(shape.columns))
