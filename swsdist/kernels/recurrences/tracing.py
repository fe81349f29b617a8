"""What the recurrences' plain twins share: the recurrence over one whole table of distances, for curves and paths on demand.

A twin is a plain function ``trace(distances, option, cost, frames, steps)``. It takes a table, int16 (query frames, document
frames), and the recurrence's option, and writes, for every document frame, `cost` and `frames` of the path that ends there
(int64; -1 and 0 where none does) and, for every cell, the step that it was reached by (uint8, a code of `STEPS`, or `BEGIN`).
It calls the recurrence's cell with plain integers, and so says what the vectors say. It stands in the recurrence's module.
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

#: A recurrence's plain twin: (table, option, cost, frames, steps), the last three written.
Twin: TypeAlias = Callable[[Table, int, Numbers, Numbers, Codes], None]

#: Query and document frames of a step, by its code.
STEPS = ((1, 1), (1, 2), (1, 0), (0, 1), (2, 1))
DIAGONAL, SKIP, STAY, LEFT, FAST = range(len(STEPS))

#: The code of a path's first cell.
BEGIN = 255

#: Low bits of a packed state, and a state that no path has: costs are below 2^32.
BITS = 26
NO_PATH = 1 << 60


@cache
def traced(twin: Twin) -> Twin:
    """The compiled form of a twin, from disk if it was compiled before."""
    return compiled("void(int16[:,::1], int64, int64[::1], int64[::1], uint8[:,::1])")(twin)


@numba.extending.register_jitable
def unpacked(state: int) -> tuple[int, int]:
    """Cost and frames of a state, (-1, 0) of none."""
    return (state >> BITS, state & ((1 << BITS) - 1)) if state < NO_PATH else (-1, 0)
