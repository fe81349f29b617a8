"""The inner loop of the search: a segment of sixteen pieces of documents against a group of queries.

For each query: distances of a few frames (a *fill*, `kernels.products`), the recurrence over them (its `advance`), and
at the segment's end the candidates. The distances of one turn and the recurrence's columns stay in
the fastest cache; the curve of costs exists for one query at a time.

A segment is a complete piece, or one of several consecutive parts: the columns and the last 2 w rows of the curve are
carried over, so the boundaries do not affect the result.

**Candidates** are end frames whose cost is locally least. Document frame t is a candidate if its cost is less than
that of the w frames before it and not more than that of the w frames after it, so the earlier of equals wins, no two
candidates are within w frames of each other, and whether t is one depends on 2 w + 1 costs only: independent of where
a document was cut. Frames outside of the document do not count.

The least cost of w frames on either side is taken for all frames at once, by windows that double their width (van
Herk 1992 needs as few comparisons, but two passes in opposite directions).
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

from swsdist.core.arrays import Ints
from swsdist.kernels.arithmetic import State, StateType, choose, least, most
from swsdist.kernels.compiled import compiled
from swsdist.kernels.products import FILL, LARGEST, STRIDE, Fill, in_range, rows_of, scale_of
from swsdist.kernels.vectors import WIDTH, below, lanes_of, load, load_unsigned, lowest_bit, spread, store

#: Columns of a row of matches: query, document, end frame, document frames of the path, cost.
COLUMNS = 5


@numba.extending.register_jitable
def sliding_least(values: State, rows: int, window: int) -> None:
    """Replace each row by the least of it and the window - 1 rows after it; the last window - 1 rows become meaningless.

    Args:
        values: integers (rows, 16), flat.
        rows: at least `window`.
        window: at least 1.
    """
    width = 1
    while width < window:
        step = min(width, window - width)
        for row in range(rows - width - step + 1):
            place = row * WIDTH
            store(values, place, least(load(values, place), load(values, place + step * WIDTH)))
        width += step


@numba.extending.register_jitable
def pick(
    curve: State,
    rows: int,
    row_zero: int,
    bits: int,
    infinity: int,
    window: int,
    lanes: Ints,
    query: int,
    minima: State,
    matches: Ints,
    count: int,
) -> int:
    """Append the best candidates of a stretch of curves, one a lane.

    Args:
        curve: packed states (rows, 16), flat: cost in the high bits, document frames of the path in the low ones. Only rows
            window <= row < rows - window are looked at; frames outside of the document hold infinity.
        row_zero: frame of the piece that row 0 is; may be negative.
        bits: low bits of a state that are not cost.
        infinity: states from here on are no path at all.
        window: w, at least 1.
        lanes: int64 (16, 6): of each lane frames, first and stop of those reported, document, offset of the piece in it, and
            how many candidates to keep: those of least cost, earlier ends first.
        query: number that goes into the rows.
        minima: room, as large as curve.
        matches: int64 (many, 5), receives rows from `count` on; needs room for `bound(rows, window)` more a lane.

    Returns:
        The new count. Rows of a lane are in no particular order.
    """
    for row in range(rows):
        store(minima, row * WIDTH, load(curve, row * WIDTH) >> bits)
    sliding_least(minima, rows, window)
    room = bound(rows, window)
    held = [0] * WIDTH
    worst = [0] * WIDTH  # place of the one to give way, once there are as many as may be kept
    for row in range(window, rows - window):
        cost = load(curve, row * WIDTH) >> bits
        before, after = load(minima, (row - window) * WIDTH), load(minima, (row + 1) * WIDTH)
        mask = below(cost, before) & ~below(after, cost)
        while mask:
            lane = lowest_bit(mask)
            mask &= mask - 1
            frame = row_zero + row
            packed = curve[row * WIDTH + lane]
            if frame < lanes[lane, 1] or frame >= lanes[lane, 2] or packed >= infinity:
                continue
            most = min(room, lanes[lane, 5])
            start = count + lane * room
            if held[lane] < most:
                place = start + held[lane]
                held[lane] += 1
            elif most > 0 and (packed >> bits) < matches[worst[lane], 4]:
                place = worst[lane]
            else:
                continue
            matches[place, 2] = lanes[lane, 4] + frame
            matches[place, 3] = packed & ((1 << bits) - 1)
            matches[place, 4] = packed >> bits
            if held[lane] == most:
                worst[lane] = start
                for k in range(start + 1, start + most):
                    high, highest = matches[k, 4], matches[worst[lane], 4]
                    if high > highest or (high == highest and matches[k, 2] > matches[worst[lane], 2]):
                        worst[lane] = k
    kept = count
    for lane in range(WIDTH):
        for k in range(count + lane * room, count + lane * room + held[lane]):
            matches[kept, 0] = query
            matches[kept, 1] = lanes[lane, 3]
            for column in range(2, COLUMNS):
                matches[kept, column] = matches[k, column]
            kept += 1
    return kept


@numba.extending.register_jitable
def bound(rows: int, window: int) -> int:
    """The most candidates that so many rows can hold: no two are within `window` rows of each other."""
    return rows // (window + 1) + 1


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
        `pick`; window; columns and tails, flat, kept from call to call; buffers for distances int16, sums int32,
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
        shape: Ints,
        shift: int,
        pairs: int,
        frames_of_queries: NDArray[np.int16],
        queries: Ints,
        start: int,
        length: int,
        last: bool,
        lanes: Ints,
        window: int,
        columns: State,
        tails: State,
        distances: NDArray[np.int16],
        sums: NDArray[np.int32],
        curve: State,
        minima: State,
        matches: Ints,
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
    distances: NDArray[np.int16], used: int, apart: int, shape: Ints, shift: int, sums: NDArray[np.int32]
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
def _spread_rows(distances: NDArray[np.int16], frames: int, rows: int, lanes: Ints, ranges: NDArray[np.int32]) -> None:
    """Map each query frame's distances to each document to their range, see `kernels.products`; padding does not count.

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
