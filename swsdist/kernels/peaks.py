"""Candidates: end frames whose cost is locally least.

Document frame t is a candidate if its cost is less than that of the w frames before it and not more than that of the w frames
after it, so the earlier of equals wins, no two candidates are within w frames of each other, and whether t is one depends on
2 w + 1 costs only: independent of where a document was cut. Frames outside of the document do not count.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray


def _local_minima(curve: Any, bits: int, first: Any, stop: Any, frames: Any, window: int, limit: int, out: Any) -> int:
    found = 0
    for lane in range(curve.shape[1]):
        t = first[lane]
        while t < stop[lane]:
            cost = curve[t, lane] >> bits
            if curve[t, lane] >= limit:
                t += 1
                continue
            best = True
            for u in range(max(t - window, 0), t):
                if (curve[u, lane] >> bits) <= cost:
                    best = False
                    break
            if not best:
                t += 1
                continue
            for u in range(t + 1, min(t + window + 1, frames[lane])):
                if (curve[u, lane] >> bits) < cost:
                    best = False
                    break
            if best:
                out[found, 0] = lane
                out[found, 1] = t
                found += 1
                t += window + 1
            else:
                t += 1
    return found


_ARGUMENTS = "int64, int64[::1], int64[::1], int64[::1], int64, int64, int64[:,::1])"
_compiled = numba.njit(
    [f"int64(int32[:,::1], {_ARGUMENTS}", f"int64(int64[:,::1], {_ARGUMENTS}"], nogil=True, cache=True
)(_local_minima)


def local_minima(
    curve: NDArray[Any],
    frame_bits: int,
    first: NDArray[np.int64],
    stop: NDArray[np.int64],
    frames: NDArray[np.int64],
    window: int,
    limit: int,
) -> NDArray[np.int64]:
    """Candidates in the lanes of a batch.

    Args:
        curve: int32 or int64 (document frames, lanes), packed states of the query's last frame.
        frame_bits: low bits of a state that are not cost.
        first, stop: int64 (lanes,), candidates are looked for in first <= t < stop.
        frames: int64 (lanes,), frames of the lane that belong to the document; the rest is padding.
        window: w, at least 1.
        limit: states from here on are no path at all.

    Returns:
        int64 (candidates, 2): lane and frame, by lane, then frame.
    """
    most = int(np.sum(np.maximum(stop - first, 0) // (window + 1) + 1))
    out = np.empty((most, 2), np.int64)
    return out[: _compiled(curve, frame_bits, first, stop, frames, window, limit, out)]
