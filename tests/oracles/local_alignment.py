"""What a local alignment is, by trying every path: exponential, for tiny tables."""

from collections.abc import Iterator
from typing import NamedTuple


class Path(NamedTuple):
    """A path of cells, from its first gaining cell to its last, and what it gains."""

    cells: tuple[tuple[int, int], ...]
    score: int


def paths(distances: list[list[int]], diagonal: int, band: int, level: int, gap: int) -> Iterator[Path]:
    """All paths in the band whose score is above 0 after each cell, from each cell that gains."""
    rows, columns = len(distances), len(distances[0]) if distances else 0

    def inside(i: int, j: int) -> bool:
        return i < rows and j < columns and abs(j - i - diagonal) <= band

    def longer(path: Path) -> Iterator[Path]:
        yield path
        i, j = path.cells[-1]
        for step, gain in (((i + 1, j + 1), None), ((i + 1, j), -gap), ((i, j + 1), -gap)):
            if inside(*step):
                score = path.score + (level - distances[step[0]][step[1]] if gain is None else gain)
                if score > 0:
                    yield from longer(Path((*path.cells, step), score))

    for i in range(rows):
        for j in range(columns):
            if inside(i, j) and level > distances[i][j]:
                yield from longer(Path(((i, j),), level - distances[i][j]))


def best(distances: list[list[int]], diagonal: int, band: int, level: int, gap: int) -> tuple[int, int, int, int, int]:
    """Score, first and last + 1 of the first stretch, and of the second; all 0 if no cell gains.

    Of equal scores the end that comes first, row by row. Of paths to one end, from the end back: a step in both stretches is
    preferred to one in the first, that to one in the second.
    """

    def rank(path: Path) -> tuple[object, ...]:
        back = [
            {(1, 1): 1, (1, 0): 2, (0, 1): 3}[after[0] - before[0], after[1] - before[1]]
            for before, after in zip(path.cells, path.cells[1:], strict=False)
        ]
        return -path.score, path.cells[-1], back[::-1]

    ranked = sorted(paths(distances, diagonal, band, level, gap), key=rank)
    if not ranked:
        return 0, 0, 0, 0, 0
    (first_i, first_j), (last_i, last_j) = ranked[0].cells[0], ranked[0].cells[-1]
    return ranked[0].score, first_i, last_i + 1, first_j, last_j + 1
