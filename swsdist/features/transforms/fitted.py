"""Base class of the transforms that are fitted to the corpus before the first document is indexed.

A subclass declares its options, how to load its model file (`read`), the number of columns it takes (`takes`), its
output (`shape`, `apply`), and how the model is fitted (`matters`, and `rounds` of `features.fitting.interface`).
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Generic, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from swsdist.config.section import IsPath
from swsdist.core.codes import features as codes
from swsdist.features.model import Model, read_model
from swsdist.features.transforms.interface import Shape, TransformOptions
from swsdist.io.remote.copies import local_file

Loaded = TypeVar("Loaded")

#: The most hours of documents used for fitting.
Hours = Annotated[float, Field(gt=0, le=100)]


class FittedTransform(TransformOptions, Generic[Loaded]):
    """A transform with a model; `Loaded` is the loaded form of the model."""

    name: ClassVar[str]
    version: ClassVar[int]

    hours: Hours = 0.5
    model: IsPath | None = None

    @model_validator(mode="after")
    def _no_labels_of_a_model(self) -> Self:
        if self.model is not None and getattr(self, "labels", None) is not None:
            raise codes.LABELS_WITH_MODEL.invalid()
        return self

    @abstractmethod
    def read(self, model: Model) -> Loaded:
        """Load the content of the model.

        Raises:
            DataError: it is another model, or a damaged one.
        """

    @abstractmethod
    def takes(self, loaded: Loaded) -> int:
        """Number of columns that frames must have."""

    @abstractmethod
    def shape(self, input_shape: Shape, loaded: Loaded | None) -> Shape:
        """Output shape for an input shape with the right number of columns; depends on the model, if there is one.

        Raises:
            ConfigError: the options do not fit the frames.
        """

    @abstractmethod
    def apply(self, frames: NDArray[np.float32]) -> NDArray[np.float32]:
        """See `Transform`; uses `loaded`."""

    @abstractmethod
    def matters(self) -> dict[str, object]:
        """Options that the model depends on, including `hours`, as plain JSON."""

    @property
    def where(self) -> str:
        """The place of the model in a config, for messages."""
        return model_place(self.name, self.model)

    @cached_property
    def loaded(self) -> Loaded:
        """The loaded model; it is read once.

        Raises:
            ConfigError: it is not fitted, or the file is not such a model.
        """
        if self.model is None:
            raise codes.MODEL_NOT_FITTED(where=self.where, name=f"the transform {self.name}", otherwise="")
        return read_model(self.model, self.where, self.read)

    @final
    def becomes(self, input_shape: Shape) -> Shape:
        """Output shape for an input shape; before fitting, as far as it is known.

        Raises:
            ConfigError: it does not accept the frames, or the file is not such a model.
        """
        loaded = None if self.model is None else self.loaded
        if loaded is not None:
            check_columns(input_shape, self.takes(loaded), self.where)
        return self.shape(input_shape, loaded)

    def with_model(self, path: str) -> dict[str, object]:
        """The options with the path of the fitted model, without the labels it was fitted on."""
        labels: dict[str, object] = {"labels": None} if "labels" in type(self).model_fields else {}
        return {**self.describe(), **labels, "model": path}

    def files(self) -> list[Path]:
        """The model file."""
        return [] if self.model is None else [local_file(self.model)]


def model_place(name: str, model: str | None) -> str:
    """The place of a transform's model in a config, with the file if there is one."""
    return f"features.transforms: {name}, model{'' if model is None else f': {model}'}"


def check_columns(shape: Shape, columns: int, where: str) -> None:
    """Check that frames have the number of columns that a model takes.

    Raises:
        ConfigError: the numbers differ.
    """
    if columns != len(shape.columns):
        raise codes.MODEL_COLUMNS_MISMATCH(where=where, expected=columns, columns=len(shape.columns))
