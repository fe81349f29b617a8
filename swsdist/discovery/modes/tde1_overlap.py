"""Mode `tde1`: when two stretches of time overlap.

The program compares floats, so a common time of exactly 30 ms, or of half a length, counts or not by their noise; this is
imitated. Ticks divided by `TICKS` are the floats that the program reads.
"""

from __future__ import annotations

import numpy as np

from swsdist.discovery.units import TICKS, Flags, Intervals, Ints, touched

#: Common time or distance that counts, s.
CLOSE = 0.03
#: Shorter common times are none, s.
_NONE = 1e-8


def common_seconds(a: Intervals, b: Intervals) -> np.ndarray:
    """Common time of stretches side by side, s, negative for gaps; documents are not looked at."""
    return np.minimum(a.offset, b.offset) / TICKS - np.maximum(a.onset, b.onset) / TICKS


def overlap(a: Intervals, b: Intervals) -> Flags:
    """Whether stretches side by side overlap: by more than 30 ms, or by more than half of either; the same for documents."""
    common = common_seconds(a, b)
    shorter = np.minimum(a.offset / TICKS - a.onset / TICKS, b.offset / TICKS - b.onset / TICKS)
    return (common >= _NONE) & ((common > CLOSE) | (common > 0.5 * shorter))


def overlapped(units: Intervals, lo: Ints, hi: Ints, stretches: Intervals) -> tuple[Ints, Ints]:
    """The units of lo..hi that overlap with each stretch: those at the edges may not.

    Args:
        units: sorted by document and time, disjoint.
        lo: first unit that may belong to each stretch.
        hi: one after the last.
        stretches: as many.

    Returns:
        The first unit of each, and one after the last; equal if there is none.
    """
    lo, hi = lo.copy(), hi.copy()
    _move(units, lo, lo, hi, stretches, 0, 1)
    _move(units, hi, lo, hi, stretches, -1, -1)
    return lo, hi


def _move(units: Intervals, edge: Ints, lo: Ints, hi: Ints, stretches: Intervals, at: int, step: int) -> None:
    """Move edges inwards as long as the unit there does not overlap."""
    rows = np.flatnonzero(lo < hi)
    while len(rows):
        rows = rows[~overlap(units.take(edge[rows] + at), stretches.take(rows))]
        edge[rows] += step
        rows = rows[lo[rows] < hi[rows]]


def in_run(runs: Intervals, stretches: Intervals) -> Ints:
    """The run in which each stretch is looked up, -1 for none.

    It is the last that overlaps; without one, the one that begins before the stretch and shares any time with it.

    Args:
        runs: sorted by document and time, disjoint.
    """
    lo, hi = touched(runs, stretches)
    some = np.flatnonzero(lo < hi)
    result = np.full(len(stretches), -1, np.int64)
    early = some[runs.onset[lo[some]] < stretches.onset[some]]
    result[early] = lo[early]
    nth = 0
    while len(some):
        at = lo[some] + nth
        overlaps = overlap(runs.take(at), stretches.take(some))
        result[some[overlaps]] = at[overlaps]
        nth += 1
        some = some[lo[some] + nth < hi[some]]
    return result
