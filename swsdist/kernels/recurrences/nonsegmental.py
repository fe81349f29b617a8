"""The non-segmental recurrence (NS-DTW): compares averages; diagonal steps count double in the length.

A path visits one cell per query frame; for the next one the document advances by 0, 1 or 2 frames. Each cell adds its
distance once, and to the path's length 2 for a step of one document frame and 1 for the others. Of the three ways into
a cell the one with the least average, sum / length, is kept; on ties the step of 1 document frame, then of 2, then of
0::

    (sum, length) of (0, t) = (d(0, t), 2)
    (sum, length) of (i, t) = the least average of  (S(i-1, t-1) + d(i, t), L(i-1, t-1) + 2)
                                                    (S(i-1, t-2) + d(i, t), L(i-1, t-2) + 1)
                                                    (S(i-1, t)   + d(i, t), L(i-1, t)   + 1)

A path may begin and end anywhere in the document. It spans at most 2 N - 1 document frames, and a result depends on
nothing earlier. The choice is made at each cell, so the kept path does not always have the least average of all paths.

Source: G. Mantena, S. Achanta, K. Prahallad, "Query-by-example spoken term detection using frequency domain linear
prediction and non-segmental dynamic time warping", IEEE/ACM TASLP 22(5), 2014; the steps, weights and order of ties
are those of its first author's program (`search.cu`, function `CUDA_NS_DTW`, in github.com/gautam-mantena/qbe-std).
That program compares float64 quotients; here products of integers are compared, which is exact.

State of a cell: two integers, the sum, and ``length << 16 | document frames``; both at most 2 N. Three columns rotate,
each of two rows a query frame. A product of a sum and a length must fit the type, so int32 is used only for queries of
at most 255 frames.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import methods as codes
from swsdist.kernels import arithmetic
from swsdist.kernels.arithmetic import State, Value, choose
from swsdist.kernels.recurrences.interface import (
    BEGIN,
    DIAGONAL,
    SKIP,
    STAY,
    Codes,
    Numbers,
    Recurrence,
    Table,
    share,
    wide,
)
from swsdist.kernels.vectors import WIDTH, lanes_of, load, load_unsigned, spread, store
from swsdist.registry.registries import RECURRENCES

#: Bits of the document frames below a path's length.
SHIFT = 16

#: Longest query, whose lengths and frames, up to 2 N, fit their bits.
LONGEST_QUERY = RECURRENCES["non-segmental"].longest_query

#: A sum whose average is larger than any distance, even after a step; its length is 1.
NOWHERE = 1 << 14


def _lower(state: tuple[Value, Value], other: tuple[Value, Value]) -> tuple[Value, Value]:
    """Of two (sum, length and frames) the one with the lower average; the first one wins ties."""
    left, right = other[0] * (state[1] >> SHIFT), state[0] * (other[1] >> SHIFT)
    return choose(left, right, other[0], state[0]), choose(left, right, other[1], state[1])


def cell(
    stay: tuple[Value, Value], diagonal: tuple[Value, Value], skip: tuple[Value, Value], d: Value
) -> tuple[Value, Value]:
    """State of (i, t), a pair, from those of (i-1, t), (i-1, t-1) and (i-1, t-2), and d(i, t)."""
    best = (diagonal[0] + d, diagonal[1] + ((2 << SHIFT) + 1))
    best = _lower(best, (skip[0] + d, skip[1] + ((1 << SHIFT) + 2)))
    return _lower(best, (stay[0] + d, stay[1] + (1 << SHIFT)))


numba.extending.register_jitable(_lower)
numba.extending.register_jitable(cell)


def packing(n: int) -> arithmetic.Packing:
    """Packing of cost and frames in an integer.

    Raises:
        UserError: the query is too long.
    """
    if n > LONGEST_QUERY:
        raise codes.QUERY_TOO_LONG(frames=n, use="the recurrence non-segmental", longest=LONGEST_QUERY)
    return arithmetic.packing(n)


def columns(n: int) -> int:
    """Rows of state, of sixteen lanes each."""
    return 6 * n


def advance(
    distances: NDArray[np.int16], row: int, n: int, t: int, columns: State, at: int, bits: int, option: int
) -> Any:
    """Process the distances of frame t; arguments as in `kernels.recurrences.bounded_slope`.

    Rows 2 i and 2 i + 1 of a column are the two integers of query frame i.
    """
    like = lanes_of(columns)
    size = 2 * n * WIDTH
    out, older, newest = at + t % 3 * size, at + (t + 1) % 3 * size, at + (t + 2) % 3 * size
    state = (load_unsigned(distances, row, like), spread((2 << SHIFT) + 1, like))
    store(columns, out, state[0])
    store(columns, out + WIDTH, state[1])
    for i in range(1, n):
        above = 2 * (i - 1) * WIDTH
        diagonal = (load(columns, newest + above), load(columns, newest + above + WIDTH))
        skip = (load(columns, older + above), load(columns, older + above + WIDTH))
        state = cell(state, diagonal, skip, load_unsigned(distances, row + i * WIDTH, like))
        store(columns, out + 2 * i * WIDTH, state[0])
        store(columns, out + (2 * i + 1) * WIDTH, state[1])
    cost = share(wide(state[0]), n, wide(state[1] >> SHIFT))
    return (cost << spread(bits, cost)) + wide(state[1] & ((1 << SHIFT) - 1))


def restart(columns: State, at: int, n: int, infinity: int, option: int) -> None:
    """Reset the state: no path has begun."""
    like = lanes_of(columns)
    for k in range(3 * n):
        store(columns, at + 2 * k * WIDTH, spread(NOWHERE, like))
        store(columns, at + (2 * k + 1) * WIDTH, spread(1 << SHIFT, like))


def trace(distances: Table, option: int, cost: Numbers, frames: Numbers, steps: Codes) -> None:
    """The plain version, see `kernels.recurrences.interface`."""
    n, length = distances.shape
    sums = np.full((3, n), NOWHERE)
    shapes = np.full((3, n), 1 << SHIFT)
    for t in range(length):
        out, older, newest = t % 3, (t + 1) % 3, (t + 2) % 3
        sums[out, 0], shapes[out, 0] = distances[0, t], (2 << SHIFT) + 1
        steps[0, t] = BEGIN
        for i in range(1, n):
            d = np.int64(distances[i, t])
            diagonal = (sums[newest, i - 1], shapes[newest, i - 1])
            skip = (sums[older, i - 1], shapes[older, i - 1])
            state = cell((sums[out, i - 1], shapes[out, i - 1]), diagonal, skip, d)
            sums[out, i], shapes[out, i] = state
            if state == (diagonal[0] + d, diagonal[1] + ((2 << SHIFT) + 1)):
                steps[i, t] = DIAGONAL
            elif state == (skip[0] + d, skip[1] + ((1 << SHIFT) + 2)):
                steps[i, t] = SKIP
            else:
                steps[i, t] = STAY
        shape = shapes[out, n - 1]
        cost[t] = share(sums[out, n - 1], n, shape >> SHIFT)
        frames[t] = shape & ((1 << SHIFT) - 1)


def recurrence() -> Recurrence:
    """The recurrence, for the search."""
    return Recurrence(packing, advance, restart, columns, lambda n: 2 * n, trace)
