"""Tests of paired values, corrections for multiple tests, and effect sizes.

Tests are two-sided: the paired t test, of the mean of normally distributed differences, and the Wilcoxon signed-rank
test, of their ranks. Per-term values are far from normal (Wang and Metze 2014, section 3.2), and skewed: the ranks may favour
the system with the lesser mean. Differences of means are tested by `swsdist.score.compare.paired`.

Differences below 1e-12 are rounding, and are 0; so are those between two differences when they are ranked.

Sources: Wang and Metze, "An in-depth comparison of keyword specific thresholding and sum-to-one score normalization",
2014, section 3.2; Wilcoxon 1945; Pratt 1959; Holm, "A simple sequentially rejective multiple test procedure", 1979;
Benjamini and Hochberg, "Controlling the false discovery rate", 1995; Kerby, "The simple difference formula", 2014.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swsdist.core.codes import score as codes
from swsdist.score.measures.curve import TIE

Floats = NDArray[np.float64]
Zeros = Literal["wilcox", "pratt", "zsplit"]

#: Maximum number of differences (without ties or zeros) for which Wilcoxon's distribution is computed exactly.
MOST_EXACT = 50


@dataclass(frozen=True)
class TTest:
    """Paired t test. `p` is None if the differences do not vary, or there are fewer than two."""

    n: int
    statistic: float | None
    p: float | None


@dataclass(frozen=True)
class Wilcoxon:
    """Signed-rank test.

    Attributes:
        n: pairs.
        zeros: pairs without difference.
        zero_method: treatment of zeros: `wilcox` drops them, `pratt` ranks and then drops them, `zsplit` halves them.
        exact: whether the distribution was computed; else it is the normal approximation, no continuity correction.
        statistic: the lesser of the two sums of ranks.
        p: 1 where there is no difference at all.
    """

    n: int
    zeros: int
    zero_method: Zeros
    exact: bool
    statistic: float
    p: float


def differences(first: ArrayLike, second: ArrayLike) -> Floats:
    """first - second, rounded to 1e-12, so that rounding errors become 0 or ties.

    Raises:
        UserError: they are not of one length, or one is not finite.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise codes.UNPAIRED_VALUES(first=a.shape, second=b.shape)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise codes.NOT_FINITE_PAIR()
    rounded: Floats = np.rint((a - b) / TIE) * TIE + 0.0
    return rounded


def paired_t(first: ArrayLike, second: ArrayLike) -> TTest:
    """Paired t test of two rows of values (scipy.stats.ttest_rel); p is 1 where no pair differs.

    Args:
        first, second: float64 (n,): values of queries, or ATWVs of systems under two conditions.
    """
    from scipy.stats import ttest_1samp

    pairs = differences(first, second)
    if not pairs.any():
        return TTest(len(pairs), 0.0, 1.0) if len(pairs) else TTest(0, None, None)
    if np.ptp(pairs) <= TIE:
        return TTest(len(pairs), None, None)
    result = ttest_1samp(pairs, 0.0)
    return TTest(len(pairs), float(result.statistic), float(result.pvalue))


def wilcoxon(first: ArrayLike, second: ArrayLike, zero_method: Zeros = "wilcox") -> Wilcoxon:
    """Wilcoxon's signed-rank test of two rows of values (scipy.stats.wilcoxon).

    Exact up to 50 pairs that differ and have no ties, unless zeros are ranked too; else the normal approximation.

    Args:
        first, second: float64 (n,).
        zero_method: see `Wilcoxon`.
    """
    from scipy.stats import wilcoxon as signed_rank

    pairs = differences(first, second)
    zeros = int((pairs == 0).sum())
    if zeros == len(pairs):
        return Wilcoxon(len(pairs), zeros, zero_method, True, 0.0, 1.0)
    sizes = np.abs(pairs[pairs != 0])
    ties = len(np.unique(np.rint(sizes / TIE))) < len(sizes)
    exact = len(sizes) <= MOST_EXACT and not ties and (zero_method == "wilcox" or not zeros)
    ranked = pairs[pairs != 0] if zero_method == "wilcox" else pairs
    result = signed_rank(ranked, zero_method=zero_method, method="exact" if exact else "asymptotic")
    return Wilcoxon(len(pairs), zeros, zero_method, exact, float(result.statistic), float(result.pvalue))


def holm(p: Sequence[float | None]) -> list[float | None]:
    """p values corrected so that a single false alarm among all has at most that chance (Holm 1979); None stays None."""
    defined = sorted((value, index) for index, value in enumerate(p) if value is not None)
    corrected: list[float | None] = [None] * len(p)
    worst = 0.0
    for rank, (value, index) in enumerate(defined):
        worst = max(worst, min(1.0, value * (len(defined) - rank)))
        corrected[index] = worst
    return corrected


def benjamini_hochberg(p: Sequence[float | None]) -> list[float | None]:
    """p values corrected for the expected share of false alarms among what is called different; None stays None."""
    from scipy.stats import false_discovery_control

    defined = [index for index, value in enumerate(p) if value is not None]
    corrected: list[float | None] = [None] * len(p)
    if defined:
        for index, value in zip(defined, false_discovery_control([p[index] for index in defined]), strict=True):
            corrected[index] = float(value)
    return corrected


def cohen_d(first: ArrayLike, second: ArrayLike) -> float | None:
    """Cohen's d of paired values: mean of the differences / their standard deviation; None where they do not vary."""
    pairs = differences(first, second)
    if len(pairs) < 2 or np.ptp(pairs) <= TIE:
        return None
    return math.fsum(pairs) / len(pairs) / float(np.std(pairs, ddof=1))


def rank_biserial(first: ArrayLike, second: ArrayLike, zero_method: Zeros = "wilcox") -> float | None:
    """Matched-pairs rank-biserial correlation (Kerby 2014): (R+ - R-) / (R+ + R-), from -1 to 1; None if none differ.

    R+ and R- are the sums of the ranks of the positive and negative differences, ranked as by `wilcoxon`.
    """
    from scipy.stats import rankdata

    pairs = differences(first, second)
    if not pairs.any():
        return None
    pairs = pairs[pairs != 0] if zero_method == "wilcox" else pairs
    ranks = rankdata(np.rint(np.abs(pairs) / TIE))
    above, below = ranks[pairs > 0].sum(), ranks[pairs < 0].sum()
    return float((above - below) / (above + below))
