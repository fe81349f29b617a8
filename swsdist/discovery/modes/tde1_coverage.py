"""Mode `tde1`: coverage in time."""

from __future__ import annotations

import numpy as np

from swsdist.discovery.units import Intervals, places


def coverage(disc: Intervals, gold: Intervals) -> float | None:
    """Time of the union of discovered fragments, singletons too, over that of the gold fragments; None if both are none.

    Raises:
        ZeroDivisionError: there are fragments, and no gold ones.
    """
    part, total = _union(disc), _union(gold)
    return part / total if part or total else None


def _union(stretches: Intervals) -> int:
    """Ticks in any of the stretches, sorted by document and onset."""
    onset, offset = places(stretches.document, stretches.onset), places(stretches.document, stretches.offset)
    reached = np.maximum.accumulate(offset)
    before = np.concatenate([[0], reached])[:-1]
    return int(np.maximum(reached - np.maximum(onset, before), 0).sum())
