"""The scorer of QUESST, MediaEval's query by example task of 2014 and 2015: one trial for each query and document.

Every trial has a score and a decision: the system provides them all, or the evaluation has a default score (decision NO) for
missing ones; without one the program stops, and `swsdist_recipes.quesst.measure` takes the least score. Queries without a
target document are removed with all their trials. Costs and prior are combined in one number, the effective prior; beta =
(1 - prior) / prior. Rates are means over the queries, cross entropies are over all trials together, their scores
log-likelihood ratios (`swsdist.score.measures.cnxe`).

The rules are those of the program that the evaluation used, which differ from STDEval's:

- A trial is accepted if its score is **greater** than the threshold; the threshold that is named is the largest score that is
  rejected, minus infinity where none is. The lowest of equal maxima wins. (Ours: rates come from counts, values within
  1e-12 are equal; the program's sums are off by some 1e-13.)
- The least Cnxe is that of pool adjacent violators over single trials: equal scores are pooled in the order of the system's
  file, then the defaults by query and document. Non-targets that stand before targets of the same score stay apart, so it
  is lower than `swsdist.score.measures.cnxe.cnxe_pav`, and is no property of the scores alone.
- The second set of values shows the gain of a threshold, or recalibration, per query. It starts from the
  scores that the pooling above made: TWV with each query's best threshold taken off its scores, and Cnxe after pooling each
  query's trials alone, relative to the rate of targets of all; its least Cnxe pools all once more, equal ones query
  after query. The last depends on which of the pooled rates are equal to the last bit, so rates are formed step by step as the
  program forms them.
- A query whose every document is a target has no false-alarm rate: TWV of the decisions is not a number. In the curve the
  program takes its Pfa for 1 at every threshold.

Sources: Szoeke, Rodriguez-Fuentes, Buzo, Anguera, Metze, Proenca, Lojka and Xiong, "Query by example search on speech at
MediaEval 2015", 2015; and what the program does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from swsdist.core.arrays import Bools, Floats, Ints
from swsdist.score.measures.cnxe import bayes_threshold, check_prior, log_cost, prior_entropy
from swsdist.score.measures.curve import TIE, Curve


class Values(NamedTuple):
    """TWV at the decisions and at the best threshold; Cnxe of the scores, and the least Cnxe."""

    act_twv: float
    max_twv: float
    threshold: float
    act_cnxe: float
    min_cnxe: float


@dataclass(frozen=True, eq=False)
class Quesst:
    """The values that the program reports.

    Attributes:
        pooled: of the unchanged scores.
        per_query: with a threshold or recalibration per query ("model-dependent").
        curve: threshold (largest score rejected, first minus infinity), mean Pmiss, mean Pfa, TWV.
        per_query_curve: the same with each query's best threshold shifted to 0.
    """

    pooled: Values
    per_query: Values
    curve: Curve
    per_query_curve: Curve


def score_trials(trials: Trials, prior: float) -> Quesst:
    """Score all trials as the QUESST program does.

    Args:
        trials: of the queries with targets; both targets and non-targets.
        prior: effective prior, in (0, 1).

    Raises:
        UserError: the prior is not between 0 and 1.
    """
    check_prior(prior)
    beta = (1 - prior) / prior
    curve = _curve(trials.score, trials, beta)
    best, threshold = _best(curve)
    pooled = _recalibrated(trials.score, trials.target, float(trials.target.mean()))
    per_query, per_query_curve = _per_query(pooled, trials, prior, beta)
    return Quesst(
        pooled=Values(
            act_twv=math.nan if trials.decision is None else _twv(trials.decision, trials, beta),
            max_twv=best,
            threshold=threshold,
            act_cnxe=_cnxe(trials.score, trials.target, prior),
            min_cnxe=_cnxe(pooled, trials.target, prior),
        ),
        per_query=per_query,
        curve=curve,
        per_query_curve=per_query_curve,
    )


class Trials(NamedTuple):
    """All trials of the queries with targets, in the program's order: those of the list, then the others by query.

    Attributes:
        query: index of the query, 0 to Q - 1.
        score: finite; of trials that the list lacks, the default.
        target: whether the document is a target.
        decision: whether the trial was accepted; None where one is not decided.
    """

    query: Ints
    score: Floats
    target: Bools
    decision: Bools | None

    def take(self, rows: Ints) -> Trials:
        """Some rows, of one query."""
        return Trials(np.zeros(len(rows), dtype=np.int64), self.score[rows], self.target[rows], None)

    def of_each_query(self) -> Iterator[Ints]:
        """Rows of each query, in the program's order."""
        order = np.argsort(self.query, kind="stable")
        yield from np.split(order, np.flatnonzero(np.diff(self.query[order])) + 1)


