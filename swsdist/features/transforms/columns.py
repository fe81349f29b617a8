"""Some columns, by their names or numbers."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr

from swsdist.core.errors import ConfigError
from swsdist.features.transforms.interface import Shape, TransformOptions


class Columns(TransformOptions):
    """Columns of the frames, in the order that is given; numbers count from 0."""

    keep: Annotated[tuple[Annotated[int, Field(ge=0, strict=True)] | str, ...], Field(min_length=1)]

    name: ClassVar[str] = "columns"
    version: ClassVar[int] = 1

    _places: list[int] = PrivateAttr(default_factory=list)

    def becomes(self, given: Shape) -> Shape:
        """Features: what is left of posteriors no longer sums to 1."""
        places = [given.columns.index(one) if one in given.columns else one for one in self.keep]
        for one in places:
            if isinstance(one, str) or one >= len(given.columns):
                raise ConfigError(
                    f"there is no column {one!r}",
                    where="features.transforms: columns, keep",
                    remedy=f"there are: {', '.join(given.columns)}, or 0 to {len(given.columns) - 1}",
                )
        if len(set(places)) < len(places):
            raise ConfigError(
                "a column stands in it twice", where="features.transforms: columns, keep", remedy="name it once"
            )
        self._places[:] = [one for one in places if isinstance(one, int)]
        return Shape(tuple(given.columns[place] for place in self._places), "features")

    def apply(self, frames: NDArray[np.float32]) -> NDArray[np.float32]:
        """Float32 (frames, columns given) to float32 (frames, columns kept)."""
        return np.ascontiguousarray(frames[:, self._places])
