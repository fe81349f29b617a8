"""A transform of features: a power of each number, with its sign."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from swsdist.core.arrays import Singles
from swsdist.features.transforms.interface import Shape
from swsdist.registry.entries import Options


class SignedPower(Options):
    """Its fields are the options."""

    power: float = Field(0.5, gt=0)

    name: ClassVar[str] = "signed-power"
    version: ClassVar[int] = 1

    def becomes(self, input_shape: Shape) -> Shape:
        """The columns that it gives."""
        return Shape(input_shape.columns, "features")

    def apply(self, frames: Singles) -> Singles:
        """Transform float32 (frames, columns)."""
        return (np.sign(frames) * np.abs(frames.astype(np.float64)) ** self.power).astype(np.float32)

    def describe(self) -> dict[str, object]:
        """All options with their values."""
        return self.model_dump(mode="json")
