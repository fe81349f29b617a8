"""Greedy suppression of overlapping spans, best first."""

from __future__ import annotations

from typing import Any

from swsdist.kernels.compiled import compiled


@compiled("void(int64[::1], int64[::1], int64[::1], float64, boolean[::1])")
def suppress(bounds: Any, start: Any, stop: Any, overlap: float, keep: Any) -> None:
    """Keep a span unless a better one that is kept overlaps it by more than `overlap` of the shorter of the two.

    Args:
        bounds: int64 (groups + 1,), spans bounds[g]..bounds[g + 1] compete with each other only, best first.
        start, stop: int64 (spans,), first frame and the one after the last.
        overlap: 0 to 1.
        keep: bool (spans,), is written.
    """
    for g in range(len(bounds) - 1):
        for i in range(bounds[g], bounds[g + 1]):
            keep[i] = True
            for j in range(bounds[g], i):
                if keep[j]:
                    common = min(stop[i], stop[j]) - max(start[i], start[j])
                    if common > overlap * min(stop[i] - start[i], stop[j] - start[j]):
                        keep[i] = False
                        break
