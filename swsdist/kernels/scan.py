"""The inner loop of the search: a segment of sixteen pieces of documents against a group of queries.

For each query: distances of a few frames (a *fill*, `kernels.products`), the recurrence over them (its `advance`), and
at the segment's end the candidates (`kernels.peaks`). The distances of one turn and the recurrence's columns stay in
the fastest cache; the curve of costs exists for one query at a time.

A segment is a complete piece, or one of several consecutive parts: the columns and the last 2 w rows of the curve are
carried over, so the boundaries do not affect the result.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from swsdist.kernels.arithmetic import choose, least, most
from swsdist.kernels.compiled import compiled
from swsdist.kernels.peaks import bound, pick
from swsdist.kernels.products import FILL, STRIDE, Fill, rows_of
from swsdist.kernels.recurrences.packing import State, StateType
from swsdist.kernels.row_range import LARGEST, in_range, scale_of
from swsdist.kernels.vectors import WIDTH, lanes_of, load, load_unsigned, spread, store

# Passing compiled functions to compiled functions works since numba 0.48, but still warns.
warnings.filterwarnings("ignore", "First-class function type", numba.core.errors.NumbaExperimentalFeatureWarning)

#: The functions of a recurrence's inner loop, see `kernels.recurrences.bounded_slope`.
Advance: TypeAlias = Callable[[NDArray[np.int16], int, int, int, State, int, int, int], Any]
Restart: TypeAlias = Callable[[State, int, int, int, int], None]

#: The compiled inner loop of a recurrence; see `scanner` for the arguments.
Scan: TypeAlias = Callable[..., int]

#: Distances per turn: half of a first-level cache of 32 kB.
_TURN = 8192

#: Columns of `queries`.
QUERY = ("index", "frames", "place", "large", "small", "bits", "infinity", "columns", "option", "begin")
_INDEX, _FRAMES, _PLACE, _LARGE, _SMALL, _BITS, _INFINITY, _COLUMNS, _OPTION, _BEGIN = range(len(QUERY))


def turn(rows: int) -> int:
    """Document frames per turn, for a query with this many rows."""
    return max(STRIDE, min(64, _TURN // (rows * WIDTH) // STRIDE * STRIDE))


@cache
def scanner(
    advance: Advance, restart: Restart, state: StateType, curve: StateType, streams: int, row_range: bool = False
) -> Scan:
    """The compiled inner loop of a recurrence, cached on disk.

    Args:
        advance, restart: plain module-level functions of the recurrence (see `kernels.recurrences.bounded_slope`).
        state: dtype of the columns.
        curve: dtype of the curve, int32 or int64.
        streams: feature streams.
        row_range: the distances of a query frame to a document are mapped to their range (`spread_rows`); a segment is then
            a complete document, whose distances are in memory at once.

    Returns:
        A function of (fills, sources: tuples, one a stream; shape int64 (streams, 3): first pair, pairs, weight; shift;
        pairs of a frame of the source; query frames int16, flat; queries int64 (queries, 10), see `QUERY`; frame of the
        segment's start; its frames, a multiple of `STRIDE`; whether it is the last; lanes int64 (16, 6), see
        `peaks.pick`; window; columns and tails, flat, kept from call to call; buffers for distances int16, sums int32,
        curve, minima; matches int64 (many, 5)) that returns the number of rows found.
    """
    for function in (advance, restart):
        numba.extending.register_jitable(function)
    jitted_turn = numba.extending.register_jitable(turn)
    of_state, of_curve = (numba.from_dtype(np.dtype(dtype))[::1] for dtype in (state, curve))
    integers = types.int64[:, ::1]
    flat = types.int16[::1]

    def scan(
        fills: tuple[Fill, ...],
        sources: tuple[NDArray[np.int16], ...],
        shape: NDArray[np.int64],
        shift: int,
        pairs: int,
        frames_of_queries: NDArray[np.int16],
        queries: NDArray[np.int64],
        start: int,
        length: int,
        last: bool,
        lanes: NDArray[np.int64],
        window: int,
        columns: State,
        tails: State,
        distances: NDArray[np.int16],
        sums: NDArray[np.int32],
        curve: State,
        minima: State,
        matches: NDArray[np.int64],
    ) -> int:
        count = 0
        carried = 2 * window
        for q in range(len(queries)):
            n, infinity, bits = queries[q, _FRAMES], queries[q, _INFINITY], queries[q, _BITS]
            large, small, at = queries[q, _LARGE], queries[q, _SMALL], queries[q, _COLUMNS]
            option = queries[q, _OPTION]
            rows = rows_of(large, small)
            step = length if row_range else jitted_turn(rows)
            begin = max(start, queries[q, _BEGIN])
            tail = q * carried * WIDTH
            for k in range(carried * WIDTH):
                curve[k] = infinity if start == 0 else tails[tail + k]
            for k in range(carried * WIDTH, (carried + min(begin - start, length)) * WIDTH):
                curve[k] = infinity
            if start <= queries[q, _BEGIN]:
                restart(columns, at, n, infinity, option)
            for t in range(begin, start + length, step):
                stop = min(t + step, start + length)
                for s in range(len(fills)):
                    fills[s](
                        sources[s],
                        t - start,
                        stop - t,
                        pairs,
                        shape[s, 0],
                        shape[s, 1],
                        frames_of_queries,
                        queries[q, _PLACE],
                        large,
                        small,
                        distances[s * step * rows * WIDTH :],
                        sums,
                    )
                if len(fills) > 1:
                    _combine(distances, (stop - t) * rows, step * rows, shape, shift, sums)
                if row_range:
                    _spread_rows(distances, stop - t, rows, lanes, sums)
                for frame in range(t, stop):
                    ended = advance(distances, (frame - t) * rows * WIDTH, n, frame, columns, at, bits, option)
                    store(curve, (carried + frame - start) * WIDTH, ended)
            end = carried + length
            for lane in range(WIDTH):
                for row in range(max(carried, carried + lanes[lane, 0] - start), end):
                    curve[row * WIDTH + lane] = infinity
            if last:
                for k in range(end * WIDTH, (end + window) * WIDTH):
                    curve[k] = infinity
                end += window
            else:
                for k in range(carried * WIDTH):
                    tails[tail + k] = curve[length * WIDTH + k]
            count = pick(
                curve, end, start - carried, bits, infinity, window, lanes, queries[q, _INDEX], minima, matches, count
            )
        return count

    signature = types.int64(
        types.UniTuple(types.FunctionType(FILL), streams),
        types.UniTuple(flat, streams),
        integers,
        types.int64,
        types.int64,
        flat,
        integers,
        types.int64,
        types.int64,
        types.boolean,
        integers,
        types.int64,
        of_state,
        of_curve,
        flat,
        types.int32[::1],
        of_curve,
        of_curve,
        integers,
    )
    return compiled(signature)(scan)


def room_for_candidates(frames: int, window: int) -> int:
    """Most rows of matches for a query in a segment of this many frames."""
    rows: int = bound(frames + 3 * window, window)
    return WIDTH * rows


def room_for_distances(rows: int) -> int:
    """Elements of the distances of a turn, for a query of at most this many rows and one stream."""
    return max(_TURN, STRIDE * rows * WIDTH)


def room_for_ranges(rows: int) -> int:
    """Elements of `sums` that `row_range` needs, for a query of at most this many rows."""
    return (2 * rows + 1) * WIDTH


@numba.extending.register_jitable
def _combine(
    distances: NDArray[np.int16], used: int, apart: int, shape: NDArray[np.int64], shift: int, sums: NDArray[np.int32]
) -> None:
    """Weighted sum of the streams' distances, written over the first stream's; see `kernels.distances`."""
    half = (1 << shift) >> 1
    like = lanes_of(sums)
    for row in range(used):
        total = like + half
        for s in range(len(shape)):
            total = total + load_unsigned(distances, (s * apart + row) * WIDTH, like) * shape[s, 2]
        store(distances, row * WIDTH, least(total >> shift, 4095))


@numba.extending.register_jitable
def _spread_rows(
    distances: NDArray[np.int16], frames: int, rows: int, lanes: NDArray[np.int64], ranges: NDArray[np.int32]
) -> None:
    """Map each query frame's distances to each document to their range, see `kernels.row_range`; padding does not count.

    Args:
        distances: int16 (frames, rows, 16), flat, are overwritten.
        frames, rows: of these.
        lanes: int64 (16, 6), the first column frames of each lane.
        ranges: room for `room_for_ranges`.
    """
    like = lanes_of(ranges)
    ends = 2 * rows * WIDTH
    for lane in range(WIDTH):
        ranges[ends + lane] = lanes[lane, 0]
    for row in range(rows):
        store(ranges, 2 * row * WIDTH, spread(LARGEST, like))
        store(ranges, (2 * row + 1) * WIDTH, like)
    for t in range(frames):
        now, end = spread(t, like), load(ranges, ends)
        for row in range(rows):
            d = load_unsigned(distances, (t * rows + row) * WIDTH, like)
            low, high = load(ranges, 2 * row * WIDTH), load(ranges, (2 * row + 1) * WIDTH)
            store(ranges, 2 * row * WIDTH, least(low, choose(now, end, d, low)))
            store(ranges, (2 * row + 1) * WIDTH, most(high, choose(now, end, d, high)))
    for row in range(rows):
        scale = scale_of(load(ranges, 2 * row * WIDTH), load(ranges, (2 * row + 1) * WIDTH))
        store(ranges, (2 * row + 1) * WIDTH, scale)
    for t in range(frames):
        for row in range(rows):
            place = (t * rows + row) * WIDTH
            low, scale = load(ranges, 2 * row * WIDTH), load(ranges, (2 * row + 1) * WIDTH)
            store(distances, place, in_range(load_unsigned(distances, place, like), low, scale))


__all__ = ["QUERY", "room_for_candidates", "room_for_distances", "room_for_ranges", "scanner", "turn"]
