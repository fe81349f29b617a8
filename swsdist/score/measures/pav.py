"""Pool adjacent violators: the best-fitting rising rates of ordered rows of targets and non-targets.

The fit is best for every proper scoring rule, for squared error and for cross entropy at any prior, so the rates are also
the optimum over all rising maps of scores.

Source: Ayer, Brunk, Ewing, Reid and Silverman, "An empirical distribution function for sampling with incomplete information",
1955; Bruemmer and du Preez, "Application-independent evaluation of speaker detection", 2006, for scoring rules.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Blocks(NamedTuple):
    """Neighbouring rows pooled: `first` row, targets and trials of each block; all int64 (B,)."""

    first: Ints
    true: Ints
    total: Ints


def pool_adjacent_violators(true: Ints, total: Ints) -> Blocks:
    """The best-fitting rising rates: rows in the order of their scores, pooled until true / total rises strictly.

    The blocks are the edges of the lower convex hull of the sums (total, true), found in integers, so exactly.

    Args:
        true: int64 (E,), target trials of each row, scores ascending.
        total: int64 (E,), trials of each row, positive.
    """
    # A block can only end where the rate rises from one row to the next.
    rises = np.flatnonzero(true[:-1] * total[1:] < true[1:] * total[:-1]) + 1
    begin = np.concatenate([np.zeros(min(len(true), 1), dtype=np.int64), rises])
    blocks: list[tuple[int, int, int]] = []
    sums = (np.add.reduceat(values, begin) if len(begin) else values for values in (true, total))
    for first, t, n in zip(begin.tolist(), *(values.tolist() for values in sums), strict=True):
        while blocks and blocks[-1][1] * n >= t * blocks[-1][2]:
            first, before_t, before_n = blocks.pop()
            t, n = t + before_t, n + before_n
        blocks.append((first, t, n))
    return Blocks(*np.array(blocks, dtype=np.int64).reshape(-1, 3).T)
