"""The recurrence that compares averages, of memory-efficient subsequence dynamic time warping (MES-DTW).

Steps are (1, 1), (0, 1) and (1, 0) in query and document frames; each visited cell adds its distance, and the number of
cells is the path's length. A path begins at the query's first frame, anywhere in the document, and ends anywhere. Of
the three ways into a cell the one with the least average, sum / length including the cell itself, is kept; on ties the
diagonal, then the one from the previous frame, then the one from the previous query frame::

    (sum, length, start) of (0, t) = (d(0, t), 1, t)
    (sum, length, start) of (i, t) = the least average of (i-1, t-1), (i, t-1) and (i-1, t), each with d(i, t) and 1
    added

Averages are compared as products in float32, each rounded once: ``sum1 * length2 < sum2 * length1``. Products of
integers are exact below 2^24 only, so close averages of long paths may compare as equal or swapped. The tools of the
authors' time compute the recurrence in this way, and the bytes are the same everywhere.

Paths have no maximum length: a cell depends on all earlier frames, so a document is streamed uncut. The choice is made
at each cell, so the kept path does not always have the least average of all paths.

Source: X. Anguera, M. Ferrarons, "Memory efficient subsequence DTW for query-by-example spoken term detection", ICME
2013: length-normalised decisions, and one column of state.

State of a cell: three integers, sum, length and the document frame where the path began. There is a single column,
which each frame overwrites. int32 holds the sums of paths through `INT32_FRAMES` document frames.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import methods as codes
from swsdist.kernels.arithmetic import Packing, State, Value, choose
from swsdist.kernels.recurrences.interface import (
    BEGIN,
    DIAGONAL,
    LEFT,
    STAY,
    Codes,
    Numbers,
    Recurrence,
    Table,
    share,
    single,
    wide,
)
from swsdist.kernels.vectors import WIDTH, lanes_of, load, load_unsigned, spread, store
from swsdist.registry.registries import RECURRENCES

#: Longest query: with it `share` is exact for documents of 2^24 frames.
LONGEST_QUERY = RECURRENCES["averages"].longest_query

#: 4095 times these and the longest query is below 2^31.
INT32_FRAMES = (1 << 19) - LONGEST_QUERY

#: Low bits of the curve's state: document frames of a path.
_FRAME_BITS = 24

#: Longest document whose frames are counted exactly.
MOST_FRAMES = (1 << _FRAME_BITS) - LONGEST_QUERY

#: A sum whose average is larger than any distance, even after a step; its length is 1.
NOWHERE = 1 << 14


def _lower(state: tuple[Value, Value, Value], other: tuple[Value, Value, Value]) -> tuple[Value, Value, Value]:
    """Of two (sum, length, start) the one with the lower average; the first one wins ties."""
    left, right = single(other[0]) * single(state[1]), single(state[0]) * single(other[1])
    return (
        choose(left, right, other[0], state[0]),
        choose(left, right, other[1], state[1]),
        choose(left, right, other[2], state[2]),
    )


def cell(
    diagonal: tuple[Value, Value, Value], left: tuple[Value, Value, Value], above: tuple[Value, Value, Value], d: Value
) -> tuple[Value, Value, Value]:
    """State of (i, t), three numbers, from those of (i-1, t-1), (i, t-1) and (i-1, t), and d(i, t)."""
    best = (diagonal[0] + d, diagonal[1] + 1, diagonal[2])
    best = _lower(best, (left[0] + d, left[1] + 1, left[2]))
    return _lower(best, (above[0] + d, above[1] + 1, above[2]))


numba.extending.register_jitable(_lower)
numba.extending.register_jitable(cell)


def packing(n: int) -> Packing:
    """Packing of cost, at most 4095 N, and frames in an integer of the curve.

    Raises:
        UserError: the query is too long.
    """
    if n > LONGEST_QUERY:
        raise codes.QUERY_TOO_LONG(frames=n, use="the recurrence averages", longest=LONGEST_QUERY)
    return Packing(np.int64, _FRAME_BITS, 1 << 60)


def columns(n: int) -> int:
    """Rows of state, of sixteen lanes each."""
    return 3 * n


def advance(
    distances: NDArray[np.int16], row: int, n: int, t: int, columns: State, at: int, bits: int, option: int
) -> Any:
    """Process the distances of frame t; arguments as in `kernels.recurrences.bounded_slope`.

    Rows 3 i to 3 i + 2 of the column are the three integers of query frame i.
    """
    like = lanes_of(columns)
    diagonal = (load(columns, at), load(columns, at + WIDTH), load(columns, at + 2 * WIDTH))
    state = (load_unsigned(distances, row, like), like + 1, spread(t, like))
    store(columns, at, state[0])
    store(columns, at + WIDTH, state[1])
    store(columns, at + 2 * WIDTH, state[2])
    for i in range(1, n):
        offset = at + 3 * i * WIDTH
        left = (load(columns, offset), load(columns, offset + WIDTH), load(columns, offset + 2 * WIDTH))
        state = cell(diagonal, left, state, load_unsigned(distances, row + i * WIDTH, like))
        store(columns, offset, state[0])
        store(columns, offset + WIDTH, state[1])
        store(columns, offset + 2 * WIDTH, state[2])
        diagonal = left
    cost = share(wide(state[0]), n, wide(state[1]))
    return (cost << spread(bits, cost)) + wide((t + 1) - state[2])


def restart(columns: State, at: int, n: int, infinity: int, option: int) -> None:
    """Reset the state: no path has begun."""
    like = lanes_of(columns)
    for i in range(n):
        store(columns, at + 3 * i * WIDTH, spread(NOWHERE, like))
        store(columns, at + (3 * i + 1) * WIDTH, like + 1)
        store(columns, at + (3 * i + 2) * WIDTH, like)


def trace(distances: Table, option: int, cost: Numbers, frames: Numbers, steps: Codes) -> None:
    """The plain version, see `kernels.recurrences.interface`."""
    n, length = distances.shape
    column = np.zeros((n, 3), np.int64)
    column[:, 0] = NOWHERE
    column[:, 1] = 1
    for t in range(length):
        diagonal = (column[0, 0], column[0, 1], column[0, 2])
        state: tuple[np.int64, np.int64, np.int64]
        state = (np.int64(distances[0, t]), np.int64(1), t)  # type: ignore[assignment] # compiled, t is an int64
        column[0, 0], column[0, 1], column[0, 2] = state
        steps[0, t] = BEGIN
        for i in range(1, n):
            d = np.int64(distances[i, t])
            left = (column[i, 0], column[i, 1], column[i, 2])
            above = state
            state = cell(diagonal, left, above, d)
            column[i, 0], column[i, 1], column[i, 2] = state
            if state == (diagonal[0] + d, diagonal[1] + 1, diagonal[2]):
                steps[i, t] = DIAGONAL
            elif state == (left[0] + d, left[1] + 1, left[2]):
                steps[i, t] = LEFT
            else:
                steps[i, t] = STAY
            diagonal = left
        cost[t] = share(state[0], n, state[1])
        frames[t] = t + 1 - state[2]


def recurrence() -> Recurrence:
    """The recurrence, for the search."""
    return Recurrence(
        packing, advance, restart, columns, None, trace, int32_frames=INT32_FRAMES, most_frames=MOST_FRAMES
    )
