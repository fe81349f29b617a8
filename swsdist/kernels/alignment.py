"""Dynamic time warping of two whole sequences, by steps that Sakoe and Chiba have: alone, or a query in many windows.

`align` and `average`, the mean of frames along a path, are what DTW barycentre averaging is made of. `in_windows` has costs
alone.

A path goes from the first frames of both to the last of both, by steps (1,1), (1,0) and (0,1), and costs the sum of the
local distances that it meets (Sakoe and Chiba 1978, "Dynamic programming algorithm optimization for spoken word
recognition", without weights or a limit of slope). Costs are integers. Where paths cost the same, the one counts that, seen
from its end, steps in both sequences rather than in the first alone, and in that rather than in the second alone. So there
is one path, and it is the same on any machine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.compiled import compiled
from swsdist.kernels.vectors import WIDTH

#: Bits of a state that hold the document frames of a path; what is above them is its cost.
_FRAMES = 21


@compiled("int64(int16[:,::1], int32[:,::1], int32[:,::1])")
def align(distances: NDArray[np.int16], cost: NDArray[np.int32], path: NDArray[np.int32]) -> int:
    """The best path.

    Args:
        distances: int16 (N, M), N and M at least 1.
        cost: int32 (N, M), is written: of the best path to each place. Holds 2^31 / 4096 = 2^19 frames of both together.
        path: int32 (N + M - 1, 2), is written: the places of the path, last first.

    Returns:
        The number of its places.
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


@compiled("void(int32[:,::1], int64, float64[:,::1], int64[::1], float64[:,::1])")
def average(
    path: NDArray[np.int32],
    places: int,
    frames: NDArray[np.float64],
    counts: NDArray[np.int64],
    mean: NDArray[np.float64],
) -> None:
    """Take the frames of a sequence into the running means of those that they meet.

    ``mean += (frame - mean) / count``, in the order of the path: equal frames have themselves as their mean.

    Args:
        path, places: of `align`; column 0 counts the means, column 1 the frames.
        frames: float64 (M, D).
        counts: int64 (N,), frames in each mean; is changed.
        mean: float64 (N, D), is changed.
    """
    for k in range(places - 1, -1, -1):
        i, j = path[k, 0], path[k, 1]
        counts[i] += 1
        for d in range(frames.shape[1]):
            mean[i, d] = mean[i, d] + (frames[j, d] - mean[i, d]) / counts[i]


_IN_WINDOWS = "void(int16[::1], int64, int64, int64[:,::1], boolean, int64[::1], int64[:,::1])"


@compiled(_IN_WINDOWS)
def in_windows(
    distances: NDArray[np.int16],
    height: int,
    n: int,
    windows: NDArray[np.int64],
    free: bool,
    row: NDArray[np.int64],
    found: NDArray[np.int64],
) -> None:
    """The best path of a query in each of some windows of a document: steps (1,1), (1,0) and (0,1), each place charged once.

    Of paths of equal cost the one counts that takes fewer document frames, and of these the one that ends first.

    Args:
        distances: int16 (groups, height, 16), flat, as `methods.dtw.query_distances` makes them.
        height: rows of the distances.
        n: frames of the query.
        windows: int64 (many, 2), first column of a window, and columns, at least 1; at most 2^21 - 1.
        free: a path may begin and end with any frame of its window; else it goes from the first to the last.
        row: int64, room for the columns of the longest window.
        found: int64 (many, 3), written: first and last column of the path, counted from the window's first, and its cost.
    """
    frame = np.int64(1)
    for k in range(len(windows)):
        begin, columns = windows[k]
        for i in range(n):
            corner = np.int64(0)  # the state of the last row, a column before
            left = np.int64(0)
            for c in range(columns):
                t = begin + c
                d = np.int64(distances[(t // WIDTH * height + i) * WIDTH + t % WIDTH]) << _FRAMES
                above = row[c]
                if i == 0:
                    state = d + frame
                    if c > 0 and not free:
                        state += left
                elif c == 0:
                    state = above + d
                else:
                    state = min(above, min(corner, left) + frame) + d
                row[c] = state
                corner = above
                left = state
        last = columns - 1
        if free:
            for c in range(columns - 2, -1, -1):
                if row[c] <= row[last]:
                    last = c
        found[k, 0] = last + 1 - (row[last] & ((1 << _FRAMES) - 1))
        found[k, 1] = last
        found[k, 2] = row[last] >> _FRAMES
