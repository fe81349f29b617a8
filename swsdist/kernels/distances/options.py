"""Options of distances, in a light module for checking configs."""

from __future__ import annotations

from pydantic import Field, PositiveFloat

from swsdist.registry.entries import Options


class Floor(Options):
    """Added to probabilities before their logarithm."""

    floor: float = Field(1e-4, ge=1e-10, le=0.1)


class FloorOfProduct(Options):
    """Added to an inner product of probabilities: in 12 bits, smaller products are mostly rounding."""

    floor: float = Field(1e-4, ge=1e-4, le=0.1)


class Cap(Options):
    """Norm at which frames are cut off; None: 2.5 sqrt(dimension)."""

    cap: PositiveFloat | None = None
