"""A query example, prepared for the search."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Example(NamedTuple):
    """One spoken example of a query, or the template of several.

    Attributes:
        query_id: of its query.
        example: its number; of a template the least number of its examples.
        frames: prepared, float32 (query frames, columns).
        saturated: frames of what was spoken that the distance's range did not hold (`kernels.distances.interface`).
    """

    query_id: str
    example: int
    frames: NDArray[np.float32]
    saturated: int = 0
