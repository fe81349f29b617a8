"""The assignment problem: one-to-one pairs with the greatest sum of gains.

Nearly all components of an alignment are tiny, and importing scipy takes longer than aligning a whole list, so small ones
are solved here; large ones by `scipy.optimize.linear_sum_assignment`.

Source: Kuhn 1955; in the form of shortest augmenting paths with potentials, Jonker and Volgenant 1987.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

#: Rows times columns up to which it is done here.
SMALL = 400


def best_assignment(gain: NDArray[np.float64]) -> tuple[Ints, Ints]:
    """Rows and columns of the pairs; as many as the shorter side has.

    Args:
        gain: float64 (rows, columns), finite.
    """
    if gain.size > SMALL:
        from scipy.optimize import linear_sum_assignment

        rows, columns = linear_sum_assignment(gain, maximize=True)
        return rows.astype(np.int64), columns.astype(np.int64)
    if gain.shape[0] > gain.shape[1]:
        columns, rows = best_assignment(gain.T)
        return rows, columns
    return _shortest_paths((-gain).tolist())


def _shortest_paths(cost: list[list[float]]) -> tuple[Ints, Ints]:
    """Pairs of least total cost; no more rows than columns. Row and column 0 of the state stand for "none"."""
    rows, columns = len(cost), len(cost[0])
    of_row, of_column = [0.0] * (rows + 1), [0.0] * (columns + 1)  # potentials
    owner = [0] * (columns + 1)  # row of each column
    for row in range(1, rows + 1):
        owner[0] = row
        column = 0
        least = [math.inf] * (columns + 1)
        came_from = [0] * (columns + 1)
        done = [False] * (columns + 1)
        while owner[column]:
            done[column] = True
            here, step, nearest = owner[column], math.inf, 0
            for j in range(1, columns + 1):
                if done[j]:
                    continue
                reduced = cost[here - 1][j - 1] - of_row[here] - of_column[j]
                if reduced < least[j]:
                    least[j], came_from[j] = reduced, column
                if least[j] < step:
                    step, nearest = least[j], j
            for j in range(columns + 1):
                if done[j]:
                    of_row[owner[j]] += step
                    of_column[j] -= step
                else:
                    least[j] -= step
            column = nearest
        while column:
            owner[column] = owner[came_from[column]]
            column = came_from[column]
    pairs = sorted((owner[j] - 1, j - 1) for j in range(1, columns + 1) if owner[j])
    return np.array([r for r, _ in pairs], dtype=np.int64), np.array([c for _, c in pairs], dtype=np.int64)
