"""The phones that belong to a fragment, by the rule of the seed: more than 30 ms of it, or more than half of the phone.

Source: Versteegh et al. 2015, as the ZeroSpeech 2017 description of the track's measures has it: T of a fragment.
"""

from __future__ import annotations

import numpy as np

from swsdist.discovery.units import Flags, Gold, Intervals, Ints, touched

#: Ticks of which a part of a phone must have more, or less than which a boundary may be off.
EDGE = 30_000


def spans(gold: Gold, stretches: Intervals) -> tuple[Ints, Ints]:
    """First phone of each stretch, and the one after the last; equal where it has no phone.

    Only the first and the last of the phones that it touches can be there in part, for phones are disjoint.
    """
    first, last = touched(gold.phones, stretches)
    some = first < last
    starts = first + (some & ~_belongs(gold, first, stretches))
    ends = last - (some & ~_belongs(gold, last - 1, stretches))
    return starts, np.maximum(starts, ends)


def _belongs(gold: Gold, phone: Ints, stretches: Intervals) -> Flags:
    """Whether a phone belongs to its stretch; of an index beyond the phones anything."""
    if not len(gold):
        return np.zeros(len(phone), bool)
    at = np.clip(phone, 0, len(gold) - 1)
    onset, offset = gold.phones.onset[at], gold.phones.offset[at]
    common = np.minimum(stretches.offset, offset) - np.maximum(stretches.onset, onset)
    result: Flags = (common > EDGE) | (2 * common > offset - onset)
    return result
