"""KST and STO: a threshold for each term, from the sum S(w) of the probabilities of its detections.

TWV weighs a miss of term w by 1 / Ntrue(w) and a false alarm by beta / (T - Ntrue(w)), with T the number of trials. So
accepting a detection that is correct with probability p pays from

    thr = beta n / (T + (beta - 1) n)                                                     n = Ntrue(w)     (eq. 3)

on. Keyword specific thresholding (KST) and sum-to-one normalisation (STO) estimate n:

==========  ==================================  =====================================================================
method      threshold on p                      normalised score, and the one threshold for it
==========  ==================================  =====================================================================
oracle-kst  eq. 3, n = Ntrue(w)                 as kst
kst         eq. 3, n = alpha S(w)      (eq. 4)  p (1 - thr) / (p (1 - thr) + (1 - p) thr), 1/2
sto         thr(alpha) S(w)            (eq. 6)  p / S(w), thr(alpha): eq. 3 with n = alpha             (eq. 5)
==========  ==================================  =====================================================================

The odds of KST's normalised score, score / (1 - score), are the odds of p divided by those of thr. Published
normalisations raise p to the power ln(1/2) / ln(thr) (Kaldi's normalize_results_kst.pl): the decisions are the same. Of
the two only the formula above keeps its meaning at other thresholds: x instead of 1/2 decides as KST with x / (1 - x)
times beta. It needs no logarithm, so it is the same on every machine.

Decisions are by thresholds on p, ``p >= thr``; where the last bit of a normalised score would decide otherwise, the
score is replaced by the nearest one that agrees, so both always decide alike. Edge cases: n is at most T (thr is 1
there); a detection of probability 0 is never accepted; the oracle accepts nothing of a term without occurrences.

S(w) is over all candidates of the search if the scores are the search's, and over the list of detections if a logistic
computed the probabilities: see docs/decisions/0006-posterior-sums-in-a-run.md. It estimates the number of true trials,
so for document trials it is over the best detection of each document. Sums are exact, so any partition of a list in any
order gives the same bytes: each probability is rounded to the nearest multiple of 2^-62 (exact from 0.001 upwards;
below it the rounding is less than 1e-16 of it down to 0.0001, and never more than 1.1e-19), the multiples are added as
integers, and S(w) is the float64 nearest to their sum.

Sources: Wang and Metze 2014, "An in-depth comparison of keyword specific thresholding and sum-to-one score
normalization", eqs. 3 to 6 and section 2.1; Miller et al. 2007 (KST); Mamou et al. 2013 (STO).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, PositiveFloat

from swsdist.calibrate.statistics import posterior_sums
from swsdist.calibrate.steps.interface import Json, Options, Step, Tallies, TwvParameters, of_scores
from swsdist.core.arrays import Floats
from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.types import DETECTIONS, with_values
from swsdist.kernels.coding import coded

#: Units of a probability of 1.
UNIT = 1 << 62


@dataclass(frozen=True)
class PosteriorSums:
    """S(w) of some queries; instances add, with a zero.

    Attributes:
        units: sum of each query's probabilities, in units of 2^-62.
    """

    units: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, table: pa.Table) -> PosteriorSums:
        """Sum the probabilities of DETECTIONS or TRIALS; rows without score (misses) add nothing.

        Raises:
            UserError: a score is not a probability.
        """
        detections = table.filter(pc.is_valid(table["score"]))
        names, query = coded(detections["query_id"])
        return cls(dict(zip(names, sums(query, checked(detections["score"].to_numpy())), strict=True)))

    def __add__(self, other: PosteriorSums) -> PosteriorSums:
        units = dict(self.units)
        for query_id, value in other.units.items():
            units[query_id] = units.get(query_id, 0) + value
        return PosteriorSums(units)

    def values(self, query_ids: Iterable[str]) -> Floats:
        """S(w) of each query, 0 without detections; float64."""
        return np.array([self.units.get(query_id, 0) / UNIT for query_id in query_ids], dtype=np.float64)


def sums(groups: NDArray[np.integer], probability: Floats) -> list[int]:
    """Exact sums by group, in units of 2^-62.

    Args:
        groups: integers (n,) from 0, without gaps.
        probability: float64 (n,), in [0, 1].
    """
    if not len(groups):
        return []
    order = np.argsort(groups, kind="stable")
    first = np.flatnonzero(np.diff(groups[order], prepend=-1))
    units = np.rint(np.ldexp(probability[order], 62)).astype(np.int64)
    # Halves of 31 bits: their sums stay inside 64 bits for up to 2^32 rows.
    high, low = (np.add.reduceat(half, first).tolist() for half in (units >> 31, units & 0x7FFFFFFF))
    return [(a << 31) + b for a, b in zip(high, low, strict=True)]


def checked(scores: ArrayLike) -> Floats:
    """Scores as probabilities.

    Raises:
        UserError: one is not in [0, 1].
    """
    values = np.asarray(scores, dtype=np.float64)
    bad = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if bad.size:
        raise codes.NOT_PROBABILITIES(count=bad.size, of=values.size, score=values.flat[bad[0]])
    return values


Method = Literal["kst", "sto", "oracle-kst"]

METHODS: tuple[Method, ...] = get_args(Method)

#: Best alpha of the source.
ALPHA = 1.5

_LEAST = 5e-324  # only probability 0 is below


def kst_threshold(occurrences: ArrayLike, *, trials: ArrayLike, beta: ArrayLike) -> Floats:
    """Eq. 3: the lowest probability at which accepting a detection pays.

    Args:
        occurrences: n, true occurrences of the term, or an estimate; not negative, counted as `trials` at most.
        trials: T.
        beta: weight of false alarms.

    Returns:
        float64 in [0, 1], of the common shape; it rises with n.
    """
    n = np.minimum(np.asarray(occurrences, dtype=np.float64), trials)
    weighted = np.asarray(beta, dtype=np.float64) * n
    result: Floats = weighted / ((np.asarray(trials, dtype=np.float64) - n) + weighted)
    return result


def thresholds(
    method: Method, sums: ArrayLike, ntrue: ArrayLike, *, alpha: ArrayLike, beta: ArrayLike, trials: ArrayLike
) -> Floats:
    """Thresholds on the probabilities of terms: eq. 3, 4 or 6. All arguments may be arrays of one common shape.

    Args:
        method: which.
        sums: S(w).
        ntrue: Ntrue(w), used by the oracle only.
        alpha: factor on S(w), not used by the oracle.
        beta: weight of false alarms.
        trials: T.

    Returns:
        float64, above 0. STO's may be above 1, the oracle's is infinite where Ntrue is 0.
    """
    if method == "oracle-kst":
        true = np.asarray(ntrue)
        limits = np.where(true > 0, kst_threshold(true, trials=trials, beta=beta), math.inf)
    elif method == "kst":
        limits = kst_threshold(np.multiply(alpha, sums), trials=trials, beta=beta)
    else:
        limits = kst_threshold(alpha, trials=trials, beta=beta) * np.asarray(sums, dtype=np.float64)
    result: Floats = np.maximum(limits, _LEAST)
    return result


@dataclass(frozen=True)
class Thresholding:
    """A method at an operating point.

    Attributes:
        method: which.
        trials: T, positive.
        beta: weight of false alarms, positive.
        alpha: factor on S(w), positive.
    """

    method: Method
    trials: int
    beta: float
    alpha: float = ALPHA

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise families.UNKNOWN_NAME(
                "unknown thresholding method {method!r}",
                "choose one of: {methods}",
                method=self.method,
                methods=", ".join(METHODS),
            )
        for name in ("trials", "beta", "alpha"):
            if not 0 < getattr(self, name) < math.inf:
                raise codes.VALUE_NOT_POSITIVE(name=name, value=getattr(self, name))

    @property
    def threshold(self) -> float:
        """The threshold for normalised scores: 1/2, or eq. 5."""
        return float(kst_threshold(self.alpha, trials=self.trials, beta=self.beta)) if self.method == "sto" else 0.5

    def thresholds(self, sums: ArrayLike, ntrue: ArrayLike = 0) -> Floats:
        """Thresholds on the probabilities of terms, from their S(w) and Ntrue(w)."""
        return thresholds(self.method, sums, ntrue, alpha=self.alpha, beta=self.beta, trials=self.trials)

    def normalised(self, probability: ArrayLike, sums: ArrayLike, ntrue: ArrayLike = 0) -> Floats:
        """Normalised scores; detections with at least `threshold` are accepted.

        Args:
            probability: float64 in [0, 1], of detections.
            sums: S(w) of each detection's term.
            ntrue: Ntrue(w) of each detection's term, for the oracle.

        Returns:
            float64 of the common shape, not negative; within a term it never falls as p rises.

        Raises:
            UserError: a score is not a probability.
        """
        p, limit = np.broadcast_arrays(checked(probability), self.thresholds(sums, ntrue))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.method == "sto":
                score = p / np.maximum(sums, p)  # only reached by a p too small for the sum
            else:
                finite_limit = np.minimum(limit, 1.0)
                score = 1.0 / (1.0 + ((1.0 - p) * finite_limit) / (p * (1.0 - finite_limit)))
        below = np.nextafter(self.threshold, 0.0)
        # Comparisons with NaN (0 / 0: p is 0, or p and the threshold are 1) yield the other value.
        kept: Floats = np.where(score >= self.threshold, score, self.threshold)
        dropped: Floats = np.where(score < self.threshold, score, below)
        result: Floats = np.where(p >= limit, kept, np.where(p > 0, dropped, 0.0))
        return result

    def apply(self, table: pa.Table, *, true: Mapping[str, int] | None = None) -> pa.Table:
        """Decide a list whose scores are probabilities, and normalise these; rows without score (misses) are unchanged.

        Args:
            table: DETECTIONS or TRIALS, all rows of each term.
            true: Ntrue(w), for the oracle; missing terms do not occur.

        Raises:
            UserError: a score is not a probability, or the oracle lacks Ntrue.
        """
        if self.method == "oracle-kst" and true is None:
            raise codes.ORACLE_WITHOUT_REFERENCES()
        query = table["query_id"].combine_chunks().dictionary_encode()
        names, code = query.dictionary.to_pylist(), query.indices.to_numpy().astype(np.int64)
        sums = PosteriorSums.of(table).values(names)
        ntrue = np.array([(true or {}).get(name, 0) for name in names], dtype=np.int64)
        probability = table["score"].to_numpy(zero_copy_only=False).astype(np.float64)
        missing = np.isnan(probability)
        score = self.normalised(np.where(missing, 0.0, probability), sums[code], ntrue[code])
        decision = pa.array(score >= self.threshold, mask=missing)
        table = table.set_column(table.schema.get_field_index("decision"), DETECTIONS.field("decision"), decision)
        return with_values(table, "score", pa.array(score, mask=missing))


class ByTermOptions(Options):
    """Options of KST and STO."""

    alpha: PositiveFloat = Field(ALPHA, description="a query is taken to occur alpha times its sum of probabilities")


class ByTerm(Step[ByTermOptions]):
    """A method of `swsdist.calibrate.steps.by_term`."""

    model = ByTermOptions
    method: ClassVar[Method]

    def threshold(self, point: TwvParameters) -> float:
        """1/2, or eq. 5 of Wang and Metze 2014."""
        return self._how(point).threshold

    def of_list(self) -> bool:
        """S(w) is a sum over the query's list."""
        return True

    def apply(self, table: pa.Table, fitted: Json | None, statistics: Tallies, point: TwvParameters | None) -> Floats:
        """Normalised scores.

        Raises:
            UserError: a score is not a probability.
        """
        assert point is not None  # the entry demands it
        names, code = coded(table["query_id"])
        if "trial" in table.column_names:
            sums = PosteriorSums.of(table.filter(table["trial"])).values(names)
        elif statistics is None:
            sums = PosteriorSums.of(table).values(names)
        else:
            sums_of = posterior_sums(statistics["posterior-sums"])
            sums = np.array([sums_of.get(name, 0.0) for name in names], np.float64)
        how = self._how(point)
        return of_scores(table, lambda scores: how.normalised(scores, sums[code]))

    def _how(self, point: TwvParameters) -> Thresholding:
        return Thresholding(self.method, point.trials, point.beta, self.options.alpha)


class Kst(ByTerm):
    """p (1 - thr) / (p (1 - thr) + (1 - p) thr), thr being the threshold of the term (eqs. 3 and 4).

    So the odds of the score are those of p divided by those of thr, and the threshold is 1/2.
    """

    name = "kst"
    version = 1
    method = "kst"


class Sto(ByTerm):
    """A probability over the sum of those of its term (eqs. 5 and 6)."""

    name = "sto"
    version = 1
    method = "sto"
