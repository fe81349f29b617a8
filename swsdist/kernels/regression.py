"""Logistic regression in few dimensions, the same bytes for the same counted rows on every machine.

    P(hit | x) = sigmoid(b + sum a_j x_j)

The coefficients maximise the log-likelihood of hits and false alarms, less ``sum (a_j sd_j)^2 / (2 * 30^2)``: a normal
prior of standard deviation 30 on the slopes in units of each column's standard deviation, none on the offset. It weighs
less than a hundredth of a trial, and makes the maximum unique and finite where likelihood alone has none: where
scores separate hits from false alarms, and where columns repeat each other. At the maximum the probabilities of the
rows sum to the number of hits.

Newton's method from zero, with the step halved until the gradient gets smaller. Only + - * / and square roots of
float64 are taken, in the order of the rows (numpy's own sums and exponentials may differ between types of CPU in the
last bit), so callers give distinct rows in a fixed order, with counts (`Labelled`).

Sources: Hosmer and Lemeshow, "Applied logistic regression"; the prior, Genkin, Lewis and Madigan 2007, "Large-scale
Bayesian logistic regression for text categorization"; `exp` and `log`, reduction by ln 2 in two parts as in fdlibm.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from swsdist.core.arrays import Floats, Ints
from swsdist.core.codes import families
from swsdist.core.codes import fuse as fuse_codes
from swsdist.core.errors import UserError
from swsdist.kernels.coding import coded

#: Standard deviation of the prior on a slope, per standard deviation of its column.
PRIOR_DEVIATION = 30.0

#: Bits of a float64's fraction; those that coarse rows keep at first; and rows above which they keep fewer.
_ALL, BITS, MOST = 52, 12, 1 << 18

_MOST_STEPS = 200
# Multiples of the first up to 1024 are exact; both sum to ln 2.
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


@dataclass(frozen=True, eq=False)
class Labelled:
    """Detections by their columns, counted as hits and false alarms; instances add, with a zero, in any order.

    Coarse rows keep the first bits of each value's fraction: as many, up to `BITS`, as leave at most `MOST` distinct rows. That
    number depends on the whole sum only, so any division into parts gives the same.

    Attributes:
        columns: float64 (n, d); the rows, with `true`, are distinct and in lexical order.
        true: int64 (n,), true occurrences of the rows' query; 0 if rows of different queries count as equal.
        hits, false_alarms: int64 (n,), paired and unpaired detections with that row.
        systems: names of the systems whose scores the columns are; else empty.
        missed: true occurrences without a detection.
        queries, occurring, occurrences: numbers of queries, of those with a true occurrence, and of true occurrences.
        bits: of the fraction of each value.
    """

    columns: Floats
    true: Ints
    hits: Ints
    false_alarms: Ints
    systems: tuple[str, ...] = ()
    missed: int = 0
    queries: int = 0
    occurring: int = 0
    occurrences: int = 0
    bits: int = _ALL

    @classmethod
    def of(
        cls,
        aligned: pa.Table,
        columns: Floats | None = None,
        *,
        systems: tuple[str, ...] = (),
        by_occurrences: bool = False,
    ) -> Labelled:
        """Count an aligned list.

        Args:
            aligned: TRIALS, all rows of its queries, in any order.
            columns: float64 (rows with a score, d); None: the score.
            systems: see the attribute.
            by_occurrences: keep rows of queries with different numbers of true occurrences apart.
        """
        names, query = coded(aligned["query_id"])
        true, detected = (pc.is_valid(aligned[name]).to_numpy() for name in ("ref_start", "score"))
        occurrences = np.bincount(query[true], minlength=len(names))
        if columns is None:
            columns = aligned["score"].drop_null().to_numpy().astype(np.float64).reshape(-1, 1)
        hit = true[detected].astype(np.int64)
        rows = columns, occurrences[query[detected]] * by_occurrences, hit, 1 - hit, systems
        counts = int((true & ~detected).sum()), len(names), int(np.count_nonzero(occurrences)), int(occurrences.sum())
        return cls(*rows, *counts).coarse(_ALL)

    @classmethod
    def total(cls, parts: Iterable[Labelled]) -> Labelled:
        """The sum of parts, to fit: each value that was cut is the middle of what it may have been."""
        none = np.zeros(0, np.int64)
        whole = reduce(add, parts, cls(np.zeros((0, 0)), none, none, none))
        if whole.bits == _ALL:
            return whole
        middle = (whole.columns.view(np.int64) | 1 << (_ALL - 1 - whole.bits)).view(np.float64)
        return replace(whole, columns=np.where(whole.columns == 0, 0.0, middle))

    def __add__(self, other: Labelled) -> Labelled:
        filled = [part for part in (self, other) if len(part.columns)] or [self]
        if len({part.systems for part in filled}) > 1:
            raise fuse_codes.MIXED_SYSTEMS(first=", ".join(self.systems), second=", ".join(other.systems))
        columns, true, hits, false = (
            np.concatenate([getattr(part, name) for part in filled]) for name in LABELLED_ROWS
        )
        return Labelled(
            *(columns, true, hits, false, filled[0].systems),
            missed=self.missed + other.missed,
            queries=self.queries + other.queries,
            occurring=self.occurring + other.occurring,
            occurrences=self.occurrences + other.occurrences,
        ).coarse(min(self.bits, other.bits))

    def coarse(self, bits: int = BITS) -> Labelled:
        """Equal rows added up, after values are cut to so many bits; 52 cuts nothing."""
        mask = np.int64(-1 << (_ALL - bits))
        whole = np.ascontiguousarray(self.columns).view(np.int64) & mask
        values = whole.view(np.float64) + 0.0  # -0.0 and 0.0 are equal
        order = np.lexsort((self.true, *values.T[::-1]))
        values, true = values[order], self.true[order]
        new = np.ones(len(order), bool)
        new[1:] = (values[1:] != values[:-1]).any(axis=1) | (true[1:] != true[:-1])
        first = np.flatnonzero(new)
        if bits < _ALL and len(first) > MOST and bits:
            return self.coarse(bits - 1)
        hits, false = (
            np.add.reduceat(counts[order], first) if len(first) else counts for counts in (self.hits, self.false_alarms)
        )
        return replace(self, columns=values[first], true=true[first], hits=hits, false_alarms=false, bits=bits)


#: Attributes of `Labelled` that have a value for each row.
LABELLED_ROWS = ("columns", "true", "hits", "false_alarms")


class Fitted(NamedTuple):
    """Slopes a, one a column, and the offset b."""

    slopes: tuple[float, ...]
    offset: float


def exponential(values: ArrayLike) -> Floats:
    """e^x to about one unit in the last place, by operations that every CPU rounds alike.

    Args:
        values: float64, any shape; limited to [-700, 700].
    """
    x = np.clip(np.asarray(values, dtype=np.float64), -700.0, 700.0)
    power = np.rint(x * 1.4426950408889634)
    rest = (x - power * _LN2_HIGH) - power * _LN2_LOW
    series = np.ones_like(rest)
    for k in range(14, 0, -1):  # |rest| <= 0.35, so the next term is below 1e-18
        series = 1.0 + series * rest / k
    result: Floats = np.ldexp(series, power.astype(np.int32))
    return result


def logarithm(values: ArrayLike) -> Floats:
    """ln x to about one unit in the last place, by operations that every CPU rounds alike.

    Args:
        values: float64, any shape; positive and finite.
    """
    part, power = np.frexp(np.asarray(values, dtype=np.float64))
    small = part < 0.7071067811865476
    part, power = np.where(small, 2.0 * part, part), power - small
    f = (part - 1.0) / (part + 1.0)
    square = f * f  # at most 0.0295, so that the series ends below 1e-18
    series = np.zeros_like(f)
    for k in range(23, 0, -2):
        series = series * square + 1.0 / k
    result: Floats = power * _LN2_HIGH + (2.0 * f * series + power * _LN2_LOW)
    return result


def log_odds(prior: float) -> float:
    """ln of the odds of a probability, which is above 0 and below 1; every CPU rounds it alike."""
    return float(logarithm(prior) - logarithm(1 - prior))


def sigmoid(values: ArrayLike) -> Floats:
    """1 / (1 + e^-x), any shape."""
    result: Floats = 1.0 / (1.0 + exponential(-np.asarray(values, dtype=np.float64)))
    return result


def prior_weights(hits: ArrayLike, false_alarms: ArrayLike, prior: float | None) -> tuple[Floats, Floats]:
    """Weights of rows so that hits weigh `prior` of all, and the whole as much as there are trials.

    Args:
        hits, false_alarms: int or float (n,), trials of each kind in each row.
        prior: effective prior in (0, 1); None leaves every trial the weight 1.

    Raises:
        UserError: there are no hits, or no false alarms; the prior is not between 0 and 1.
    """
    true, false = np.asarray(hits, dtype=np.float64), np.asarray(false_alarms, dtype=np.float64)
    number_true, number_false = total(true), total(false)
    if number_true <= 0 or number_false <= 0:
        missing = "hit" if number_true <= 0 else "false alarm"
        raise families.NOTHING_TO_FIT(
            "a logistic regression needs hits and false alarms; the labelled detections contain no {missing}",
            "fit to more queries (fewer folds), or give a fitted FILE",
            missing=missing,
        )
    if prior is None:
        return true, false
    if not 0 < prior < 1:
        raise families.INVALID_VALUE.of(UserError)(
            "the effective prior {prior} is not between 0 and 1", "give a number between 0 and 1", prior=prior
        )
    trials = number_true + number_false
    return true * (prior * trials / number_true), false * ((1 - prior) * trials / number_false)


def maximise(columns: Floats, hits: Floats, false_alarms: Floats) -> Fitted:
    """The coefficients of greatest penalised likelihood.

    Args:
        columns: float64 (n, d), distinct rows in a fixed order. A column without variation gets the slope 0.
        hits, false_alarms: float64 (n,), weights of each kind in each row; both sums positive.
    """
    weight = hits + false_alarms
    trials = total(weight)
    mean = np.array([total(weight * column) for column in columns.T]) / trials
    centred = columns - mean
    deviation = np.sqrt(np.array([total(weight * column * column) for column in centred.T]) / trials)
    # A column that is constant but for the rounding of its mean does not vary.
    flat = deviation <= 1e-13 * np.abs(mean)
    scaled = np.where(flat, 0.0, centred / np.where(flat, 1.0, deviation))
    design = [*np.ascontiguousarray(scaled.T), np.ones(len(columns))]
    ridge = np.append(np.full(columns.shape[1], PRIOR_DEVIATION**-2), 0.0)

    def gradient(at: Floats) -> tuple[Floats, Floats]:
        probability = sigmoid(_dot(design, at))
        excess = weight * probability - hits
        return np.array([total(excess * column) for column in design]) + ridge * at, probability

    at = np.zeros(len(design))
    slope, probability = gradient(at)
    for _ in range(_MOST_STEPS):
        curvature = weight * probability * (1.0 - probability)
        step = _solve(_gram(design, curvature) + np.diag(ridge), slope)
        part = 1.0
        while part > 1e-6:
            candidate, candidate_probability = gradient(at - part * step)
            if _square(candidate) < _square(slope):
                break
            part /= 2
        else:
            break  # as close as doubles come
        at, slope, probability = at - part * step, candidate, candidate_probability
        if part == 1.0 and np.abs(step).max() < 1e-10:
            break
    slopes = np.where(flat, 0.0, at[:-1] / np.where(flat, 1.0, deviation))
    offset = float(at[-1])
    for slope_j, mean_j in zip(slopes.tolist(), mean.tolist(), strict=True):
        offset -= slope_j * mean_j
    return Fitted(tuple(slopes.tolist()), offset)


def linear(columns: Floats, fitted: Fitted) -> Floats:
    """b + sum a_j x_j of each row (n, d), summed in the order of the columns."""
    result = np.full(len(columns), fitted.offset)
    for slope, column in zip(fitted.slopes, columns.T, strict=True):
        result = result + slope * column
    return result


def total(values: Floats) -> float:
    """The sum in the order of the values; numpy's `sum` orders them by the machine."""
    return float(np.add.accumulate(values)[-1]) if len(values) else 0.0


