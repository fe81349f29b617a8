"""Statistics of repeated measurements: means and ratios with intervals, scaling, and tests.

Seconds, GB and factors are positive and compared by ratios: means are geometric, and intervals are those of Student's t on
logarithms. Ratios of two groups use Welch's t, which allows unequal variances; multiple tests are corrected by Holm's
method. A single measurement has no interval.

Sources: Welch, "The generalization of Student's problem when several different population variances are involved", 1947;
Holm, "A simple sequentially rejective multiple test procedure", 1979.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

#: Confidence level of all intervals.
LEVEL = 0.95


class Estimate(NamedTuple):
    """A value with its 95 % confidence interval from `n` measurements; None: measured once."""

    value: float
    low: float | None
    high: float | None
    n: int


class Ratio(NamedTuple):
    """The ratio of two groups of measurements, with `p` of Welch's test of equality; None: too few."""

    value: float
    low: float | None
    high: float | None
    p: float | None


def mean(values: Sequence[float]) -> Estimate | None:
    """Geometric mean with its interval; None without values, or if any is not above 0."""
    if not values or min(values) <= 0:
        return None
    logs = np.log(np.asarray(values, np.float64))
    middle = float(logs.mean())
    if len(logs) < 2:
        return Estimate(math.exp(middle), None, None, 1)
    from scipy.stats import t

    half = float(t.ppf((1 + LEVEL) / 2, len(logs) - 1)) * float(logs.std(ddof=1)) / math.sqrt(len(logs))
    return Estimate(math.exp(middle), math.exp(middle - half), math.exp(middle + half), len(logs))


def ratio(first: Sequence[float], second: Sequence[float]) -> Ratio | None:
    """Geometric mean of the first over that of the second; None if undefined."""
    if not first or not second or min(*first, *second) <= 0:
        return None
    a, b = np.log(np.asarray(first, np.float64)), np.log(np.asarray(second, np.float64))
    middle = float(a.mean() - b.mean())
    if min(len(a), len(b)) < 2:
        return Ratio(math.exp(middle), None, None, None)
    from scipy.stats import t

    parts = float(a.var(ddof=1)) / len(a), float(b.var(ddof=1)) / len(b)
    error = math.sqrt(sum(parts))
    if error == 0:
        return Ratio(math.exp(middle), math.exp(middle), math.exp(middle), 1.0 if middle == 0 else 0.0)
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (len(a) - 1) + parts[1] ** 2 / (len(b) - 1))
    half = float(t.ppf((1 + LEVEL) / 2, freedom)) * error
    p = 2 * float(t.sf(abs(middle) / error, freedom))
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half), p)


class Scaling(NamedTuple):
    """The scaling of a point against its base.

    Attributes:
        workers, times: of the point.
        speedup: for strong scaling, wall time of the fewest workers over that of these, with the same data; for weak
            scaling, work per second against the base.
        per_worker: speedup over the ratio of workers.
    """

    workers: int
    times: int
    speedup: Ratio
    per_worker: Ratio


#: Measurements of a figure by workers and times.
Walls = Mapping[tuple[int, int], Sequence[float]]


def strong_scaling(walls: Walls) -> list[Scaling]:
    """The same data on more workers, for each size of data."""
    results = []
    for workers, times in sorted(walls, key=lambda key: (key[1], key[0])):
        least = min(w for w, x in walls if x == times)
        speedup = ratio(walls[least, times], walls[workers, times])
        if speedup is not None and workers > least:
            results.append(_scaling(workers, times, speedup, workers / least))
    return results


def weak_scaling(walls: Walls) -> list[Scaling]:
    """As many times more data as workers, against the fewest workers and the least data."""
    base = min(walls, default=None)
    results = []
    for workers, times in sorted(walls):
        if base is None or workers <= base[0] or times * base[0] != base[1] * workers:
            continue
        speedup = ratio(walls[base], walls[workers, times])
        if speedup is not None:
            more = workers / base[0]
            results.append(Scaling(workers, times, _times(speedup, more), speedup))
    return results


def _scaling(workers: int, times: int, speedup: Ratio, more: float) -> Scaling:
    return Scaling(workers, times, speedup, _times(speedup, 1 / more))


def _times(speedup: Ratio, factor: float) -> Ratio:
    low, high = (None if value is None else value * factor for value in (speedup.low, speedup.high))
    return Ratio(speedup.value * factor, low, high, speedup.p)
