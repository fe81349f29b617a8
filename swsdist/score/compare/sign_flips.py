"""Tests of mean differences by changes of sign (paired permutation tests), for one difference or for many with one system.

Under the hypothesis that two systems do not differ, the sign of each query's difference is as likely to be plus as minus.
p is how often the mean of the differences with other signs is at least as far from 0 as the one observed. It is two-sided, and
its direction is the sign of the mean. Where all choices of signs are at most `DRAWS` they are all tried; else `DRAWS` random
ones are, and the one observed counts as one more.

Many systems against one are corrected by the step-down maxT procedure of Westfall and Young: signs are changed for all
systems alike, so the dependence between systems stays as it is; a corrected p value is how often the greatest statistic among
the systems that differ no more is at least as great as the one observed. Points of a sweep are much alike, so this finds more
than Holm's correction, which takes nothing of that into account. The statistic is the sum of the differences over the root of
the sum of their squares, which no change of sign alters: a function of the paired t statistic that rises with it.

Sources: Fisher, "The design of experiments", 1935, section 21; Westfall and Young, "Resampling-based multiple testing", 1993,
chapter 4; Ge, Dudoit and Speed, "Resampling-based multiple testing for microarray data analysis", 2003, section 3.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swsdist.core.codes import score as codes
from swsdist.score.compare.significance import differences

Floats = NDArray[np.float64]

#: Random changes of sign; Holm's correction over 1000 pairs leaves a p of at least 0.01.
DRAWS = 100_000

#: Statistics (8 bytes each) in memory at once.
_CELLS = 1 << 22
_ROUNDING = 1e-9  # of sums in another order


@dataclass(frozen=True)
class SignFlip:
    """Sign-flip test of a mean difference.

    Attributes:
        n: pairs.
        exact: whether `draws` are all choices of signs of the pairs that differ; else they are random.
        draws: choices of signs tried.
        p: 1 where there is no difference at all.
    """

    n: int
    exact: bool
    draws: int
    p: float


def sign_flips(pairs: Sequence[tuple[ArrayLike, ArrayLike]], *, draws: int = DRAWS, seed: int = 0) -> list[SignFlip]:
    """Test the mean difference of each pair of rows; a result does not depend on the other pairs.

    Args:
        pairs: two float64 (n,) each, all of one length.
        draws: random changes of sign.
        seed: of the generator, numpy's PCG64.
    """
    if not pairs:
        return []
    scaled, observed = _scaled(np.stack([differences(first, second) for first, second in pairs]))
    n = scaled.shape[1]
    few = 2.0 ** np.count_nonzero(scaled, axis=1) <= draws
    results = {int(k): _exact(scaled[k], observed[k]) for k in np.flatnonzero(few)}
    many = np.flatnonzero(~few)
    reached = np.zeros(len(many), dtype=np.int64)
    for sums in _flipped(scaled[many], draws, seed):
        reached += (sums >= observed[many, None] - _ROUNDING).sum(axis=1)
    results |= {
        int(k): SignFlip(n, False, draws, float(count + 1) / (draws + 1))
        for k, count in zip(many, reached, strict=True)
    }
    return [results[k] for k in range(len(pairs))]


def _exact(scaled: Floats, observed: float) -> SignFlip:
    sums = np.zeros(1)
    for value in scaled[scaled != 0]:
        sums = np.concatenate([sums + value, sums - value])
    return SignFlip(len(scaled), True, len(sums), float((np.abs(sums) >= observed - _ROUNDING).mean()))


def _scaled(contrasts: Floats) -> tuple[Floats, Floats]:
    """Differences over the roots of the sums of their squares (rows without any stay 0), and the sizes of their sums."""
    size = np.sqrt((contrasts**2).sum(axis=1, keepdims=True))
    scaled = contrasts / np.where(size > 0, size, 1.0)
    return scaled, np.abs(scaled.sum(axis=1))


def _flipped(scaled: Floats, draws: int, seed: int) -> Iterator[Floats]:
    """Sizes of the sums of the rows (P, n) with random signs, the same for all rows, in pieces: float64 (P, some)."""
    if not len(scaled):
        return
    generator = np.random.Generator(np.random.PCG64(seed))
    step = max(1, _CELLS // len(scaled))
    for first in range(0, draws, step):
        some = min(step, draws - first)
        signs = 1.0 - 2.0 * generator.integers(0, 2, (some, scaled.shape[1])).astype(np.float64)
        yield np.abs(scaled @ signs.T)


def max_t(values: Floats, against: Floats, *, permutations: int = DRAWS, seed: int = 0) -> Floats:
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
    scaled, observed = _scaled(np.stack([differences(row, against) for row in values]))
    order = np.argsort(-observed, kind="stable")
    reached = np.zeros(len(values), dtype=np.int64)
    for sums in _flipped(scaled[order], permutations, seed):
        greatest = np.maximum.accumulate(sums[::-1], axis=0)[::-1]
        reached += (greatest >= observed[order, None] - _ROUNDING).sum(axis=1)
    p = np.maximum.accumulate((reached + 1) / (permutations + 1))
    corrected = np.empty(len(values))
    corrected[order] = np.where(scaled[order].any(axis=1), p, 1.0)
    return corrected
