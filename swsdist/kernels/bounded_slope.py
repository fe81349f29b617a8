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
`packing`), else int64.

Layout: frame t of `lanes` pieces of documents lies side by side, so that the inner loop runs over lanes and the compiler
vectorises it. The three columns of state rotate by reference. No fast-math flag anywhere: all is integer.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from swsdist.errors import UserError
from swsdist.kernels.scales import LONGEST_QUERY, MAX_DISTANCE


class Packing(NamedTuple):
    """How cost and frames share an integer for a query of a given length."""

    dtype: Any
    frame_bits: int
    infinity: int


def packing(query_frames: int) -> Packing:
    """The narrowest state that holds any path of a query.

    A path costs at most 4095 N, so cost and frames need ceil(log2(4095 N + 1)) + ceil(log2(2 N + 1)) bits. Infinity,
    for cells that no path reaches, leaves room for the two distances that a step adds to it.

    Args:
        query_frames: N, at least 1.

    Raises:
        UserError: the query is longer than 2^20 frames.
    """
    frame_bits = int(2 * query_frames).bit_length()
    cost = MAX_DISTANCE * (query_frames + 2)
    for dtype in (np.int32, np.int64):
        infinity = (cost << frame_bits) + 1
        if 2 * infinity <= np.iinfo(dtype).max and query_frames <= LONGEST_QUERY:
            return Packing(dtype, frame_bits, infinity)
    raise UserError(
        f"a query of {query_frames} frames is too long to search",
        remedy=f"cut it into shorter queries; {LONGEST_QUERY} frames are the most",
    )


def cell(diagonal: Any, slow: Any, fast: Any, d: Any, d_before: Any, integer: Any = int) -> Any:
    """State of (i, t) from S(i-1, t-1), S(i-1, t-2), S(i-2, t-1), d(i, t) and d(i-1, t); distances already shifted.

    The single source of the recurrence: the oracle calls it with Python integers, the CPU kernel compiles it.
    `integer` is the type of the state: numba would widen each sum to 64 bits, and half the lanes would be lost.
    """
    best = integer(diagonal + 1)
    two = integer(slow + 2)
    if two < best:
        best = two
    skip = integer(integer(fast + d_before) + 1)
    if skip < best:
        best = skip
    return integer(best + d)


_cell = numba.njit(inline="always")(cell)


def _columns(distances: Any, oldest: Any, older: Any, newest: Any, curve: Any, frame_bits: int) -> None:
    """Advance the recurrence over a block; on return the newest column is the one of the block's last frame.

    Rows of a column: 0 is i = -2 (infinity), 1 is i = -1 (zero), i + 2 is query frame i.
    """
    query_frames, frames, lanes = distances.shape
    integer = curve.dtype.type
    bits = integer(frame_bits)
    for t in range(frames):
        for i in range(query_frames):
            d = distances[i, t]
            d_before = distances[max(i - 1, 0), t]
            diagonal, slow, fast, out = newest[i + 1], older[i + 1], newest[i], oldest[i + 2]
            for lane in range(lanes):
                out[lane] = _cell(
                    diagonal[lane],
                    slow[lane],
                    fast[lane],
                    integer(integer(d[lane]) << bits),
                    integer(integer(d_before[lane]) << bits),
                    integer,
                )
        curve[t, :] = oldest[query_frames + 1]
        newest, older, oldest = oldest, newest, older


@cache
def columns(dtype: Any) -> Any:
    """The compiled recurrence for a type of state, from disk if it was compiled before.

    Signature of what is returned, arrays C-contiguous::

        (distances int32 (query frames, document frames, lanes), oldest, older, newest: dtype (query frames + 2, lanes),
         curve dtype (document frames, lanes), frame_bits int64) -> None

    The three columns are those of frames t-3 (free to be overwritten), t-2 and t-1. `curve` receives the state of the
    query's last frame at each document frame. After a block of n frames the columns' roles have rotated by n mod 3:
    use `State`, which keeps count.
    """
    state = numba.from_dtype(np.dtype(dtype))
    signature = numba.void(
        numba.int32[:, :, ::1], state[:, ::1], state[:, ::1], state[:, ::1], state[:, ::1], numba.int64
    )
    return numba.njit(signature, nogil=True, cache=True)(_columns)


class State:
    """The columns of one query against `lanes` pieces, carried from block to block."""

    def __init__(self, query_frames: int, lanes: int) -> None:
        self.packing = packing(query_frames)
        self._advance = columns(self.packing.dtype)
        self._columns = [np.empty((query_frames + 2, lanes), self.packing.dtype) for _ in range(3)]
        self.restart()

    def restart(self) -> None:
        """Forget the past: no path has begun."""
        for column in self._columns:
            column[:] = self.packing.infinity
            column[1] = 0

    def advance(self, distances: NDArray[np.int32], curve: NDArray[Any]) -> None:
        """Take in a block.

        Args:
            distances: int32 (query frames, document frames, lanes), 0..4095.
            curve: state dtype (document frames, lanes); receives the last row, packed.
        """
        self._advance(distances, *self._columns, curve, self.packing.frame_bits)
        for _ in range(distances.shape[1] % 3):
            oldest, older, newest = self._columns
            self._columns = [older, newest, oldest]
