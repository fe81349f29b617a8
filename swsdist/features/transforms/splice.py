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

    def becomes(self, input_shape: Shape) -> Shape:
        """Features: the columns of the earliest frame, called `NAME-4`, up to those of the last, `NAME+4`."""
        shifts = range(-self.frames, self.frames + 1)
        return Shape(tuple(f"{name}{shift:+d}" for shift in shifts for name in input_shape.columns), "features")

    def apply(self, frames: NDArray[np.float32]) -> NDArray[np.float32]:
        """Float32 (frames, columns) to float32 (frames, columns x (2 x frames + 1))."""
        return spliced(frames, self.frames)


def spliced(frames: NDArray[np.float32], context: int, chosen: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
    """Frames with those around them, all or some: float32 (frames, columns x (2 x context + 1)).

    Args:
        frames: float32 (frames, columns) of a document.
        context: frames to either side.
        chosen: int64 numbers of frames; None: all.
    """
    if not len(frames):
        return np.empty((0, frames.shape[1] * (2 * context + 1)), np.float32)
    middle = np.arange(len(frames)) if chosen is None else chosen
    places = middle[:, None] + np.arange(-context, context + 1)
    return np.ascontiguousarray(frames[places.clip(0, len(frames) - 1)].reshape(len(middle), -1), np.float32)
