"""What the recurrences mean besides bounded slope, written slowly and plainly: the kernels are held against these.

Each takes a table of local distances, query frames x document frames, and gives for every document frame the (cost, document
frames) of the path that ends there. A path is a list of cells (query frame, document frame).
"""

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

Table = list[list[int]]
Curve = list[tuple[int, int]]
Path = list[tuple[int, int]]
Steps = tuple[tuple[int, int], ...]

#: What a path may do, in query and document frames.
QUERY_BY_QUERY: Steps = ((1, 1), (1, 2), (1, 0))
ALL_BY_ONE: Steps = ((1, 1), (0, 1), (1, 0))


def candidate_cost(total: int, length: int, query_frames: int) -> int:
    """An average, for so many query frames, to the nearest integer; halves go up."""
    return int((Fraction(total * query_frames, length) + Fraction(1, 2)).__floor__())


def asymmetric(distances: Table) -> Curve:
    """Each query frame is charged once, the document advances 0, 1 or 2; of equal costs the shorter path."""
    best = [[(d, 1) for d in distances[0]]]
    for i in range(1, len(distances)):
        best.append([])
        for t, d in enumerate(distances[i]):
            ways = [(best[i - 1][t - k][0], best[i - 1][t - k][1] + k) for k in (0, 1, 2) if t - k >= 0]
            cost, frames = min(ways)
            best[i].append((cost + d, frames))
    return best[-1]


def non_segmental(distances: Table) -> Curve:
    """Averages are compared as fractions; a step of one document frame counts double, and wins of equals, then one of 2."""
    states = [[(d, 2, 1) for d in distances[0]]]  # sum, length, document frames
    for i in range(1, len(distances)):
        states.append([])
        for t, d in enumerate(distances[i]):
            ways = []
            for advanced, counts in ((1, 2), (2, 1), (0, 1)):
                if t - advanced >= 0:
                    total, length, frames = states[i - 1][t - advanced]
                    ways.append((total + d, length + counts, frames + advanced))
            states[i].append(min(ways, key=lambda way: Fraction(way[0], way[1])))
    return [(candidate_cost(total, length, len(distances)), frames) for total, length, frames in states[-1]]


def averages(distances: Table) -> Curve:
    """Averages are compared as products in float32; of equals (i-1, t-1) wins, then (i, t-1), then (i-1, t)."""
    states: list[list[tuple[int, int, int]]] = []  # sum, length, first document frame
    for i, row in enumerate(distances):
        states.append([])
        for t, d in enumerate(row):
            if i == 0:
                states[0].append((d, 1, t))
                continue
            ways = [(i - 1, t - 1), (i, t - 1), (i - 1, t)]
            total, length, start = 0, 0, -1
            for before in (states[u][v] for u, v in ways if v >= 0):
                other = before[0] + d, before[1] + 1, before[2]
                if length == 0 or _product(other[0], length) < _product(total, other[1]):
                    total, length, start = other
            states[i].append((total, length, start))
    n = len(distances)
    return [(candidate_cost(total, length, n), t - start + 1) for t, (total, length, start) in enumerate(states[-1])]


def _product(left: int, right: int) -> np.float32:
    return np.float32(np.float32(left) * np.float32(right))


def segmental(distances: Table, band: int) -> list[tuple[int, int] | None]:
    """Least sum, then length, of paths that begin at a multiple of `band` and stay that near to their diagonal; of several
    starts the least cost, then frames."""
    n, frames = len(distances), len(distances[0])
    curve: list[tuple[int, int] | None] = [None] * frames
    for start in range(0, frames, band):
        best: dict[tuple[int, int], tuple[int, int]] = {}  # sum, length
        for t in range(start, min(frames, start + n + band)):
            for i in range(max(0, t - start - band), min(n, t - start + band + 1)):
                ways = [best[cell] for cell in ((i - 1, t - 1), (i, t - 1), (i - 1, t)) if cell in best]
                total, length = min(ways) if ways else (0, 0)
                best[i, t] = (total + distances[i][t], length + 1)
            if (n - 1, t) in best:
                ended = (candidate_cost(*best[n - 1, t], n), t - start + 1)
                held = curve[t]
                curve[t] = ended if held is None else min(held, ended)
    return curve


def paths(query_frames: int, end: int, steps: Steps, begins: Callable[[int], bool] = lambda t: True) -> Iterator[Path]:
    """Every path that ends in (query_frames - 1, end) and begins in (0, t) where `begins(t)`: exponential, for tiny tables."""

    def back(cell: tuple[int, int]) -> Iterator[Path]:
        i, t = cell
        if i == 0 and begins(t):
            yield [cell]
        for query_step, document_step in steps:
            before = (i - query_step, t - document_step)
            if min(before) >= 0:
                yield from ([*path, cell] for path in back(before))

    yield from back((query_frames - 1, end))


def charge(distances: Table, path: Path) -> int:
    """Sum of the distances of a path's cells."""
    return sum(distances[i][t] for i, t in path)


def best_asymmetric(distances: Table) -> Curve:
    """The same as `asymmetric` by trying every path."""
    n = len(distances)
    return [
        min((charge(distances, path), path[-1][1] - path[0][1] + 1) for path in paths(n, end, QUERY_BY_QUERY))
        for end in range(len(distances[0]))
    ]


def best_segmental(distances: Table, band: int) -> list[tuple[int, int] | None]:
    """The same as `segmental` by trying every path."""
    n = len(distances)
    curve: list[tuple[int, int] | None] = []
    for end in range(len(distances[0])):
        least: dict[int, tuple[int, int]] = {}  # of each start, sum and length
        for path in paths(n, end, ALL_BY_ONE, lambda t: t % band == 0):
            start = path[0][1]
            if all(abs(i - (t - start)) <= band for i, t in path):
                tried = charge(distances, path), len(path)
                least[start] = min(least.get(start, tried), tried)
        ended = [(candidate_cost(*pair, n), end - start + 1) for start, pair in least.items()]
        curve.append(min(ended) if ended else None)
    return curve


def row_range(distances: list[list[int]]) -> list[list[int]]:
    """Distances of each query frame to a document's frames, 0..4095 from their least to their greatest."""
    return [_spread(row) for row in distances]


def _spread(row: list[int]) -> list[int]:
    low, width = min(row), max(max(row) - min(row), 1)
    scale = (4095 * 2**19 + width // 2) // width
    return [((d - low) * scale + 2**18) // 2**19 for d in row]
