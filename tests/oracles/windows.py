"""What the method windows means, written slowly and plainly; Python integers and lists only.

Tejedor et al. 2016, section "MFCC fingerprint-based QbE STD system", eq. 3; what it leaves open stands in
`swsdist.methods.windows.method`.
"""

#: Begin and end of a window: frames begin <= t < end.
Window = tuple[int, int]

#: First and last frame of a path, and its cost.
Path = tuple[int, int, int]


def windows(query_frames: int, frames: int) -> list[Window]:
    """Windows of the query's size with 50 % overlap; one more at the end where frames are left over."""
    if frames <= query_frames:
        return [(0, frames)]
    hop = max(1, query_frames // 2)
    begins = list(range(0, frames - query_frames + 1, hop))
    if begins[-1] != frames - query_frames:
        begins.append(frames - query_frames)
    return [(begin, begin + query_frames) for begin in begins]


def estimate(distances: list[list[int]], window: Window) -> int:
    """Eq. 3: the sum of the least distances of a window's columns."""
    return sum(min(row[t] for row in distances) for t in range(*window))


def coarse(distances: list[list[int]], most: int) -> list[Window]:
    """The windows of least estimate, earlier ones first among equals."""
    found = windows(len(distances), len(distances[0]))
    return sorted(found, key=lambda window: (estimate(distances, window), window))[:most]


def path(distances: list[list[int]], window: Window, *, free: bool) -> Path:
    """The best path in a window, by steps (1,1), (1,0) and (0,1).

    It costs the sum of the distances that it meets. Of equal ones the one that takes fewer document frames, then the one that
    ends first.
    """
    begin, end = window
    best: dict[tuple[int, int], tuple[int, int]] = {}  # cost and document frames of the best path to a place
    for i, row in enumerate(distances):
        for t in range(begin, end):
            ways = [(0, 1)] if i == 0 and (free or t == begin) else []
            for before, taken in (((i - 1, t - 1), 1), ((i - 1, t), 0), ((i, t - 1), 1)):
                if before in best:
                    ways.append((best[before][0], best[before][1] + taken))
            cost, frames = min(ways)
            best[i, t] = cost + row[t], frames
    ends = range(begin, end) if free else [end - 1]
    cost, frames, last = min((*best[len(distances) - 1, t], t) for t in ends)
    return last - frames + 1, last, cost


def candidates(distances: list[list[int]], most_windows: int, most: int, apart: int, *, free: bool) -> list[Path]:
    """The best paths that end `apart` frames or more from every better one that is kept, by their last frame.

    The fine search looks at `most_windows` and keeps `most`; `free` paths begin and end anywhere in their window.
    """
    paths = [path(distances, window, free=free) for window in coarse(distances, most_windows)]
    kept: list[Path] = []
    for one in sorted(paths, key=lambda path: (path[2], path[1], -path[0])):
        if all(abs(one[1] - other[1]) >= apart for other in kept):
            kept.append(one)
    return sorted(sorted(kept, key=lambda path: (path[2], path[1]))[:most], key=lambda path: path[1])
