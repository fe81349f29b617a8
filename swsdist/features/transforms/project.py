"""A linear projection that a model file holds: PCA, whitening, LDA, or whatever else is one.

    y = (x - mean) / deviation @ (deviation * projection)

Both factors of the product are rounded to whole numbers, so that its sums are exact, and a frame has the same bytes on any BLAS
and in a block of any size. With x in deviations, a step is 2^-12 of one, and beyond 2^10 of them is an error; a step of the
matrix is 2^-20 of its largest number. A product has at most 2^42, and the sum of 2048 of them 2^53, which float64 holds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr

from swsdist.config.section import IsPath
from swsdist.errors import ConfigError, DataError
from swsdist.features.model import Model, load_model
from swsdist.features.transforms.interface import Shape, TransformOptions
from swsdist.io.filesystem import locate

#: Columns that a sum of products is exact for.
_MOST = 2048
_STEPS, _CUT, _MATRIX_STEPS = 1 << 12, 1 << 22, 1 << 20


class _Loaded(NamedTuple):
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    matrix: NDArray[np.float64]  # whole numbers
    step: float


def projection(
    mean: NDArray[np.floating[Any]],
    matrix: NDArray[np.floating[Any]],
    deviation: NDArray[np.floating[Any]],
) -> Model:
    """The model that this transform reads; write it with `Model.save`.

    Args:
        mean: (columns,), taken from each frame.
        matrix: (columns, columns made).
        deviation: (columns,), about how far the columns vary: numbers are rounded to 2^-12 of it, and one that is 2^10 of them
            from the mean is an error.
    """
    given = {"mean": mean, "deviation": deviation, "projection": matrix}
    return Model("projection", 1, {name: np.asarray(array, np.float64) for name, array in given.items()})


class Project(TransformOptions):
    """By the model in a file (`projection` makes one)."""

    model: IsPath
    columns: Annotated[int, Field(ge=1)] | None = None

    name: ClassVar[str] = "project"
    version: ClassVar[int] = 1

    _loaded: list[_Loaded] = PrivateAttr(default_factory=list)

    def becomes(self, given: Shape) -> Shape:
        """Features p0, p1, ...: the first `columns` that the matrix makes, or all."""
        loaded = self._load()
        if len(loaded.mean) != len(given.columns):
            raise ConfigError(
                f"the projection takes {len(loaded.mean)} columns, and there are {len(given.columns)}",
                where=f"features.transforms: project: {self.model}",
                remedy="name the model that was made for these features",
            )
        if loaded.matrix.shape[1] < (self.columns or 1):
            raise ConfigError(
                f"the projection makes {loaded.matrix.shape[1]} columns, {self.columns} are wanted",
                where="features.transforms: project, columns",
                remedy="ask for fewer",
            )
        return Shape(tuple(f"p{k}" for k in range(self.columns or loaded.matrix.shape[1])), "features")

    def _load(self) -> _Loaded:
        if self._loaded:
            return self._loaded[0]
        where = f"features.transforms: project: {self.model}"
        try:
            model = load_model(*locate(self.model))
        except DataError as error:
            raise ConfigError(error.message, where=where, remedy=error.remedy) from None
        remedy = "make it with swsdist.features.transforms.project.projection"
        lacking = [name for name in ("mean", "deviation", "projection") if name not in model.arrays]
        if (model.name, model.version) != ("projection", 1) or lacking:
            what = f"it has no {lacking[0]}" if lacking else f"it is a {model.name} of version {model.version}"
            raise ConfigError(f"{what}: it is not a projection of version 1", where=where, remedy=remedy)
        mean, deviation, matrix = (
            np.asarray(model.arrays[name], np.float64) for name in ("mean", "deviation", "projection")
        )
        right = mean.ndim == 1 and mean.shape == deviation.shape and matrix.ndim == 2 and len(matrix) == len(mean)
        with np.errstate(over="ignore"):
            wide = deviation[:, None] * matrix if right else matrix
        finite = all(np.isfinite(each).all() for each in (mean, deviation, wide))
        if not right or not finite or not matrix.shape[1] or not (deviation > 0).all():
            raise ConfigError(
                f"a mean {mean.shape}, a deviation {deviation.shape} and a matrix {matrix.shape} make no projection",
                where=where,
                remedy="(n,), (n,) above 0 and (n, m), all finite, and so is deviation x matrix",
            )
        if len(mean) > _MOST:
            raise ConfigError(f"it takes {len(mean)} columns, {_MOST} are the most", where=where, remedy="take fewer")
        largest = float(np.abs(wide).max(initial=0.0)) or 1.0
        whole = np.rint(wide / largest * _MATRIX_STEPS)
        self._loaded.append(_Loaded(mean, deviation, whole, largest / _MATRIX_STEPS / _STEPS))
        return self._loaded[0]

    def apply(self, frames: NDArray[np.float32]) -> NDArray[np.float32]:
        """Float32 (frames, columns given) to float32 (frames, columns made)."""
        loaded = self._load()
        whole = np.rint((frames.astype(np.float64) - loaded.mean) / loaded.deviation * _STEPS)
        if len(whole) and np.abs(whole).max() > _CUT:
            column = int(np.abs(whole).max(axis=0).argmax())
            raise DataError(
                f"a frame's column {column} is more than {_CUT // _STEPS} deviations from the mean",
                where=f"features.transforms: project: {self.model}",
                remedy="make the model with the deviations of these features",
            )
        made: NDArray[np.float32] = (whole @ loaded.matrix[:, : self.columns] * loaded.step).astype(np.float32)
        return made

    def files(self) -> list[Path]:
        """The model."""
        return [Path(self.model)]
