"""The bounded-slope recurrence in short windows of documents: vectors of consecutive frames instead of document lanes.

S(i, t) depends on rows i - 1 and i - 2 only (`kernels.recurrences.bounded_slope`), so a row of one document can be
computed sixteen frames at a time, without other documents in parallel. A *window* is a stretch of end frames; their
exact costs need the columns from 2 (N - 1) frames before it. Row i needs only the columns that a path can pass
through::

    begin - 2 (N - 1 - i) <= t < stop - ceil((N - 1 - i) / 2)

Layouts, flat and C-contiguous, are those of `kernels.products`, with sixteen consecutive frames in place of sixteen
documents:
frames int16 (groups, pairs, 16, 2), distances int16 (groups, rows, 16). A window begins with a group.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Ints, Singles
from swsdist.kernels.arithmetic import State, StateType, least
from swsdist.kernels.compiled import compiled
from swsdist.kernels.recurrences.bounded_slope import cell
from swsdist.kernels.vectors import WIDTH, lanes_of, load, load_unsigned, spread, store

#: Columns of `windows`: its first group, its columns, the first column whose cost is needed, and the first and the stop
#: column of candidates.
WINDOW = ("group", "columns", "begin", "first", "stop")

#: A compiled scan; see `scanner` for the arguments.
Scan: TypeAlias = Callable[
    [NDArray[np.int16], int, int, Ints, int, int, int, State, Ints],
    int,
]


def _scan(
    distances: NDArray[np.int16],
    height: int,
    n: int,
    windows: Ints,
    bits: int,
    infinity: int,
    window: int,
    rows: State,
    matches: Ints,
) -> int:
    like = lanes_of(rows)
    shift = spread(bits, like)
    size = len(rows) // 3
    count = 0
    for k in range(len(windows)):
        group, columns, begin, first, stop = windows[k]
        for c in range(columns + 2 * WIDTH):
            rows[c] = infinity
            rows[size + c] = 0
        for i in range(n):
            older, newer, out = i % 3 * size, (i + 1) % 3 * size, (i + 2) % 3 * size
            rest = n - 1 - i
            rows[out + WIDTH - 2] = infinity
            rows[out + WIDTH - 1] = infinity
            low = max(0, begin - 2 * rest) // WIDTH
            high = (columns - (rest + 1) // 2 + WIDTH - 1) // WIDTH
            for g in range(low, high):
                at = (g + 1) * WIDTH
                place = ((group + g) * height + i) * WIDTH
                state = cell(
                    load(rows, newer + at - 1),
                    load(rows, newer + at - 2),
                    load(rows, older + at - 1),
                    load_unsigned(distances, place, like) << shift,
                    load_unsigned(distances, place - min(i, 1) * WIDTH, like) << shift,
                )
                store(rows, out + at, state)
        zero = (n + 1) % 3 * size + WIDTH  # column 0 of the last row
        t = first
        while t < stop:
            state_here = rows[zero + t]
            cost = state_here >> bits
            if state_here >= infinity:
                t += 1
                continue
            lowest = True
            for u in range(max(begin, t - window), t):
                if (rows[zero + u] >> bits) <= cost:
                    lowest = False
                    break
            if lowest:
                for u in range(t + 1, min(columns, t + window + 1)):
                    if (rows[zero + u] >> bits) < cost:
                        lowest = False
                        break
            if lowest:
                matches[count, 0] = k
                matches[count, 1] = t
                matches[count, 2] = state_here & ((1 << bits) - 1)
                matches[count, 3] = cost
                count += 1
                t += window
            t += 1
    return count


@cache
def scanner(dtype: StateType) -> Scan:
    """The compiled scan of a query's windows for a type of state, cached on disk.

    Returns:
        A function of (distances int16; their rows a group; query frames; windows int64 (many, 5), see `WINDOW`; frame
        bits and infinity of the packing; frames on either side within which a candidate must have the least cost;
        buffer for three rows, `room(columns)`; matches int64 (many, 4), written: window, column, document frames of the path,
        cost, in the order of windows and columns) that returns the number of rows found.
    """
    number = numba.int64
    signature = number(
        numba.int16[::1],
        number,
        number,
        numba.int64[:, ::1],
        number,
        number,
        number,
        numba.from_dtype(np.dtype(dtype))[::1],
        numba.int64[:, ::1],
    )
    return compiled(signature)(_scan)


def room(columns: int) -> int:
    """Elements of three rows of windows with at most this many columns."""
    return 3 * (-(-columns // WIDTH) + 2) * WIDTH


@compiled("void(int32[:,::1], int64[::1], int64[::1], int32[:,:,::1])")
def lay(frames: NDArray[np.int32], first: Ints, groups: Ints, out: NDArray[np.int32]) -> None:
    """Copy windows one after the other, in groups of sixteen frames.

    Args:
        frames: int32 (frames, pairs), each element two coordinates.
        first, groups: int64 (windows,), the first frame of a window in `frames`, and its groups; the last group is
            filled with the following frames, or at the end with copies of the last frame.
        out: int32 (groups, pairs, 16), written; unused groups become zero.
    """
    group = 0
    for k in range(len(first)):
        for g in range(groups[k]):
            for lane in range(WIDTH):
                t = min(first[k] + g * WIDTH + lane, len(frames) - 1)
                for pair in range(frames.shape[1]):
                    out[group, pair, lane] = frames[t, pair]
            group += 1
    out[group:] = 0


#: Arrays from Arrow buffers are read-only.
_FRAMES = numba.types.Array(numba.float32, 2, "C", readonly=True)


@compiled(numba.void(_FRAMES, numba.int64, numba.float32[:, ::1]))
def means(frames: Singles, factor: int, out: Singles) -> None:
    """Mean of every `factor` consecutive frames, summed in float64 in order; the last mean covers the remaining frames.

    Args:
        frames: float32 (frames, dimension).
        out: float32 (ceil(frames / factor), dimension), written.
    """
    total = np.empty(frames.shape[1])
    for t in range(len(out)):
        stop = min((t + 1) * factor, len(frames))
        total[:] = 0.0
        for u in range(t * factor, stop):
            for k in range(len(total)):
                total[k] += frames[u, k]
        for k in range(len(total)):
            out[t, k] = total[k] / (stop - t * factor)


@compiled(numba.void(_FRAMES, numba.int64[::1], numba.int16[:, ::1]))
def pack(frames: Singles, order: Ints, out: NDArray[np.int16]) -> None:
    """Reorder the columns of frames, as integers.

    Args:
        frames: float32 (frames, columns) of integers.
        order: int64 (2 x pairs,), as `kernels.products.Layout.order`.
        out: int16 (frames, 2 x pairs), written.
    """
    for t in range(len(frames)):
        for k in range(len(order)):
            column = order[k]
            out[t, k] = frames[t, max(column, 0)] if column >= 0 else 0


@compiled("void(int16[::1], int64, int64, int16[::1])")
def column_minima(distances: NDArray[np.int16], height: int, n: int, out: NDArray[np.int16]) -> None:
    """Least distance of each document frame to any of a query's n frames.

    Args:
        distances: int16 (groups, height, 16), flat.
        out: int16 (groups * 16,), written.
    """
    for g in range(len(out) // WIDTH):
        best = load(distances, g * height * WIDTH)
        for i in range(1, n):
            best = least(best, load(distances, (g * height + i) * WIDTH))
        store(out, g * WIDTH, best)


_SUMS = "int64(int16[::1], int64[:,::1], int64, int64[::1], int64, int64[:,::1])"


@compiled(_SUMS)
def least_sums(
    minima: NDArray[np.int16],
    stretches: Ints,
    n: int,
    most: Ints,
    limit: int,
    matches: Ints,
) -> int:
    """Windows of n frames with 50 % overlap and the least sums.

    A document's windows begin at multiples of n // 2; if frames remain, an additional window ends with the document. A
    document shorter than n is one window.

    Args:
        minima: int16, of stretches of documents.
        stretches: int64 (many, 4): the index in `minima` of the document's frame 0 (out of range if the stretch begins
            later), the document's frames, and two frames a, b: only windows that end in the frames a to b - 1 count.
        most: int64 (stretches,), the most windows per stretch.
        limit: the largest sum of interest.
        matches: int64 (at least sum of most, 3), written: stretch, first frame, sum.

    Returns:
        Number of rows written; those of a stretch are in no particular order. The earlier of windows with equal sums is
        kept.
    """
    hop = max(1, n // 2)
    count = 0
    for k in range(len(stretches)):
        zero, length, after, stop = stretches[k]
        start, held, worst = count, 0, 0
        last = max(0, length - n)
        number = max(0, (after - n) // hop)
        while True:
            begin = min(number * hop, last)
            end = min(begin + n, length)
            if end > stop:
                break
            if end > after:
                total = 0
                for t in range(zero + begin, zero + end):
                    total += minima[t]
                if total <= limit:
                    place = -1
                    if held < most[k]:
                        place = start + held
                        held += 1
                    elif held > 0 and total < matches[worst, 2]:
                        place = worst
                    if place >= 0:
                        matches[place, 0] = k
                        matches[place, 1] = begin
                        matches[place, 2] = total
                        if held == most[k]:
                            worst = start
                            for row in range(start, start + held):
                                more = matches[row, 2] - matches[worst, 2]
                                if more > 0 or (more == 0 and matches[row, 1] > matches[worst, 1]):
                                    worst = row
            if begin == last:
                break
            number += 1
        count = start + held
    return count
