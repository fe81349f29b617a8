"""A linear projection stored in a model file: PCA, whitening, LDA, or any other.

    y = (x - mean) / deviation @ (deviation * projection)

Both factors of the product are rounded to integers, so that its sums are exact, and a frame has the same bytes on any
BLAS and in a block of any size. Normalised x has steps of 2^-12, and values beyond 2^10 are an error; a step of the
matrix is 2^-20 of its largest number. A product has at most 42 bits, and the sum of 2048 products 53, which float64
holds.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from swsdist.config.section import IsPath
from swsdist.core.arrays import Floats, Singles
from swsdist.core.codes import families
from swsdist.core.codes import features as codes
from swsdist.core.errors import DataError
from swsdist.features.fitting.interface import FEWER, Model, read_model
from swsdist.features.transforms.interface import FittedTransform, Shape, TransformOptions, check_columns, model_place
from swsdist.io.filesystem import local_file

#: Most columns for which a sum of products is exact.
MOST_COLUMNS = 2048
_STEPS, _CUT, _MATRIX_STEPS = 1 << 12, 1 << 22, 1 << 20


class Projection(NamedTuple):
    """A rounded projection.

    Attributes:
        mean, deviation: float64 (columns,).
        matrix: float64 (columns, output columns), integers.
        step: the value of 1 in a product.
        instead_of: number of columns that were wanted, where there are fewer.
    """

    mean: Floats
    deviation: Floats
    matrix: Floats
    step: float
    instead_of: object = None

    @classmethod
    def of(cls, model: Model) -> Projection:
        """The projection of a model.

        Raises:
            ConfigError: it is another model, or its arrays are no projection.
        """
        lacking = [name for name in ("mean", "deviation", "projection") if name not in model.arrays]
        if (model.name, model.version) != ("projection", 1) or lacking:
            other = f"it is {model.name!r} of version {model.version}"
            raise families.UNUSABLE_MODEL(
                "the model is not a projection of version 1: {problem}",
                "create it with swsdist.features.transforms.project.projection",
                problem=f"it has no {lacking[0]}" if lacking else other,
            )
        mean, deviation, matrix = (
            np.asarray(model.arrays[name], np.float64) for name in ("mean", "deviation", "projection")
        )
        right = mean.ndim == 1 and mean.shape == deviation.shape and matrix.ndim == 2 and len(matrix) == len(mean)
        with np.errstate(over="ignore"):
            wide = deviation[:, None] * matrix if right else matrix
        finite = all(np.isfinite(item).all() for item in (mean, deviation, wide))
        if not right or not finite or not matrix.shape[1] or not (deviation > 0).all():
            raise codes.BAD_PROJECTION_ARRAYS(mean=mean.shape, deviation=deviation.shape, matrix=matrix.shape)
        if len(mean) > MOST_COLUMNS:
            raise codes.PROJECTION_TOO_LARGE(columns=len(mean), highest=MOST_COLUMNS)
        largest = float(np.abs(wide).max(initial=0.0)) or 1.0
        integers = np.rint(wide / largest * _MATRIX_STEPS)
        return cls(mean, deviation, integers, largest / _MATRIX_STEPS / _STEPS, model.settings.get(FEWER))

    def made(self, columns: int | None, name: str) -> int:
        """Number of output columns if `columns` are requested; None: all.

        It is less than requested if as many were requested when it was fitted, and it has fewer.

        Raises:
            ConfigError: the matrix has fewer.
        """
        if self.matrix.shape[1] < (columns or 1) and columns != self.instead_of:
            raise codes.TOO_MANY_COMPONENTS(
                where=f"features.transforms: {name}, columns",
                wanted=columns,
                kind="columns of the projection",
                available=self.matrix.shape[1],
            )
        return min(columns or MOST_COLUMNS, int(self.matrix.shape[1]))

    def apply(self, frames: Singles, columns: int | None, where: str) -> Singles:
        """Transform float32 (frames, input columns) to float32 (frames, the first `columns` outputs).

        Raises:
            DataError: a number is too far from the mean.
        """
        integers = frames - self.mean
        integers /= self.deviation
        integers *= _STEPS
        np.rint(integers, out=integers)
        if len(integers) and max(integers.max(), -integers.min()) > _CUT:
            column = int(np.abs(integers).max(axis=0).argmax())
            raise families.MISMATCH.of(DataError)(
                "a frame's column {column} is more than {limit} deviations from the mean",
                "create the model with the deviations of these features",
                where=where,
                column=column,
                limit=_CUT // _STEPS,
            )
        made: Singles = (integers @ self.matrix[:, :columns] * self.step).astype(np.float32)
        return made


def projection(
    mean: NDArray[np.floating[Any]],
    matrix: NDArray[np.floating[Any]],
    deviation: NDArray[np.floating[Any]],
) -> Model:
    """Create the model that this transform reads; write it with `Model.save`.

    Args:
        mean: (columns,), subtracted from each frame.
        matrix: (columns, output columns).
        deviation: (columns,), the approximate spread of the columns: numbers are rounded to 2^-12 of it, and a number
            2^10 of it from the mean is an error.
    """
    arrays = {"mean": mean, "deviation": deviation, "projection": matrix}
    return Model("projection", 1, {name: np.asarray(array, np.float64) for name, array in arrays.items()})


def directed(axes: Floats) -> Floats:
    """Axes (columns of the array), each with the sign that makes its largest number positive."""
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=0, keepdims=True), axis=0)
    return np.asarray(axes * np.sign(largest), np.float64)


class Project(TransformOptions):
    """Projection with the model in a file (see `projection`)."""

    model: IsPath
    columns: Annotated[int, Field(ge=1)] | None = None

    name: ClassVar[str] = "project"
    version: ClassVar[int] = 1

    @cached_property
    def _loaded(self) -> Projection:
        return read_model(self.model, self._where, Projection.of)

    @property
    def _where(self) -> str:
        return model_place(self.name, self.model)

    def becomes(self, input_shape: Shape) -> Shape:
        """Features p0, p1, ...: the first `columns` that the matrix makes, or all."""
        check_columns(input_shape, len(self._loaded.mean), self._where)
        return Shape(tuple(f"p{k}" for k in range(self._loaded.made(self.columns, self.name))), "features")

    def apply(self, frames: Singles) -> Singles:
        """Transform float32 (frames, input columns) to float32 (frames, output columns)."""
        return self._loaded.apply(frames, self.columns, self._where)

    def files(self) -> list[Path]:
        """The model file."""
        return [local_file(self.model)]


class FittedProjection(FittedTransform[Projection]):
    """Base class of fitted projections.

    Attributes:
        makes: a plural noun for the columns, for messages.
        letter: first letter of the column names.
    """

    columns: Annotated[int, Field(ge=1)]

    makes: ClassVar[str]
    letter: ClassVar[str]

    def read(self, model: Model) -> Projection:
        """The projection."""
        return Projection.of(model)

    def takes(self, loaded: Projection) -> int:
        """Number of columns of the mean."""
        return len(loaded.mean)

    def shape(self, input_shape: Shape, loaded: Projection | None) -> Shape:
        """Features named by a letter and a number.

        Raises:
            ConfigError: more columns are requested than there are.
        """
        if self.columns > len(input_shape.columns):
            raise codes.TOO_MANY_COMPONENTS(
                where=f"features.transforms: {self.name}, columns",
                wanted=self.columns,
                kind=self.makes,
                available=len(input_shape.columns),
            )
        count = self.columns if loaded is None else loaded.made(self.columns, self.name)
        return Shape(tuple(f"{self.letter}{k}" for k in range(count)), "features")

    def apply(self, frames: Singles) -> Singles:
        """Transform float32 (frames, input columns) to float32 (frames, output columns)."""
        return self.loaded.apply(frames, self.columns, self.where)
