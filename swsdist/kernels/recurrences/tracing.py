"""The recurrences over one whole table of distances, with the step into every cell: for curves and paths on demand.

Each function takes a table, int16 (query frames, document frames), and writes, for every document frame, `cost` and
`frames` of the path that ends there (int64; -1 and 0 where none does) and, for every cell, the step that it was reached
by (uint8, a code of `STEPS`, or `BEGIN`). They call the recurrences' cells with plain integers, and so say what the
vectors say; their layout is the simplest there is. What a cell means stands in the recurrences' own modules.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np

from swsdist.kernels.compiled import compiled
from swsdist.kernels.recurrences import asymmetric as of_asymmetric
from swsdist.kernels.recurrences import averages as of_averages
from swsdist.kernels.recurrences import bounded_slope as of_bounded_slope
from swsdist.kernels.recurrences import nonsegmental as of_nonsegmental
from swsdist.kernels.recurrences import segmental as of_segmental
from swsdist.kernels.recurrences.quotients import share

#: Query and document frames of a step, by its code.
STEPS = ((1, 1), (1, 2), (1, 0), (0, 1), (2, 1))
_DIAGONAL, _SKIP, _STAY, _LEFT, _FAST = range(len(STEPS))

#: The code of a path's first cell.
BEGIN = 255

#: Low bits of a packed state, and a state that no path has: costs are below 2^32.
_BITS = 26
_NOWHERE = 1 << 60


@cache
def traced(recurrence: Any) -> Any:
    """The compiled form of a function below, from disk if it was compiled before."""
    return compiled("void(int16[:,::1], int64, int64[::1], int64[::1], uint8[:,::1])")(recurrence)


def bounded_slope(distances: Any, option: int, cost: Any, frames: Any, steps: Any) -> None:
    """See `kernels.bounded_slope`. A step into a query's first or second frame may come from before the query."""
    n, length = distances.shape
    states = np.full((3, n + 2), _NOWHERE)  # row i + 2 is query frame i
    states[:, 1] = 0
    for t in range(length):
        out, older, newest = states[t % 3], states[(t + 1) % 3], states[(t + 2) % 3]
        before = 0
        for i in range(n):
            d = distances[i, t] << _BITS
            state = of_bounded_slope.cell(newest[i + 1], older[i + 1], newest[i], d, before)
            if state == newest[i + 1] + 1 + d:
                steps[i, t] = _DIAGONAL
            elif state == older[i + 1] + 2 + d:
                steps[i, t] = _SKIP
            else:
                steps[i, t] = _FAST
            out[i + 2] = state
            before = d
        cost[t], frames[t] = _unpacked(out[n + 1])


def asymmetric(distances: Any, option: int, cost: Any, frames: Any, steps: Any) -> None:
    """See `kernels.asymmetric`."""
    n, length = distances.shape
    states = np.full((3, n), _NOWHERE)
    for t in range(length):
        out, older, newest = states[t % 3], states[(t + 1) % 3], states[(t + 2) % 3]
        out[0] = (distances[0, t] << _BITS) + 1
        steps[0, t] = BEGIN
        for i in range(1, n):
            d = distances[i, t] << _BITS
            out[i] = of_asymmetric.cell(out[i - 1], newest[i - 1], older[i - 1], d)
            if out[i] == newest[i - 1] + 1 + d:
                steps[i, t] = _DIAGONAL
            elif out[i] == older[i - 1] + 2 + d:
                steps[i, t] = _SKIP
            else:
                steps[i, t] = _STAY
        cost[t], frames[t] = _unpacked(out[n - 1])


def non_segmental(distances: Any, option: int, cost: Any, frames: Any, steps: Any) -> None:
    """See `kernels.nonsegmental`."""
    n, length = distances.shape
    sums = np.full((3, n), of_nonsegmental.NOWHERE)
    shapes = np.full((3, n), 1 << of_nonsegmental.SHIFT)
    for t in range(length):
        out, older, newest = t % 3, (t + 1) % 3, (t + 2) % 3
        sums[out, 0], shapes[out, 0] = distances[0, t], (2 << of_nonsegmental.SHIFT) + 1
        steps[0, t] = BEGIN
        for i in range(1, n):
            d = np.int64(distances[i, t])
            diagonal = (sums[newest, i - 1], shapes[newest, i - 1])
            skip = (sums[older, i - 1], shapes[older, i - 1])
            state = of_nonsegmental.cell((sums[out, i - 1], shapes[out, i - 1]), diagonal, skip, d)
            sums[out, i], shapes[out, i] = state
            if state == (diagonal[0] + d, diagonal[1] + ((2 << of_nonsegmental.SHIFT) + 1)):
                steps[i, t] = _DIAGONAL
            elif state == (skip[0] + d, skip[1] + ((1 << of_nonsegmental.SHIFT) + 2)):
                steps[i, t] = _SKIP
            else:
                steps[i, t] = _STAY
        shape = shapes[out, n - 1]
        cost[t] = share(sums[out, n - 1], n, shape >> of_nonsegmental.SHIFT)
        frames[t] = shape & ((1 << of_nonsegmental.SHIFT) - 1)


