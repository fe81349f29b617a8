"""Plain versions of the recurrences, over one complete table of distances, for curves and paths on demand.

A plain version is a function ``trace(distances, option, cost, frames, steps)`` in the recurrence's module. It takes a
table, int16 (query frames, document frames), and the recurrence's option, and writes, for every document frame, `cost`
and `frames` of the path that ends there (int64; -1 and 0 if none does) and, for every cell, the step into it (uint8, a
code of `STEPS`, or `BEGIN`). It calls the recurrence's cell with plain integers, so results equal those of the vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.compiled import compiled

Table: TypeAlias = NDArray[np.int16]
Numbers: TypeAlias = NDArray[np.int64]
Codes: TypeAlias = NDArray[np.uint8]

#: A recurrence's plain version: (table, option, cost, frames, steps), the last three written.
Twin: TypeAlias = Callable[[Table, int, Numbers, Numbers, Codes], None]

#: Query and document frames of a step, by its code.
STEPS = ((1, 1), (1, 2), (1, 0), (0, 1), (2, 1))
DIAGONAL, SKIP, STAY, LEFT, FAST = range(len(STEPS))

#: The code of a path's first cell.
BEGIN = 255

#: Low bits of a packed state, and a state that no path reaches: costs are below 2^32.
BITS = 26
NO_PATH = 1 << 60


@cache
def traced(twin: Twin) -> Twin:
    """The compiled plain version, cached on disk."""
    return compiled("void(int16[:,::1], int64, int64[::1], int64[::1], uint8[:,::1])")(twin)


@numba.extending.register_jitable
def unpacked(state: int) -> tuple[int, int]:
    """Cost and frames of a state; (-1, 0) without a path."""
    return (state >> BITS, state & ((1 << BITS) - 1)) if state < NO_PATH else (-1, 0)
