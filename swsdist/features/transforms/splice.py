"""Each frame with those around it, side by side: what LDA and HLDA take. At the ends, the end frames are repeated."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from swsdist.features.transforms.interface import Shape, TransformOptions


class Splice(TransformOptions):
    """So many frames to either side."""

    frames: Annotated[int, Field(ge=1, le=50)] = 4

    name: ClassVar[str] = "splice"
    version: ClassVar[int] = 1

    @property
    def context(self) -> int:
        """Frames to either side."""
        return self.frames

    def becomes(self, given: Shape) -> Shape:
        """Features: the columns of the earliest frame, called `NAME-4`, up to those of the last, `NAME+4`."""
        shifts = range(-self.frames, self.frames + 1)
        return Shape(tuple(f"{name}{shift:+d}" for shift in shifts for name in given.columns), "features")

    def apply(self, frames: NDArray[np.float32]) -> NDArray[np.float32]:
        """Float32 (frames, columns) to float32 (frames, columns x (2 x frames + 1))."""
        if not len(frames):
            return np.empty((0, frames.shape[1] * (2 * self.frames + 1)), np.float32)
        places = np.arange(len(frames))[:, None] + np.arange(-self.frames, self.frames + 1)
        spliced: NDArray[np.float32] = frames[places.clip(0, len(frames) - 1)].reshape(len(frames), -1)
        return np.ascontiguousarray(spliced, np.float32)
