"""The bounded-slope recurrence of subsequence dynamic time warping, whole state in one integer.

A path visits cells (query frame i, document frame t). Its steps are (1, 1), (1 query, 2 document) and (2 query, 1
document); it begins and ends anywhere in the document and covers the whole query. Each query frame is charged once,
its local distance at the document frame where the path passes it, so a path's cost is a sum of exactly N integers and
N normalises it. With S(i, t) the least cost of a path that ends in (i, t), and S(-1, t) = 0 for every t::

    S(i, t) = d(i, t) + min(S(i-1, t-1),            1 document frame
                            S(i-1, t-2),            2 document frames
                            d(i-1, t) + S(i-2, t-1) 1 document frame)

The slope lies between 1/2 and 2, so a path takes at most 2 N document frames, and a result depends on nothing further
back. The step set is that of Sakoe and Chiba (1978), type P=1, made asymmetric.

State of a cell: ``cost << frame_bits | document frames``. Adding ``d << frame_bits | n`` extends a path; the smaller
integer is the lower cost, and of equal costs the shorter path. The state is int32 where the query fits (see
`kernels.arithmetic`), else int64.

Layout: sixteen pieces of documents side by side, each row of a column one vector (`kernels.vectors`). The three
columns rotate: that of frame t is number t mod 3. Two of a cell's five inputs stay in registers from the row before.
No fast-math flag anywhere: all is integer.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.arithmetic import State, Value, least, packing
from swsdist.kernels.recurrences.interface import (
    BITS,
    DIAGONAL,
    FAST,
    NO_PATH,
    SKIP,
    Codes,
    Numbers,
    Recurrence,
    Table,
    unpacked,
)
from swsdist.kernels.vectors import WIDTH, lanes_of, load, load_unsigned, spread, store


def cell(diagonal: Value, slow: Value, fast: Value, d: Value, d_before: Value) -> Value:
    """State of (i, t) from S(i-1, t-1), S(i-1, t-2), S(i-2, t-1), d(i, t) and d(i-1, t); distances already shifted.

    The single source of the recurrence: the oracle calls it with Python integers, the kernels with sixteen lanes.
    """
    return least(least(diagonal + 1, slow + 2), fast + d_before + 1) + d


numba.extending.register_jitable(cell)


def advance(
    distances: NDArray[np.int16], row: int, n: int, t: int, columns: State, at: int, bits: int, option: int
) -> Any:
    """Process the distances of frame t; frames come in order.

    Rows of a column: 0 is i = -2 (infinity), 1 is i = -1 (zero), i + 2 is query frame i.

    Args:
        distances: int16 (n, 16), flat, from element `row` on.
        n: query frames.
        columns: state (3, n + 2, 16), flat, from element `at` on.
        bits: frame bits of the packing.
        option: the recurrence's option; unused here.

    Returns:
        Lanes of the curve at t: the state of the query's last frame.
    """
    like = lanes_of(columns)
    shift = spread(bits, like)
    size = (n + 2) * WIDTH
    out, older, newest = at + t % 3 * size, at + (t + 1) % 3 * size, at + (t + 2) % 3 * size
    before = state = like
    fast = load(columns, newest)
    diagonal = load(columns, newest + WIDTH)
    for i in range(n):
        d = load_unsigned(distances, row + i * WIDTH, like) << shift
        slow = load(columns, older + (i + 1) * WIDTH)
        state = cell(diagonal, slow, fast, d, before)
        store(columns, out + (i + 2) * WIDTH, state)
        fast = diagonal
        diagonal = load(columns, newest + (i + 2) * WIDTH)
        before = d
    return state


def restart(columns: State, at: int, n: int, infinity: int, option: int) -> None:
    """Reset the state: no path has begun."""
    like = lanes_of(columns)
    for column in range(3):
        first = at + column * (n + 2) * WIDTH
        for row in range(n + 2):
            store(columns, first + row * WIDTH, spread(infinity, like))
        store(columns, first + WIDTH, like)


def trace(distances: Table, option: int, cost: Numbers, frames: Numbers, steps: Codes) -> None:
    """The plain version. A step into a query's first or second frame may come from before the query."""
    n, length = distances.shape
    states = np.full((3, n + 2), NO_PATH)  # row i + 2 is query frame i
    states[:, 1] = 0
    for t in range(length):
        out, older, newest = states[t % 3], states[(t + 1) % 3], states[(t + 2) % 3]
        before = 0
        for i in range(n):
            d = distances[i, t] << BITS
            state = cell(newest[i + 1], older[i + 1], newest[i], d, before)
            if state == newest[i + 1] + 1 + d:
                steps[i, t] = DIAGONAL
            elif state == older[i + 1] + 2 + d:
                steps[i, t] = SKIP
            else:
                steps[i, t] = FAST
            out[i + 2] = state
            before = d
        cost[t], frames[t] = unpacked(out[n + 1])


def recurrence() -> Recurrence:
    """The recurrence, for the search."""
    return Recurrence(packing, advance, restart, lambda n: 3 * (n + 2), lambda n: 2 * n, trace, neighbours=cell)
