"""Some columns, by their names or numbers."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr

from swsdist.core.codes import features as codes
from swsdist.features.transforms.interface import Shape, TransformOptions


class Columns(TransformOptions):
    """Columns of the frames, in the order that is given; numbers count from 0."""

    keep: Annotated[tuple[Annotated[int, Field(ge=0, strict=True)] | str, ...], Field(min_length=1)]

    name: ClassVar[str] = "columns"
    version: ClassVar[int] = 1

    _places: list[int] = PrivateAttr(default_factory=list)

    def becomes(self, shape: Shape) -> Shape:
        """Shape of the output: features, since some columns of a posterior do not sum to 1."""
        places = [shape.columns.index(name) if name in shape.columns else name for name in self.keep]
        for place in places:
            if isinstance(place, str) or place >= len(shape.columns):
                raise codes.NO_SUCH_FEATURE_COLUMN(
                    where="features.transforms: columns, keep",
                    column=place,
                    columns=", ".join(shape.columns),
                    last=len(shape.columns) - 1,
                )
        if len(set(places)) < len(places):
            raise codes.DUPLICATE_FEATURE_COLUMN(where="features.transforms: columns, keep")
        self._places[:] = [place for place in places if isinstance(place, int)]
        return Shape(tuple(shape.columns[place] for place in self._places), "features")

    def apply(self, frames: NDArray[np.float32]) -> NDArray[np.float32]:
        """Float32 (frames, columns given) to float32 (frames, columns kept)."""
        return np.ascontiguousarray(frames[:, self._places])