def _dot(design: list[Floats], coefficients: Floats) -> Floats:
    result = np.zeros(len(design[0]))
    for column, coefficient in zip(design, coefficients.tolist(), strict=True):
        result = result + coefficient * column
    return result


def _gram(design: list[Floats], weight: Floats) -> Floats:
    result = np.empty((len(design), len(design)))
    for j, left in enumerate(design):
        weighted = weight * left
        for k in range(j + 1):
            result[j, k] = result[k, j] = total(weighted * design[k])
    return result


def _square(values: Floats) -> float:
    return total(values * values)


def _solve(matrix: Floats, right: Floats) -> Floats:
    """A symmetric positive definite system of a few unknowns, by elimination: LAPACK's last bits follow the machine."""
    rows = [[*row, value] for row, value in zip(matrix.tolist(), right.tolist(), strict=True)]
    for pivot, row in enumerate(rows):
        for below in rows[pivot + 1 :]:
            factor = below[pivot] / row[pivot]
            for k in range(pivot, len(row)):
                below[k] -= factor * row[k]
    solution = [0.0] * len(rows)
    for pivot in reversed(range(len(rows))):
        solved = sum(rows[pivot][k] * solution[k] for k in range(pivot + 1, len(rows)))
        solution[pivot] = (rows[pivot][-1] - solved) / rows[pivot][pivot]
    return np.array(solution)
