"""Whether features are posteriors: each frame probabilities that sum to 1, or all zero, which says nothing at all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import methods as codes
from swsdist.kernels.compiled import compiled

#: How far the sum of a frame's probabilities may be from 1.
TOLERANCE = 0.01


@compiled("int64(float64[:,::1], float64[::1])")
def _totals(values: NDArray[np.float64], out: NDArray[np.float64]) -> int:
    frames, dimension = values.shape
    for t in range(frames):
        total = 0.0
        for k in range(dimension):
            if not values[t, k] >= 0.0:
                return int(t)
            total = total + values[t, k]
        if total != 0.0 and abs(total - 1.0) > TOLERANCE:
            return int(t)
        out[t] = total
    return -1


def totals(values: NDArray[np.float64], name: str, where: str | None) -> NDArray[np.float64]:
    """Sums of the frames, in the order of the index; 0 for a frame that is all zero.

    Args:
        values: float64 (frames, D).
        name: of the distance, for errors.
        where: whose features they are, for errors.

    Raises:
        DataError: a value is negative, or a frame's sum is not 1.
    """
    out = np.empty(len(values))
    bad = _totals(values, out)
    if bad >= 0:
        frame = values[bad]
        problem = f"it contains {frame.min():g}" if frame.min() < 0 else f"its sum is {frame.sum():g}"
        raise codes.NEEDS_POSTERIORS(where=where, name=name, frame=bad, problem=problem)
    return out
