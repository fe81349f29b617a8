"""Frames of several kinds, and the rows of what a search finds in them."""

from typing import Any

import numpy as np

from swsdist.kernels.distances.interface import create


def frames(rng: np.random.Generator, kind: str, length: int, name: str = "cosine", side: Any = "query") -> Any:
    """Of three columns, prepared for a distance."""
    if kind == "random":
        data = rng.normal(size=(length, 3))
    elif kind == "few":
        data = rng.integers(-1, 2, (length, 3)).astype(float)
    else:
        data = np.full((length, 3), {"zeros": 0.0, "constant": 1.0, "opposite": -1.0}[kind])
    return create(name, 3).prepare(data.astype(np.float32), np.zeros(3), np.ones(3), side).frames


def as_rows(found: Any) -> list[tuple[int, ...]]:
    """Query, document, last frame, frames and cost."""
    return list(zip(*(column.tolist() for column in tuple(found)[:5]), strict=True))
