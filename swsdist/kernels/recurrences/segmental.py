"""Segmental dynamic time warping: a path begins at one of every R document frames, and stays in a band about its diagonal.

A *segment* begins at document frame s, a multiple of R, with cell (0, s), and holds the cells (i, t) that are at most R
off its diagonal, ``|i - (t - s)| <= R``. In it, steps are (1, 1), (0, 1) and (1, 0) in query and document frames, and
each cell that a path visits is charged; with S(0, s) = d(0, s)::

    S(i, t) = d(i, t) + min(S(i-1, t-1), S(i, t-1), S(i-1, t))

and of equal sums the shorter path. The query is covered whole; the path ends anywhere in the band. Paths of several
segments that end at the same frame are compared by their averages, sum over length, as the integers that candidates
have; of equals that of fewer document frames wins. The bands are 2 R + 1 wide and begin every R frames, so each cell is
in two or three of them.

Sources: A. Park, J. Glass, "Unsupervised pattern discovery in speech", IEEE TASLP 16(1), 2008: the band, start points
along the axes, averages. With a query on one side, and start points R apart so that bands overlap by half: Y. Zhang, J.
Glass, "Unsupervised spoken keyword spotting via segmental DTW on Gaussian posteriorgrams", ASRU 2009.

A path takes at most N + R document frames, and a result depends on nothing further back, but on where the document
begins: start points are counted from there. State of a cell: ``sum << bits | length``. A segment keeps the 2 R + 1
cells of its last frame, ordered by ``i - (t - s)``, and one that stays infinity; there is a place for as many segments
as are alive at once.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import families
from swsdist.kernels.arithmetic import MAX_DISTANCE, Packing, State, Value, choose, least
from swsdist.kernels.recurrences.interface import (
    BEGIN,
    BITS,
    DIAGONAL,
    LEFT,
    NO_PATH,
    STAY,
    Codes,
    Numbers,
    Recurrence,
    Table,
    narrow,
    share,
    wide,
)
from swsdist.kernels.vectors import WIDTH, lanes_of, load, load_unsigned, spread, store
from swsdist.registry.registries import RECURRENCES

#: Most query frames plus R: `share` is exact, and 64 bits are enough.
LONGEST_SUM = RECURRENCES["segmental"].longest_query


def cell(diagonal: Value, left: Value, above: Value, d: Value) -> Value:
    """State of (i, t) from those of (i-1, t-1), (i, t-1), (i-1, t), and d(i, t) already shifted."""
    return least(least(diagonal, left), above) + d + 1


numba.extending.register_jitable(cell)


def packing(n: int, band: int) -> Packing:
    """Packing of sum and length in an integer, and, in the curve, of cost and document frames.

    Raises:
        UserError: the query is too long.
    """
    if n + band > LONGEST_SUM:
        raise families.TOO_LARGE(
            "a query of {frames} frames and a band of {band} are too long for the recurrence segmental",
            "cut it into shorter queries: frames and band together are at most {longest}",
            frames=n,
            band=band,
            longest=LONGEST_SUM,
        )
    longest = 2 * n + band
    bits = longest.bit_length()
    infinity = (MAX_DISTANCE * (longest + 2) << bits) + 1
    return Packing(np.int32 if 2 * infinity <= np.iinfo(np.int32).max else np.int64, bits, infinity)


def columns(n: int, band: int) -> int:
    """Rows of state, of sixteen lanes each: 2 R + 2 for each segment alive at once."""
    return ((n - 1) // band + 2) * (2 * band + 2)


def advance(
    distances: NDArray[np.int16], row: int, n: int, t: int, columns: State, at: int, bits: int, band: int
) -> Any:
    """Process the distances of frame t; arguments as in `kernels.recurrences.bounded_slope`.

    A segment may begin at frame 0.
    """
    like = lanes_of(columns)
    shift = spread(bits, like)
    width = 2 * band + 2
    places = (n - 1) // band + 2
    infinity = load(columns, at + (width - 1) * WIDTH)
    newest = t // band
    best = infinity
    for number in range(max(0, newest - places + 1), newest + 1):
        place = at + number % places * width * WIDTH
        along = t - number * band
        if along == 0:
            for k in range(width):
                store(columns, place + k * WIDTH, infinity)
            store(columns, place + band * WIDTH, like)  # before the first cell: 0
        place += (band - along) * WIDTH  # for row i, i - (t - s) + R
        low, high = max(0, along - band), min(n - 1, along + band)
        state = infinity
        diagonal = load(columns, place + low * WIDTH)
        for i in range(low, high + 1):
            left = load(columns, place + (i + 1) * WIDTH)
            state = cell(diagonal, left, state, load_unsigned(distances, row + i * WIDTH, like) << shift)
            store(columns, place + i * WIDTH, state)
            diagonal = left
        if low < n <= high + 1:
            total = wide(state >> shift)
            cost = share(total, n, wide(state) - (total << spread(bits, total)))
            ended = narrow((cost << spread(bits, cost)) + (along + 1), like)
            best = least(choose(state, infinity, ended, infinity), best)
    return best


def restart(columns: State, at: int, n: int, infinity: int, band: int) -> None:
    """Reset the state: no segment has begun."""
    for row in range(((n - 1) // band + 2) * (2 * band + 2)):
        store(columns, at + row * WIDTH, spread(infinity, lanes_of(columns)))


def trace(distances: Table, option: int, cost: Numbers, frames: Numbers, steps: Codes) -> None:
    """The plain version; `option` is R. Its steps belong to no particular segment: see `trace_path`."""
    n, length = distances.shape
    cost[:] = -1
    frames[:] = 0
    ended, sizes = np.empty(length, np.int64), np.empty(length, np.int64)
    for start in range(0, length, option):
        stop = min(length, start + n + option)
        _segment(distances[:, start:stop], option, ended, sizes, steps[:, start:stop])
        for t in range(start, stop):
            ending = ended[t - start], sizes[t - start]
            if ending[1] > 0 and (frames[t] == 0 or ending < (cost[t], frames[t])):
                cost[t], frames[t] = ending


def trace_path(distances: Table, option: int, cost: Numbers, frames: Numbers, steps: Codes) -> None:
    """The segment that begins with the table's first document frame."""
    _segment(distances, option, cost, frames, steps)


