"""What search means, written slowly and plainly: the fast kernels are held against these.

Python integers and lists only; nothing is blocked, packed or skipped.
"""

from swsdist.kernels.recurrences.bounded_slope import cell
from swsdist.testing.conformance.distance import candidates

__all__ = ["best_path", "bounded_slope", "candidates", "keep_best"]


def bounded_slope(distances: list[list[int]]) -> list[tuple[int, int] | None]:
    """Cost and document frames of the best path to each document frame; None where no path can end.

    The definition of `swsdist.kernels.recurrences.bounded_slope`, on pairs written as one wide integer.
    """
    wide = 64
    nowhere = 1 << 200
    query_frames, frames = len(distances), len(distances[0]) if distances else 0
    states = [[nowhere] * frames for _ in range(query_frames)]

    def state(i: int, t: int) -> int:
        if i == -1:
            return 0
        return states[i][t] if i >= 0 and t >= 0 else nowhere

    for t in range(frames):
        for i in range(query_frames):
            states[i][t] = cell(
                state(i - 1, t - 1),
                state(i - 1, t - 2),
                state(i - 2, t - 1),
                distances[i][t] << wide,
                distances[max(i - 1, 0)][t] << wide,
            )
    return [None if s >= nowhere else (s >> wide, s & ((1 << wide) - 1)) for s in states[-1]]


def best_path(distances: list[list[int]]) -> list[tuple[int, int] | None]:
    """The same by trying every path, straight from the steps: exponential, for tiny tables."""
    query_frames, frames = len(distances), len(distances[0]) if distances else 0

    def reach(i: int, t: int) -> tuple[int, int] | None:
        """Best (cost, document frames) of a path ending in (i, t); i = -1 is where every path begins."""
        if i == -1:
            return (0, 0)
        if i < -1 or t < 0:
            return None
        options = []
        for query_step, document_step in ((1, 1), (1, 2), (2, 1)):
            before = reach(i - query_step, t - document_step)
            if before is not None:
                charge = sum(distances[k][t] for k in range(i - query_step + 1, i + 1))
                options.append((before[0] + charge, before[1] + document_step))
        return min(options) if options else None

    return [reach(query_frames - 1, t) for t in range(frames)]


def keep_best(found: list[tuple[int, int, int]], most: int) -> list[tuple[int, int, int]]:
    """The `most` candidates of least cost, earlier ends first among equals; in order of end frame."""
    return sorted(sorted(found, key=lambda c: (c[2], c[0]))[:most])
