"""ln(x + floor): posteriors to logits."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from swsdist.core.codes import features as codes
from swsdist.features.transforms.interface import Shape, TransformOptions


class Log(TransformOptions):
    """The natural logarithm of each number and a floor together."""

    floor: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1e-10

    name: ClassVar[str] = "log"
    version: ClassVar[int] = 1

    def becomes(self, input_shape: Shape) -> Shape:
        """Logits of posteriors; of anything else features."""
        return input_shape._replace(kind="logits" if input_shape.kind == "posteriors" else "features")

    def apply(self, frames: NDArray[np.float32]) -> NDArray[np.float32]:
        """Float32 (frames, columns); a number below 0 is an error."""
        if len(frames) and float(frames.min()) < 0:
            raise codes.NEGATIVE_LOGARITHM(where="features.transforms: log", value=float(frames.min()))
        logarithms: NDArray[np.float32] = np.log(frames.astype(np.float64) + self.floor).astype(np.float32)
        return logarithms