@numba.extending.register_jitable
def _segment(distances: Table, band: int, cost: Numbers, frames: Numbers, steps: Codes) -> None:
    n, length = distances.shape
    column = np.full(n + 1, NO_PATH)  # row i + 1 is query frame i
    column[0] = 0
    for t in range(length):
        low, high = max(0, t - band), min(n - 1, t + band)
        diagonal, above = column[low], np.int64(NO_PATH)
        for i in range(low, high + 1):
            left = column[i + 1] if i < t + band else np.int64(NO_PATH)
            d = distances[i, t] << BITS
            state = cell(diagonal, left, above, d)
            if state == diagonal + d + 1:
                steps[i, t] = DIAGONAL if i + t > 0 else BEGIN
            elif state == left + d + 1:
                steps[i, t] = LEFT
            else:
                steps[i, t] = STAY
            column[i + 1] = state
            diagonal, above = left, state
        column[0] = NO_PATH
        frames[t] = t + 1 if low < n <= high + 1 else 0
        cost[t] = share(column[n] >> BITS, n, column[n] & ((1 << BITS) - 1)) if frames[t] > 0 else -1


def recurrence(band: int) -> Recurrence:
    """The recurrence, for the search; `band` is R."""
    return Recurrence(
        lambda n: packing(n, band),
        advance,
        restart,
        lambda n: columns(n, band),
        lambda n: n + band,
        trace,
        trace_path,
        option=band,
        grid=band,
    )
