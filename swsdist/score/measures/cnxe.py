"""Normalised cross entropy (Cnxe): the share of information about the truth that a system's scores do not provide.

Scores are interpreted as natural log-likelihood ratios: with the prior P the posterior odds of a trial being a
target are exp(llr) P / (1 - P). A target costs -ln(posterior), a non-target -ln(1 - posterior). Mean costs of targets
and of non-targets, weighted P and 1 - P, in bits, are the cross entropy; Cnxe is that divided by the cross entropy
of llr = 0 everywhere: 0 is perfect, 1 uninformative, more than 1 misleading.

If scores are not log-likelihood ratios (DTW scores are not), the actual Cnxe is hardly informative, and often far above
1. Its minimum over affine maps gamma llr + delta is meaningful for any score, and its minimum over all rising maps does
not depend on the scale of the scores. Actual minus minimum is the calibration loss.

Rising maps are found by pooling adjacent violators, which gives the best-fitting rising rates of targets in rows
ordered by score. The fit is best for every proper scoring rule, for squared error and for cross entropy at any prior.

Trials that a system did not submit are censored: each gets the smallest submitted score, also in the minima, where it
is mapped too. For a system without submitted trials llr is 0 everywhere, and Cnxe 1 (ours; the source does not define
it). A list with more false alarms than there are non-target trials, as of a system that may answer more often than once
a trial, has as many non-target trials as false alarms (ours). The order of trials with equal scores has no effect.

Time trials, segment trials and document trials differ only in what a trial is: see `Trials.of_aligned`.

Values are computed from integer counts per distinct score, ascending, so they do not depend on the order of rows
or the partition of a list. Logarithms may differ between CPU types in their last bit.

Sources: Rodriguez-Fuentes and Penagarikano, "MediaEval 2013 spoken web search task: system performance measures", 2013,
section 4.2, equations 22 to 45 (equation numbers below); pool adjacent violators: Ayer, Brunk, Ewing, Reid and
Silverman, "An empirical distribution function for sampling with incomplete information", 1955; for scoring rules:
Bruemmer and du Preez, "Application-independent evaluation of speaker detection", 2006.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from swsdist.core.arrays import Floats, Ints
from swsdist.core.codes import families
from swsdist.core.codes import score as codes
from swsdist.core.errors import UserError
from swsdist.registry.entries import MeasureEntry, Quantity
from swsdist.score.events import CLASSES, EVENTS, Parts, Sums, Value, event_blocks, pooled_blocks
from swsdist.score.measures.protocol import OperatingPoint


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


_STEPS = 200  # Newton steps; about thirty are needed for scores over ten orders of magnitude


def check_prior(prior: float) -> None:
    """Check that a prior is between 0 and 1.

    Raises:
        UserError: it is not between 0 and 1.
    """
    if not 0 < prior < 1:
        raise families.INVALID_VALUE.of(UserError)(
            "the prior {prior} is not between 0 and 1", "give a number above 0 and below 1", prior=prior
        )


def effective_prior(prior: float, *, cost_miss: float = 1.0, cost_false_alarm: float = 1.0) -> float:
    """The effective prior of a prior and costs (eq. 23): Cmiss P / (Cmiss P + Cfa (1 - P)).

    Raises:
        UserError: the prior is not between 0 and 1, or a cost is not positive.
    """
    check_prior(prior)
    if not (0 < cost_miss < math.inf and 0 < cost_false_alarm < math.inf):
        raise families.INVALID_VALUE.of(UserError)(
            "the costs are {cost_miss} (miss) and {cost_false_alarm} (false alarm)",
            "give positive, finite costs",
            cost_miss=cost_miss,
            cost_false_alarm=cost_false_alarm,
        )
    return cost_miss * prior / (cost_miss * prior + cost_false_alarm * (1 - prior))


def bayes_threshold(prior: float) -> float:
    """The lowest llr at which YES costs less than NO (eq. 31): -logit(P); ln beta for the prior of a beta."""
    return -_logit(prior)


def prior_entropy(prior: float) -> float:
    """Cross entropy of llr = 0 everywhere, in bits (eq. 39)."""
    check_prior(prior)
    return -(prior * math.log2(prior) + (1 - prior) * math.log2(1 - prior))


def log_cost(llr: ArrayLike, prior: float, *, target: bool) -> Floats:
    """-ln of the posterior probability of what is true (eq. 37), in nats.

    Args:
        llr: any shape; infinite ones cost 0 on their own side.
        prior: effective prior.
        target: whether the trials are targets.
    """
    log_odds = np.asarray(llr, dtype=np.float64) + _logit(prior)
    cost: Floats = np.logaddexp(0.0, -log_odds if target else log_odds)
    return cost


@dataclass(frozen=True, eq=False)
class Trials:
    """Submitted trials, counted per score, and the size of the whole set; instances add.

    Attributes:
        llr: float64 (E,), distinct submitted scores, ascending.
        true: int64 (E,), target trials with that score.
        false: int64 (E,), non-target trials.
        n_true: target trials of the whole set, submitted or not.
        n_false: non-target trials of the whole set.
    """

    llr: Floats
    true: Ints
    false: Ints
    n_true: int
    n_false: int

    @classmethod
    def of(
        cls, targets: ArrayLike, nontargets: ArrayLike, *, n_true: int | None = None, n_false: int | None = None
    ) -> Trials:
        """Count scores.

        Args:
            targets: llr of the submitted target trials, 1-D, any order.
            nontargets: llr of the submitted non-target trials.
            n_true: target trials of the whole set; default: all were submitted.
            n_false: non-target trials of the whole set, likewise.

        Raises:
            TableError: a score is not finite.
            UserError: more trials were submitted than the whole set has.
        """
        true, false = _finite(targets, "target"), _finite(nontargets, "non-target")
        n_true = len(true) if n_true is None else n_true
        n_false = len(false) if n_false is None else n_false
        for what, submitted, limit in (("target", len(true), n_true), ("non-target", len(false), n_false)):
            if submitted > limit:
                raise codes.TOO_MANY_TRIALS(submitted=submitted, kind=what, total=limit)
        ones = np.repeat([True, False], [len(true), len(false)])
        return _counted(np.concatenate([true, false]), ones.astype(np.int64), (~ones).astype(np.int64), n_true, n_false)

    @classmethod
    def of_aligned(cls, aligned: pa.Table, *, trials: int, queries: int) -> Trials:
        """Trials of an aligned list: hits and misses are targets, false alarms are submitted non-targets.

        Time trials: what `align` yields, and N trials a query (eq. 41). Document trials: what
        `swsdist.score.trials.document_trials` yields, and the number of documents. Segment trials: a row a segment
        with a detection or a reference, and the number of segments.

        Args:
            aligned: schema TRIALS, rows in any order.
            trials: N, trials of a query.
            queries: how many queries the whole set has, with and without rows.

        Raises:
            UserError: the list has more queries than the whole set.
        """
        named = pc.count_distinct(aligned["query_id"]).as_py()
        if named > queries:
            raise codes.TOO_MANY_QUERIES(listed=named, queries=queries)
        score = aligned["score"]
        submitted, true = pc.is_valid(score).to_numpy(), pc.is_valid(aligned["ref_start"]).to_numpy()
        values = pc.fill_null(score, 0.0).to_numpy()
        n_true = int(np.count_nonzero(true))
        targets, nontargets = values[submitted & true], values[submitted & ~true]
        return cls.of(targets, nontargets, n_true=n_true, n_false=max(queries * trials - n_true, len(nontargets)))

    def __add__(self, other: Trials) -> Trials:
        llr, true, false = (
            np.concatenate([getattr(self, name), getattr(other, name)]) for name in ("llr", "true", "false")
        )
        return _counted(llr, true, false, self.n_true + other.n_true, self.n_false + other.n_false)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trials):
            return NotImplemented
        same = (np.array_equal(getattr(self, name), getattr(other, name)) for name in ("llr", "true", "false"))
        return (self.n_true, self.n_false) == (other.n_true, other.n_false) and all(same)

    def complete(self) -> Trials:
        """All trials of the whole set, the censored ones with the smallest submitted score (eq. 42)."""
        if not len(self.llr):
            return Trials(np.zeros(1), np.array([self.n_true]), np.array([self.n_false]), self.n_true, self.n_false)
        true, false = self.true.copy(), self.false.copy()
        true[0] += self.n_true - true.sum()
        false[0] += self.n_false - false.sum()
        return Trials(self.llr, true, false, self.n_true, self.n_false)


def cross_entropy(trials: Trials, prior: float) -> float:
    """Cxe of the whole set, in bits (eq. 43).

    Raises:
        UserError: the set has no target or no non-target trial, or the prior is not between 0 and 1.
    """
    _check_defined(trials, prior)
    complete = trials.complete()
    # Rows without a trial are left out: their cost may be infinite, and 0 times infinity is NaN.
    true, false = complete.true > 0, complete.false > 0
    targets = math.fsum(complete.true[true] * log_cost(complete.llr[true], prior, target=True))
    nontargets = math.fsum(complete.false[false] * log_cost(complete.llr[false], prior, target=False))
    return (prior * targets / complete.n_true + (1 - prior) * nontargets / complete.n_false) / math.log(2)


def cnxe(trials: Trials, prior: float) -> float:
    """Actual Cnxe (eq. 40), of unmapped scores.

    Args:
        trials: counted scores.
        prior: effective prior, in (0, 1).

    Raises:
        UserError: as of `cross_entropy`.
    """
    return cross_entropy(trials, prior) / prior_entropy(prior)


class Affine(NamedTuple):
    """The least Cnxe over maps gamma llr + delta.

    If a threshold separates targets from non-targets perfectly, it is reached only as gamma goes to infinity (or,
    for inverted scores, to minus infinity): gamma is infinite and delta NaN. If all scores are equal,
    both are 0.
    """

    cnxe: float
    gamma: float
    delta: float


def cnxe_min(trials: Trials, prior: float) -> Affine:
    """Least Cnxe over affine maps of the scores (eqs. 44, 45); the censored trials move along, gamma may be negative.

    The objective is convex in (gamma, delta) and is minimised by Newton's method with halved steps.

    Raises:
        UserError: as of `cross_entropy`.
    """
    _check_defined(trials, prior)
    complete = trials.complete()
    if len(complete.llr) == 1:
        return Affine(1.0, 0.0, 0.0)
    weight = (prior * complete.true / complete.n_true, (1 - prior) * complete.false / complete.n_false)
    true, false = complete.llr[complete.true > 0], complete.llr[complete.false > 0]
    for gamma, border, other in ((math.inf, true[0], false[-1]), (-math.inf, true[-1], false[0])):
        if (border - other) * math.copysign(1, gamma) >= 0:
            tied = (complete.llr == border) & (border == other)
            least = sum(_least_of_constant(*pair) for pair in zip(weight[0][tied], weight[1][tied], strict=True))
            return Affine(float(least) / math.log(2) / prior_entropy(prior), gamma, math.nan)
    centre = float(np.average(complete.llr, weights=weight[0] + weight[1]))
    scale = float(np.average(np.abs(complete.llr - centre), weights=weight[0] + weight[1]))
    x = (complete.llr - centre) / scale
    a, b = _newton(x, *weight, _logit(prior))
    moved = Trials(a * x + b, complete.true, complete.false, complete.n_true, complete.n_false)
    return Affine(cnxe(moved, prior), a / scale, b - a * (centre / scale))


def _least_of_constant(true: float, false: float) -> float:
    """Least cost, in nats, of trials with one score: weights of targets and non-targets there."""
    return true * math.log1p(false / true) + false * math.log1p(true / false)


def _newton(x: Floats, true: Floats, false: Floats, offset: float) -> tuple[float, float]:
    """The one (a, b) at which a x + b costs least; weights of targets and non-targets at each x, which is centred."""
    both = true + false

    def cost(a: float, b: float) -> float:
        z = a * x + b + offset
        return float(np.sum(true * np.logaddexp(0.0, -z) + false * np.logaddexp(0.0, z)))

    a, b, least = 0.0, 0.0, cost(0.0, 0.0)
    for _ in range(_STEPS):
        z = a * x + b + offset
        posterior = np.exp(-np.logaddexp(0.0, -z))
        slope = false * posterior - true * np.exp(-np.logaddexp(0.0, z))
        curvature = both * posterior * np.exp(-np.logaddexp(0.0, z))
        # In coordinates about the centre of the curvature, where the two unknowns do not depend on each other.
        mass = float(np.sum(curvature))
        middle = float(np.sum(curvature * x)) / mass if mass else 0.0
        spread = float(np.sum(curvature * (x - middle) ** 2))
        if not spread:
            break
        along, level = float(np.sum(slope * (x - middle))), float(np.sum(slope))
        da = -along / spread
        db = -level / mass - middle * da
        gain = along * along / spread + level * level / mass
        if gain <= 1e-13 * least:
            a, b = a + da, b + db  # this close a full step squares the error, and the cost cannot resolve the change
            break
        step = 1.0
        # Half of what the tangent parabola promises is asked for: less lets steps end where all is flat.
        while (reached := cost(a + step * da, b + step * db)) > least - 0.25 * step * gain and step > 1e-9:
            step /= 2
        if reached >= least:
            break
        a, b, least = a + step * da, b + step * db, reached
    return a, b


def cnxe_pav(trials: Trials, prior: float) -> float:
    """Least Cnxe over all rising maps of the scores, by pool adjacent violators; equal scores stay equal.

    A block with t of T targets and f of F non-targets gets llr = ln(t/f) - ln(T/F). The QUESST program pools equal
    scores in the order of its file instead, which is lower (the recipe quesst).

    Raises:
        UserError: as of `cross_entropy`.
    """
    _check_defined(trials, prior)
    complete = trials.complete()
    blocks = pool_adjacent_violators(complete.true, complete.true + complete.false)
    mixed = (blocks.true > 0) & (blocks.true < blocks.total)  # other rows have no cost
    true = blocks.true[mixed].astype(np.float64)
    false = (blocks.total - blocks.true)[mixed].astype(np.float64)
    odds = true / false * (complete.n_false / complete.n_true) * (prior / (1 - prior))
    targets, nontargets = math.fsum(true * np.log1p(1 / odds)), math.fsum(false * np.log1p(odds))
    nats = prior * targets / complete.n_true + (1 - prior) * nontargets / complete.n_false
    return nats / math.log(2) / prior_entropy(prior)


class CrossEntropy(NamedTuple):
    """All cross entropies of a list at one prior.

    Attributes:
        prior: effective prior.
        threshold: Bayes threshold of the prior.
        entropy_bits: cross entropy of llr = 0.
        smallest: smallest submitted score, which the censored trials get; None without submitted trials.
        cxe_bits: cross entropy.
        cnxe: actual value.
        cnxe_min: least over affine maps, at gamma and delta.
        loss: cnxe - cnxe_min, the calibration loss.
        cnxe_pav: least over rising maps.
    """

    prior: float
    threshold: float
    entropy_bits: float
    smallest: float | None
    cxe_bits: float
    cnxe: float
    cnxe_min: float
    gamma: float
    delta: float
    loss: float
    cnxe_pav: float


def measure(trials: Trials, prior: float) -> CrossEntropy:
    """Actual and least cross entropies of a list.

    Args:
        trials: counted scores.
        prior: effective prior (`effective_prior`, `prior_of_beta`).

    Raises:
        UserError: as of `cross_entropy`.
    """
    actual, least = cnxe(trials, prior), cnxe_min(trials, prior)
    return CrossEntropy(
        prior=prior,
        threshold=bayes_threshold(prior),
        entropy_bits=prior_entropy(prior),
        smallest=float(trials.llr[0]) if len(trials.llr) else None,
        cxe_bits=cross_entropy(trials, prior),
        cnxe=actual,
        cnxe_min=least.cnxe,
        gamma=least.gamma,
        delta=least.delta,
        loss=actual - least.cnxe,
        cnxe_pav=cnxe_pav(trials, prior),
    )


def _counted(llr: Floats, true: Ints, false: Ints, n_true: int, n_false: int) -> Trials:
    """Trials with each score once, ascending."""
    distinct, inverse = np.unique(llr, return_inverse=True)
    sums = np.zeros((2, len(distinct)), dtype=np.int64)
    np.add.at(sums[0], inverse, true)
    np.add.at(sums[1], inverse, false)
    return Trials(distinct, sums[0], sums[1], n_true, n_false)


def _finite(scores: ArrayLike, what: str) -> Floats:
    # Adding 0 gives -0.0 and 0.0, which are equal, the same sign.
    values: Floats = np.asarray(scores, dtype=np.float64).ravel() + 0.0
    if (bad := np.flatnonzero(~np.isfinite(values))).size:
        raise codes.NOT_FINITE_NUMBER(where=f"{what} trial {bad[0] + 1}", column="score", value=values[bad[0]])
    return values


def _check_defined(trials: Trials, prior: float) -> None:
    check_prior(prior)
    if trials.n_true < 1 or trials.n_false < 1:
        raise families.UNDEFINED(
            "no cross entropy is defined for {true} target and {false} non-target trials",
            "provide at least one of each: check references, seconds of audio and trials per second",
            true=trials.n_true,
            false=trials.n_false,
        )


def _logit(prior: float) -> float:
    check_prior(prior)
    return math.log(prior / (1 - prior))


def trials_of(parts: Parts, point: OperatingPoint) -> Trials:
    """All trials of all queries, by score, for cross entropies; one row per distinct score in memory.

    Where more false alarms were submitted than there are non-target trials, as many are counted.
    """
    sums = Sums.from_parts(parts, point, refless=True)
    blocks = list(pooled_blocks(event_blocks(parts[EVENTS.name], refless=True), sums.true))
    none = np.zeros(0)
    llr = np.concatenate([none, *(block.score for block in blocks)])
    true, false = (
        np.concatenate([none.astype(np.int64), *(getattr(block, name) for block in blocks)])
        for name in ("hits", "false_alarms")
    )
    n_false = max(point.queries * point.trials - sums.true, int(false.sum()))
    return Trials(llr, true, false, sums.true, n_false)


class CrossEntropies:
    """Over all trials of all queries; scores are interpreted as log-likelihood ratios."""

    parts = (EVENTS, CLASSES)
    undefined = {
        "": "there is no target trial or no non-target trial",
        "cnxe_gamma": "no affine map is the best, or no cross entropy is defined",
        "cnxe_delta": "no affine map is the best, or no cross entropy is defined",
    }

    def values(self, parts: Parts, point: OperatingPoint) -> Mapping[str, Value]:
        """Values by key; empty without targets or non-targets."""
        prior = point.effective_prior
        try:
            result = measure(trials_of(parts, point), prior)
        except UserError:
            return {}
        return {
            "effective_prior": prior,
            "cnxe": result.cnxe,
            "cnxe_min": result.cnxe_min,
            "cnxe_gamma": result.gamma,
            "cnxe_delta": result.delta,
            "cnxe_pav": result.cnxe_pav,
            "calibration_loss": result.loss,
        }


CROSS_ENTROPIES = MeasureEntry(
    f"{__name__}:CrossEntropies",
    2,
    (
        Quantity("effective_prior", best="", unit="probability"),
        Quantity("cnxe", "Cnxe", "lowest"),
        Quantity("cnxe_min", "min Cnxe", "lowest"),
        Quantity("cnxe_gamma", "gamma of min Cnxe", ""),
        Quantity("cnxe_delta", "delta of min Cnxe", ""),
        Quantity("cnxe_pav", "min Cnxe by PAV", "lowest"),
        Quantity("calibration_loss", best="lowest"),
    ),
)
