"""What is looked for, ready to be searched."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Example(NamedTuple):
    """One spoken example of a query: prepared frames, float32 (query frames, dimension)."""

    query_id: str
    example: int
    frames: NDArray[np.float32]
