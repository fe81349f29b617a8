"""Candidates: end frames whose cost is locally least.

Document frame t is a candidate if its cost is less than that of the w frames before it and not more than that of the w frames
after it, so the earlier of equals wins, no two candidates are within w frames of each other, and whether t is one depends on
2 w + 1 costs only: independent of where a document was cut. Frames outside of the document do not count.

The least cost of w frames on either side is taken for all frames at once, by windows that double their width (van Herk 1992
needs as few comparisons, but two passes in opposite directions).
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.arithmetic import least
from swsdist.kernels.recurrences.packing import State
from swsdist.kernels.vectors import WIDTH, below, load, lowest_bit, store

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
    lanes: NDArray[np.int64],
    query: int,
    minima: State,
    matches: NDArray[np.int64],
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
