"""The threshold of best TWV of a list in memory, which `swsdist.calibrate.procedure` finds in parts of one."""

import math

import numpy as np

from swsdist.core.errors import UserError
from swsdist.score.measures.curve import Counts, best_point
from swsdist.score.measures.twv import twv_curve


def fit_threshold(counts: Counts, *, trials: int, beta: float) -> float:
    """The threshold of the maximum value, to be used as `score >= threshold` on this or another list.

    Where rejecting everything is best, it is the next double above the highest score."""
    if not len(counts.score):
        raise UserError(
            "a threshold cannot be fitted: no query with references has a detection",
            remedy="fit on more queries (fewer folds), or give a fitted FILE in calibrate.fit",
        )
    curve = twv_curve(counts, trials=trials, beta=beta)
    found = best_point([curve])
    if found.last:
        return float(np.nextafter(curve.threshold[-1], math.inf))
    assert found.point.threshold is not None  # there are scores
    return found.point.threshold
