"""Corrected p values for comparisons of many systems with one.

The step-down maxT procedure of Westfall and Young: under the hypothesis that a system does not differ from the one that all
are compared with, the sign of each query's difference is as likely to be plus as minus. Signs are changed at random, for all
systems alike, so the dependence between systems stays as it is; a corrected p value is how often the greatest statistic among
the systems that differ no more is at least as great as the one observed. Points of a sweep are much alike, so this finds more
than Holm's correction, which takes nothing of that into account. The statistic is the sum of the differences over the root of
the sum of their squares, a function of the paired t statistic that rises with it.

Sources: Westfall and Young, "Resampling-based multiple testing", 1993, chapter 4; Ge, Dudoit and Speed, "Resampling-based
multiple testing for microarray data analysis", 2003, section 3.2; Fisher's randomisation of signs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import score as codes
from swsdist.score.compare.significance import differences

Floats = NDArray[np.float64]

#: Statistics (8 bytes each) in memory at once.
_CELLS = 1 << 22


def max_t(values: Floats, against: Floats, *, permutations: int = 2000, seed: int = 0) -> Floats:
    """Corrected p values of the differences of several systems to one, two-sided.

    Args:
        values: float64 (P, Q), of P systems for Q queries.
        against: float64 (Q,), of the one.
        permutations: number of random sign changes.
        seed: of the generator, numpy's PCG64.

    Returns:
        float64 (P,), at least 1 / (permutations + 1); 1 for equal systems.

    Raises:
        UserError: there is no query, or no permutation is asked for.
    """
    if not values.shape[1] or permutations < 1:
        raise codes.UNTESTABLE_VALUES(queries=values.shape[1], permutations=permutations)
    if not len(values):
        return np.zeros(0)
    contrasts = np.stack([differences(row, against) for row in values])
    size = np.sqrt((contrasts**2).sum(axis=1))
    scaled = contrasts / np.where(size > 0, size, 1.0)[:, None]
    observed = np.abs(scaled.sum(axis=1))
    order = np.argsort(-observed, kind="stable")
    limits = observed[order] - 1e-9  # sums of other signs may differ by rounding only
    scaled = scaled[order]
    generator = np.random.Generator(np.random.PCG64(seed))
    reached = np.zeros(len(values), dtype=np.int64)
    step = max(1, _CELLS // len(values))
    for first in range(0, permutations, step):
        some = min(step, permutations - first)
        signs = 1.0 - 2.0 * generator.integers(0, 2, (some, values.shape[1])).astype(np.float64)
        greatest = np.maximum.accumulate(np.abs(scaled @ signs.T)[::-1], axis=0)[::-1]
        reached += (greatest >= limits[:, None]).sum(axis=1)
    p = np.maximum.accumulate((reached + 1) / (permutations + 1))
    corrected = np.empty(len(values))
    corrected[order] = np.where(size[order] > 0, p, 1.0)
    return corrected
