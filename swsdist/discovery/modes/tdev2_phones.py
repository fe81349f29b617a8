"""Mode `tdev2`: the phones of a fragment.

A phone that the fragment shares any time with belongs to it, but the first and the last only if they share enough. What is
enough depends on roundings of floats to 3 decimals; only these are imitated in floats, everything else is exact.
"""

from __future__ import annotations

import math

import numpy as np

from swsdist.discovery.units import TICKS, Flags, Intervals, Ints, Units, touched

#: Durations are rounded as Python rounds, by the exact value of the float: the least that becomes 60 ms.
_LONG = 0.0595 if round(0.0595, 3) >= 0.06 else math.nextafter(0.0595, 1)
#: Shared time is rounded as numpy rounds, by the float times 1000, halves to even: the least that becomes 30.
_ENOUGH_MS = 29.5


def spans(phones: Units, fragments: Intervals) -> tuple[Ints, Ints]:
    """The first phone of each fragment, and the one after the last; equal if it has none."""
    lo, hi = touched(phones, fragments)
    some = np.flatnonzero(hi > lo)
    kept = fragments.take(some)
    first, last = lo[some], hi[some] - 1
    lo[some] += ~_enough(phones.take(first), kept)
    # A single phone that is left out is left out once.
    hi[some] -= (first < last) & ~_enough(phones.take(last), kept)
    return lo, hi


def _enough(phones: Intervals, fragments: Intervals) -> Flags:
    """Whether each fragment has enough of a phone: 30 ms of one of 60 ms and more, half of a shorter one."""
    duration = phones.offset / TICKS - phones.onset / TICKS
    common = shared_seconds(phones, fragments)
    return np.where(duration >= _LONG, common * 1000 >= _ENOUGH_MS, common / duration >= 0.5)


def shared_seconds(units: Intervals, fragments: Intervals) -> np.ndarray:
    """Time that each unit shares with the fragment beside it, with the noise of a difference of floats."""
    offset, onset = np.minimum(units.offset, fragments.offset), np.maximum(units.onset, fragments.onset)
    return offset / TICKS - onset / TICKS