def _per_query(pooled: Floats, trials: Trials, prior: float, beta: float) -> tuple[Values, Curve]:
    """Values and curve with a threshold, or recalibration, per query; `pooled` are recalibrated scores."""
    rate = float(trials.target.mean())
    shifted, per_query = np.empty(len(pooled)), np.empty(len(pooled))
    by_query = list(trials.of_each_query())
    for rows in by_query:
        alone = trials.take(rows)
        _, threshold = _best(_curve(pooled[rows], alone, beta))
        with np.errstate(invalid="ignore"):
            # An infinite score at an infinite threshold is not above it.
            shifted[rows] = np.nan_to_num(pooled[rows] - threshold, nan=-math.inf, posinf=math.inf, neginf=-math.inf)
        per_query[rows] = _recalibrated(pooled[rows], alone.target, rate)
    curve = _curve(shifted, trials, beta)
    best, threshold = _best(curve)
    # The last pooling meets equal scores query after query.
    order = np.concatenate(by_query)
    values = Values(
        act_twv=_twv(shifted > 0, trials, beta),
        max_twv=best,
        threshold=threshold,
        act_cnxe=_cnxe(per_query, trials.target, prior),
        min_cnxe=_cnxe(_recalibrated(per_query[order], trials.target[order], rate), trials.target[order], prior),
    )
    return values, curve


def _twv(accepted: Bools, trials: Trials, beta: float) -> float:
    """Mean over the queries of 1 - Pmiss - beta Pfa."""
    targets, nontargets = _sizes(trials)
    queries = len(targets)
    misses = np.bincount(trials.query[trials.target & ~accepted], minlength=queries)
    false_alarms = np.bincount(trials.query[~trials.target & accepted], minlength=queries)
    if not nontargets.all():
        return math.nan
    return 1 - math.fsum(misses / targets + beta * (false_alarms / nontargets)) / queries


def _curve(score: Floats, trials: Trials, beta: float) -> Curve:
    """Means with all scores up to each distinct one rejected; the first point rejects none."""
    targets, nontargets = _sizes(trials)
    distinct, place = np.unique(score, return_inverse=True)
    pmiss, pfa = np.zeros(len(distinct) + 1), np.zeros(len(distinct) + 1)
    # Per number of targets, so that sums before the division are integers.
    for ntrue in np.unique(targets):
        rows = (targets == ntrue)[trials.query]
        left = nontargets[targets == ntrue][0]
        misses = np.bincount(place[rows & trials.target] + 1, minlength=len(distinct) + 1)
        rejected = np.bincount(place[rows & ~trials.target] + 1, minlength=len(distinct) + 1)
        pmiss = pmiss + np.cumsum(misses) / ntrue
        raised = np.count_nonzero(rows & ~trials.target) - np.cumsum(rejected)
        pfa = pfa + (raised / left if left else 1.0)
    pmiss, pfa = pmiss / len(targets), pfa / len(targets)
    return Curve(np.append(-math.inf, distinct), pmiss, pfa, 1 - (pmiss + beta * pfa))


def _best(curve: Curve) -> tuple[float, float]:
    """Greatest value and its threshold, the lowest of equal ones."""
    at = int(np.flatnonzero(curve.twv >= curve.twv.max() - TIE)[0])
    return float(curve.twv[at]), float(curve.threshold[at])


def _sizes(trials: Trials) -> tuple[Ints, Ints]:
    """Targets and non-targets of each query."""
    targets = np.bincount(trials.query[trials.target])
    return targets, np.bincount(trials.query, minlength=len(targets)) - targets


def _cnxe(llr: Floats, target: Bools, prior: float) -> float:
    nats = prior * math.fsum(log_cost(llr[target], prior, target=True)) / np.count_nonzero(target)
    nats += (1 - prior) * math.fsum(log_cost(llr[~target], prior, target=False)) / np.count_nonzero(~target)
    return float(nats / (prior_entropy(prior) * math.log(2)))


def _recalibrated(score: Floats, target: Bools, rate: float) -> Floats:
    """Log-likelihood ratios by pooling single trials, equal scores in their order; `rate` of targets is the prior."""
    order = np.argsort(score, kind="stable")
    means: list[float] = []
    sizes: list[int] = []
    for label in target[order].tolist():
        mean, size = float(label), 1
        while means and means[-1] >= mean:
            before, larger = means.pop(), size + sizes.pop()
            mean = before + size / larger * (mean - before)
            size = larger
        means.append(mean)
        sizes.append(size)
    llr = np.empty(len(score))
    llr[order] = np.repeat([_log_odds(mean) + bayes_threshold(rate) for mean in means], sizes)
    return llr


def _log_odds(probability: float) -> float:
    if probability == 0:
        return -math.inf
    return math.inf if probability == 1 else -math.log(1 / probability - 1)
