"""A recurrence without warping: query frame i meets document frame t - N + 1 + i.

State of a cell: ``cost << bits | document frames``. Two columns of N rows rotate: that of document frame t is number t mod 2.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.arithmetic import State, Value, packing
from swsdist.kernels.recurrences.interface import (
    BEGIN,
    BITS,
    DIAGONAL,
    NO_PATH,
    Codes,
    Numbers,
    Recurrence,
    Table,
    unpacked,
)
from swsdist.kernels.vectors import WIDTH, lanes_of, load, load_unsigned, spread, store
from swsdist.registry.entries import RecurrenceEntry


def cell(diagonal: Value, d: Value) -> Value:
    """State of (i, t) from that of (i-1, t-1) and d(i, t), already shifted; of Python integers and of lanes."""
    return diagonal + d + 1


numba.extending.register_jitable(cell)


def advance(
    distances: NDArray[np.int16], row: int, n: int, t: int, columns: State, at: int, bits: int, option: int
) -> Any:
    """Process the distances of document frame t: N rows of sixteen lanes, from element `row` on."""
    like = lanes_of(columns)
    shift = spread(bits, like)
    size = n * WIDTH
    out, newest = at + t % 2 * size, at + (t + 1) % 2 * size
    state = (load_unsigned(distances, row, like) << shift) + 1
    store(columns, out, state)
    for i in range(1, n):
        d = load_unsigned(distances, row + i * WIDTH, like) << shift
        state = cell(load(columns, newest + (i - 1) * WIDTH), d)  # infinity stays where no path is yet
        store(columns, out + i * WIDTH, state)
    return state


def restart(columns: State, at: int, n: int, infinity: int, option: int) -> None:
    """Clear the state: there is no path."""
    for row in range(2 * n):
        store(columns, at + row * WIDTH, spread(infinity, lanes_of(columns)))


def trace(distances: Table, option: int, cost: Numbers, frames: Numbers, steps: Codes) -> None:
    """The plain version over a whole table; see `swsdist.kernels.recurrences.interface`."""
    n, length = distances.shape
    states = np.full((2, n), NO_PATH)
    for t in range(length):
        out, newest = states[t % 2], states[(t + 1) % 2]
        out[0] = (distances[0, t] << BITS) + 1
        steps[0, t] = BEGIN
        for i in range(1, n):
            out[i] = cell(newest[i - 1], distances[i, t] << BITS)
            steps[i, t] = DIAGONAL
        cost[t], frames[t] = unpacked(out[n - 1])


def rigid() -> Recurrence:
    """Its parts, the rows of its state, and how far back a result depends on document frames, for N query frames."""
    return Recurrence(packing, advance, restart, lambda n: 2 * n, lambda n: n, trace)


#: How the recurrence is registered.
RECURRENCE = RecurrenceEntry(f"{__name__}:rigid", version=1)
