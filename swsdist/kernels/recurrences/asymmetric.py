"""The asymmetric recurrence 0..2: for each query frame the document advances by 0, 1 or 2 frames.

A path visits one cell for each query frame i, and each query frame is charged once, so that a path's cost is a sum of N
integers and N normalises it. It begins and ends anywhere in the document. With S(i, t) the least cost of a path that
ends in (i, t), and S(0, t) = d(0, t)::

    S(i, t) = d(i, t) + min(S(i-1, t),       no document frame
                            S(i-1, t-1),     1 document frame
                            S(i-1, t-2))     2 document frames

Any number of steps without a document frame may follow each other: the whole query may be charged at one. (They are
the steps of Itakura 1975, "Minimum prediction residual principle applied to speech recognition", without its rule
against two of those together; `asymmetric` of Giorgino 2009, "Computing and visualizing dynamic time warping alignments
in R".) A path takes at most 2 N - 1 document frames, and a result depends on nothing further back.

State of a cell and layout: as in `kernels.recurrences.bounded_slope`, ``cost << frame_bits | document frames`` in
three columns that rotate; of equal costs the shorter path wins.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.arithmetic import State, Value, least, packing
from swsdist.kernels.recurrences.interface import (
    BEGIN,
    BITS,
    DIAGONAL,
    NO_PATH,
    SKIP,
    STAY,
    Codes,
    Numbers,
    Recurrence,
    Table,
    unpacked,
)
from swsdist.kernels.vectors import WIDTH, lanes_of, load, load_unsigned, spread, store


def cell(stay: Value, diagonal: Value, skip: Value, d: Value) -> Value:
    """State of (i, t) from S(i-1, t), S(i-1, t-1), S(i-1, t-2) and d(i, t), already shifted."""
    return least(stay, least(diagonal + 1, skip + 2)) + d


numba.extending.register_jitable(cell)


def columns(n: int) -> int:
    """Rows of state, of sixteen lanes each."""
    return 3 * n


def advance(
    distances: NDArray[np.int16], row: int, n: int, t: int, columns: State, at: int, bits: int, option: int
) -> Any:
    """Process the distances of frame t; arguments as in `kernels.recurrences.bounded_slope`.

    Row i is query frame i.
    """
    like = lanes_of(columns)
    shift = spread(bits, like)
    size = n * WIDTH
    out, older, newest = at + t % 3 * size, at + (t + 1) % 3 * size, at + (t + 2) % 3 * size
    state = (load_unsigned(distances, row, like) << shift) + 1
    store(columns, out, state)
    for i in range(1, n):
        above = (i - 1) * WIDTH
        d = load_unsigned(distances, row + i * WIDTH, like) << shift
        state = cell(state, load(columns, newest + above), load(columns, older + above), d)
        store(columns, out + i * WIDTH, state)
    return state


def restart(columns: State, at: int, n: int, infinity: int, option: int) -> None:
    """Reset the state: no path has begun."""
    for row in range(3 * n):
        store(columns, at + row * WIDTH, spread(infinity, lanes_of(columns)))


def trace(distances: Table, option: int, cost: Numbers, frames: Numbers, steps: Codes) -> None:
    """The plain version, see `kernels.recurrences.interface`."""
    n, length = distances.shape
    states = np.full((3, n), NO_PATH)
    for t in range(length):
        out, older, newest = states[t % 3], states[(t + 1) % 3], states[(t + 2) % 3]
        out[0] = (distances[0, t] << BITS) + 1
        steps[0, t] = BEGIN
        for i in range(1, n):
            d = distances[i, t] << BITS
            out[i] = cell(out[i - 1], newest[i - 1], older[i - 1], d)
            if out[i] == newest[i - 1] + 1 + d:
                steps[i, t] = DIAGONAL
            elif out[i] == older[i - 1] + 2 + d:
                steps[i, t] = SKIP
            else:
                steps[i, t] = STAY
        cost[t], frames[t] = unpacked(out[n - 1])


def recurrence() -> Recurrence:
    """The recurrence, for the search."""
    return Recurrence(packing, advance, restart, columns, lambda n: 2 * n, trace)