def averages(distances: Any, option: int, cost: Any, frames: Any, steps: Any) -> None:
    """See `kernels.averages`."""
    n, length = distances.shape
    column = np.zeros((n, 3), np.int64)
    column[:, 0] = of_averages.NOWHERE
    column[:, 1] = 1
    for t in range(length):
        diagonal = (column[0, 0], column[0, 1], column[0, 2])
        state = (np.int64(distances[0, t]), np.int64(1), t)
        column[0, 0], column[0, 1], column[0, 2] = state
        steps[0, t] = BEGIN
        for i in range(1, n):
            d = np.int64(distances[i, t])
            left = (column[i, 0], column[i, 1], column[i, 2])
            above = state
            state = of_averages.cell(diagonal, left, above, d)
            column[i, 0], column[i, 1], column[i, 2] = state
            if state == (diagonal[0] + d, diagonal[1] + 1, diagonal[2]):
                steps[i, t] = _DIAGONAL
            elif state == (left[0] + d, left[1] + 1, left[2]):
                steps[i, t] = _LEFT
            else:
                steps[i, t] = _STAY
            diagonal = left
        cost[t] = share(state[0], n, state[1])
        frames[t] = t + 1 - state[2]


def segmental(distances: Any, option: int, cost: Any, frames: Any, steps: Any) -> None:
    """See `kernels.segmental`; `option` is R. The steps are those of no segment in particular: see `segment`."""
    n, length = distances.shape
    cost[:] = -1
    frames[:] = 0
    ended, sizes = np.empty(length, np.int64), np.empty(length, np.int64)
    for start in range(0, length, option):
        stop = min(length, start + n + option)
        _segment(distances[:, start:stop], option, ended, sizes, steps[:, start:stop])
        for t in range(start, stop):
            here = ended[t - start], sizes[t - start]
            if here[1] > 0 and (frames[t] == 0 or here < (cost[t], frames[t])):
                cost[t], frames[t] = here


def segment(distances: Any, option: int, cost: Any, frames: Any, steps: Any) -> None:
    """The one segment of `kernels.segmental` that begins with the table's first document frame."""
    _segment(distances, option, cost, frames, steps)


@numba.extending.register_jitable
def _segment(distances: Any, band: int, cost: Any, frames: Any, steps: Any) -> None:
    n, length = distances.shape
    column = np.full(n + 1, _NOWHERE)  # row i + 1 is query frame i
    column[0] = 0
    for t in range(length):
        low, high = max(0, t - band), min(n - 1, t + band)
        diagonal, above = column[low], np.int64(_NOWHERE)
        for i in range(low, high + 1):
            left = column[i + 1] if i < t + band else np.int64(_NOWHERE)
            d = distances[i, t] << _BITS
            state = of_segmental.cell(diagonal, left, above, d)
            if state == diagonal + d + 1:
                steps[i, t] = _DIAGONAL if i + t > 0 else BEGIN
            elif state == left + d + 1:
                steps[i, t] = _LEFT
            else:
                steps[i, t] = _STAY
            column[i + 1] = state
            diagonal, above = left, state
        column[0] = _NOWHERE
        frames[t] = t + 1 if low < n <= high + 1 else 0
        cost[t] = share(column[n] >> _BITS, n, column[n] & ((1 << _BITS) - 1)) if frames[t] > 0 else -1


@numba.extending.register_jitable
def _unpacked(state: int) -> Any:
    """Cost and frames of a state, (-1, 0) of none."""
    return (state >> _BITS, state & ((1 << _BITS) - 1)) if state < _NOWHERE else (-1, 0)
