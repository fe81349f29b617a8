"""Folds: what lies wholly inside one of some intervals; n contiguous parts of equal speech time; a fold a talker."""

from __future__ import annotations

import numpy as np

from swsdist.discovery.units import Flags, Intervals, places


def inside(stretches: Intervals, fold: Intervals) -> Flags:
    """Whether each stretch lies wholly inside one interval of a fold; these are disjoint."""
    if not len(fold):
        return np.zeros(len(stretches), bool)
    fold = fold.take(np.lexsort((fold.onset, fold.document)))
    k = np.searchsorted(places(fold.document, fold.onset), places(stretches.document, stretches.onset), "right") - 1
    at = np.maximum(k, 0)
    found: Flags = (k >= 0) & (fold.document[at] == stretches.document) & (stretches.offset <= fold.offset[at])
    return found
