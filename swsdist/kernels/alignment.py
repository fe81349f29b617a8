"""Dynamic time warping of two complete sequences, or of a query in many windows, with the steps of Sakoe and Chiba.

DTW barycentre averaging uses `align` and `average`, the mean of frames along a path. `in_windows` computes costs only.

A path goes from the first frames of both sequences to the last of both, by steps (1,1), (1,0) and (0,1), and costs the
sum of its local distances (Sakoe and Chiba 1978, "Dynamic programming algorithm optimization for spoken word
recognition", without weights or a slope limit). Costs are integers. Ties are broken from the end of the path: a step in
both sequences is preferred to one in the first alone, and that to one in the second alone. The path is therefore
unique, and the same on any machine.

**Local alignment** of two stretches: begin and end of the like parts. A cell (i, j) gains ``level - d[i, j]``: frames
closer than `level` raise the score, others lower it. A path takes steps (1,1), and, for `gap` each, (1,0) and (0,1),
which gain nothing; it begins where its score would fall below 0 (Smith and Waterman 1981, "Identification of common
molecular subsequences"). Scores are integers. Of equal scores a step in both is preferred to one in the first
stretch, that to one in the second, and the end that comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Floats, Ints
from swsdist.kernels.arithmetic import MAX_DISTANCE, State, StateType, least
from swsdist.kernels.compiled import compiled
from swsdist.kernels.vectors import WIDTH, lanes_of, load, load_unsigned, spread, store


@compiled("int64(int16[:,::1], int32[:,::1], int32[:,::1])")
def align(distances: NDArray[np.int16], cost: NDArray[np.int32], path: NDArray[np.int32]) -> int:
    """Find the best path.

    Args:
        distances: int16 (N, M), N and M at least 1.
        cost: int32 (N, M), written: cost of the best path to each cell. Holds 2^31 / 4096 = 2^19 frames of both
            together.
        path: int32 (N + M - 1, 2), written: the cells of the path, last first.

    Returns:
        The number of its cells.
    """
    rows, columns = distances.shape
    for i in range(rows):
        for j in range(columns):
            if i > 0 and j > 0:
                before = min(cost[i - 1, j - 1], min(cost[i - 1, j], cost[i, j - 1]))
            elif i > 0:
                before = cost[i - 1, j]
            elif j > 0:
                before = cost[i, j - 1]
            else:
                before = 0
            cost[i, j] = before + distances[i, j]
    i, j, places = rows - 1, columns - 1, 0
    while True:
        path[places, 0], path[places, 1] = i, j
        places += 1
        if i == 0 and j == 0:
            return places
        if i == 0:
            j -= 1
        elif j == 0:
            i -= 1
        elif cost[i - 1, j - 1] <= min(cost[i - 1, j], cost[i, j - 1]):
            i, j = i - 1, j - 1
        elif cost[i - 1, j] <= cost[i, j - 1]:
            i -= 1
        else:
            j -= 1


class Alignment(NamedTuple):
    """The best path of two sequences: its cost, and its cells as from `align`, of which the first `places` count."""

    cost: int
    path: NDArray[np.int32]
    places: int


def aligned(distances: NDArray[np.int16]) -> Alignment:
    """The best path through distances, int16 (N, M); see `align`."""
    cost = np.empty(distances.shape, np.int32)
    path = np.empty((sum(distances.shape) - 1, 2), np.int32)
    places = align(distances, cost, path)
    return Alignment(int(cost[-1, -1]), path, places)


@compiled("void(int32[:,::1], int64, float64[:,::1], int64[::1], float64[:,::1])")
def average(
    path: NDArray[np.int32],
    places: int,
    frames: Floats,
    counts: Ints,
    mean: Floats,
) -> None:
    """Update running means with the frames of a sequence that a path aligns to them.

    ``mean += (frame - mean) / count``, in the order of the path, so the mean of equal frames is exact.

    Args:
        path, places: from `align`; column 0 indexes the means, column 1 the frames.
        frames: float64 (M, D).
        counts: int64 (N,), frames in each mean; updated.
        mean: float64 (N, D), updated.
    """
    for k in range(places - 1, -1, -1):
        i, j = path[k, 0], path[k, 1]
        counts[i] += 1
        for d in range(frames.shape[1]):
            mean[i, d] = mean[i, d] + (frames[j, d] - mean[i, d]) / counts[i]


class Packed(NamedTuple):
    """Packing of a path's cost and document frames in a state (as in `kernels.arithmetic`).

    Attributes:
        dtype: int32 or int64.
        bits: low bits with the document frames; the cost is above.
    """

    dtype: StateType
    bits: int


def packed(query_frames: int, columns: int) -> Packed:
    """The narrowest state for all paths of a query in windows of this many columns, which visit up to N + columns - 1
    cells.
    """
    bits = columns.bit_length()
    largest = (MAX_DISTANCE * (query_frames + columns) + 1) << bits
    return Packed(np.int32 if largest <= np.iinfo(np.int32).max else np.int64, bits)


#: The search of a query in windows; see `in_windows` for the arguments.
InWindows: TypeAlias = Callable[[NDArray[np.int16], int, int, Ints, bool, int, NDArray[np.int16], State, Ints], None]


def _in_windows(
    distances: NDArray[np.int16],
    height: int,
    n: int,
    windows: Ints,
    free: bool,
    bits: int,
    gathered: NDArray[np.int16],
    column: State,
    matches: Ints,
) -> None:
    like = lanes_of(column)
    shift, frame = spread(bits, like), spread(1, like)
    places = np.empty(WIDTH, np.int64)
    for group in range(0, len(windows), WIDTH):
        lanes = min(WIDTH, len(windows) - group)
        longest = np.int64(0)
        for lane in range(lanes):
            longest = max(longest, windows[group + lane, 1])
        for c in range(longest):
            for lane in range(WIDTH):
                # Lanes without a window, or with a shorter one, repeat their last column.
                window = group + min(lane, lanes - 1)
                t = windows[window, 0] + min(c, windows[window, 1] - 1)
                places[lane] = t // WIDTH * height * WIDTH + t % WIDTH
            for i in range(n):
                for lane in range(WIDTH):
                    gathered[i * WIDTH + lane] = distances[places[lane] + i * WIDTH]
            state = load_unsigned(gathered, 0, like) << shift
            left = load(column, 0)
            if c == 0 or free:
                state = state + frame
            else:
                state = state + left + frame
            store(column, 0, state)
            corner = left
            if c == 0:
                for i in range(1, n):
                    state = state + (load_unsigned(gathered, i * WIDTH, like) << shift)
                    store(column, i * WIDTH, state)
            else:
                for i in range(1, n):
                    left = load(column, i * WIDTH)
                    state = least(state, least(corner, left) + frame)
                    state = state + (load_unsigned(gathered, i * WIDTH, like) << shift)
                    store(column, i * WIDTH, state)
                    corner = left
            for lane in range(lanes):
                last = windows[group + lane, 1] - 1
                if c > last or (c < last and not free):
                    continue
                end = np.int64(column[(n - 1) * WIDTH + lane])
                if not free or c == 0 or end < matches[group + lane, 2]:
                    matches[group + lane, 1] = c
                    matches[group + lane, 2] = end
        for k in range(group, group + lanes):
            matches[k, 0] = matches[k, 1] + 1 - (matches[k, 2] & ((1 << bits) - 1))
            matches[k, 2] >>= bits


@cache
def in_windows(dtype: StateType) -> InWindows:
    """The compiled search of a query in windows of documents, for a type of state.

    Steps are (1,1), (1,0) and (0,1), and each cell counts once. Of paths of equal cost the one with fewer document
    frames wins, then the one that ends first. Sixteen windows are searched in parallel.

    Returns:
        A function of (distances int16 (groups, height, 16), flat, from `kernels.products`; their rows a group;
        query frames; windows int64 (many, 2): first column, and columns, at least 1; whether a path may begin and end
        with any frame of its window, or goes from the first to the last; bits of `packed`; buffers for 16 distances and
        for 16 states a query frame, aligned; matches int64 (many, 3), written: first and last column of the path, counted
        from the window's first, and its cost).
    """
    number = numba.int64
    signature = numba.void(
        numba.int16[::1],
        number,
        number,
        numba.int64[:, ::1],
        numba.boolean,
        number,
        numba.int16[::1],
        numba.from_dtype(np.dtype(dtype))[::1],
        numba.int64[:, ::1],
    )
    return compiled(signature)(_in_windows)


@compiled("void(int16[:,::1], int64, int64, int64, int64, int64[::1])")
def align_locally(distances: NDArray[np.int16], diagonal: int, band: int, level: int, gap: int, place: Ints) -> None:
    """Find the best path near a diagonal.

    Args:
        distances: int16 (N, M).
        diagonal: j - i of the middle of the band.
        band: greatest distance of j - i from that.
        level: distance that neither gains nor loses.
        gap: cost of a step in one stretch.
        place: int64 (5,), written: score, first and last + 1 of the first stretch, and of the second; all 0 if no cell gains.
    """
    rows, columns = distances.shape
    score = np.zeros(columns + 1, np.int64)
    begin = np.zeros((columns + 1, 2), np.int64)
    place[:] = 0
    for i in range(rows):
        before, before_i, before_j = np.int64(0), np.int64(0), np.int64(0)  # of (i - 1, j - 1)
        low, high = max(0, i + diagonal - band), min(columns, i + diagonal + band + 1)
        if low < high:
            before, before_i, before_j = score[low], begin[low, 0], begin[low, 1]
            score[low] = 0  # outside of the band
        for j in range(low, high):
            value, first_i, first_j = before, before_i, before_j
            if value <= 0:
                value, first_i, first_j = np.int64(0), np.int64(i), np.int64(j)
            value += level - distances[i, j]
            above, left = score[j + 1] - gap, score[j] - gap
            before, before_i, before_j = score[j + 1], begin[j + 1, 0], begin[j + 1, 1]
            if above > value:
                value, first_i, first_j = above, begin[j + 1, 0], begin[j + 1, 1]
            if left > value:
                value, first_i, first_j = left, begin[j, 0], begin[j, 1]
            score[j + 1] = max(value, 0)
            begin[j + 1, 0], begin[j + 1, 1] = first_i, first_j
            if value > place[0]:
                place[0] = value
                place[1], place[2], place[3], place[4] = first_i, i + 1, first_j, j + 1
