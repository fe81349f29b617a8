"""Scores one list at many operating points without aligning it again, and the study of KST against STO.

The scores of each term are sorted once, with counts of hits and false alarms from the top down. A point is one
threshold per term and costs one binary search per term. Thresholds are those of KST and STO, or fitted ones. Detections
that an alignment of the final scores could pair differently are stored separately and paired again at each point
(`swsdist.score.align.align`). The least and greatest final scores follow from those of each term, because within a term
a normalised score never falls as the probability rises. Counts are integers per class of Ntrue, and rates are computed
from them as in `swsdist.score.measures.twv`, so each value is the double that a run at that point computes.

Fitted thresholds, and MTWV, for many weights of false alarms: scores, their order and pairs do not depend on beta; only
the threshold of best TWV does. So all scores are sorted once, by class of Ntrue, and the value at a threshold costs one
binary search per class. The best threshold is searched in blocks of neighbouring scores: from a block's first to its
last threshold mean Pmiss rises and mean Pfa falls, so no value in it exceeds 1 - (Pmiss of the first + beta Pfa of the
last). Only blocks that may contain the maximum, or a value that counts as equal, are evaluated.

KST against STO, the study of Wang and Metze on any systems: each system is an aligned list of probabilities with its
operating point; systems may have different tasks (languages). ATWV is computed at each alpha, per system and as the
mean over systems; the best alpha of a method has the greatest mean (the lowest of equal ones: values within 1e-12 are
equal), or is given. At these alphas table 1, the tests, and the gains of each term, by S(w) and by Ntrue, are computed.
The pairs of a test are values of the terms of one system, or ATWVs of systems. Over terms the t test's assumption of
normal differences does not hold (section 3.2), and Wilcoxon's test is of ranks, not of the mean, so the sign-flip test
of the mean is added to the paper's two. Over fewer than two systems a test is not defined.

Source: Wang and Metze 2014, "An in-depth comparison of keyword specific thresholding and sum-to-one score
normalization", section 3, table 1, figures 3 and 5 to 8.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from swsdist.calibrate.procedure import fold_of
from swsdist.calibrate.steps.by_term import Method, PosteriorSums, Thresholding, checked, thresholds
from swsdist.core.arrays import Bools, Floats, Ints
from swsdist.core.codes import families
from swsdist.core.codes import score as score_codes
from swsdist.core.types import TRIALS, columns
from swsdist.kernels.coding import coded
from swsdist.score.align import Contest, contested, score_limits, split_contested
from swsdist.score.compare.paired import SignFlip, TTest, Wilcoxon, paired_t, rank_biserial, sign_flips, wilcoxon
from swsdist.score.conventions import conventions_of
from swsdist.score.measures.curve import TIE, Means, Ranking

#: One row per query: references, S(w), least and greatest probability, and number of its rows in RANKS.
TERMS_OF = columns("query_id string, ntrue int64, sum float64, low float64?, high float64?, ranks int64")

#: One row per distinct probability of a query, descending; counts are cumulative from the top.
RANKS = columns("negative float64, hits int32, false_alarms int32")


class CompactList(NamedTuple):
    """Input of rescoring for some queries: tables TERMS_OF (queries in any order), RANKS (in the order of the queries), and
    the contested rows of the aligned list (TRIALS)."""

    terms: pa.Table
    ranks: pa.Table
    contested: pa.Table


class MeanRates(NamedTuple):
    """ATWV and the mean rates at each point, float64 (P,)."""

    twv: Floats
    pmiss: Floats
    pfa: Floats


class RescoredPoints(NamedTuple):
    """Values at P points, and the accepted detections of each of the Q queries with references.

    Attributes:
        points: ATWV and mean rates.
        hits, false_alarms: int64 (Q, P), queries by id.
    """

    points: MeanRates
    hits: Ints
    false_alarms: Ints


def compact_list(
    aligned: pa.Table,
    *,
    tolerance: float | None,
    conventions: str,
    probabilities: bool = True,
    listed: pa.Table | None = None,
    sums: Mapping[str, float] | None = None,
) -> CompactList:
    """Sort and count an aligned list.

    Args:
        aligned: schema TRIALS with probabilities as scores, aligned by scores of the same order; all rows of its queries.
        tolerance: s, of the mid-point rule; None: trials have no times, and pairs depend on the order of scores only.
        conventions: name of the scoring program.
        probabilities: whether scores are probabilities; otherwise scores stay unchanged, and S(w) is 0.
        listed: the complete list, if the aligned one lacks rows: S(w) and the extreme scores are computed from it.
        sums: S(w) of queries, if it covers more than the list: 0 of others.

    Raises:
        UserError: a score is not a probability.
    """
    every = aligned.select(["query_id", "score"])
    if listed is not None:
        every = pa.concat_tables(
            [listed.select(every.column_names).cast(every.schema), every.filter(every["score"].is_null())]
        )
    scores = every["score"]
    if probabilities:
        checked(scores.filter(pc.is_valid(scores)).to_numpy())
    rest, rows = aligned, aligned.slice(0, 0)
    if tolerance is not None:
        rest, rows = split_contested(aligned, contested(aligned, tolerance=tolerance, conventions=conventions))
    names, code = coded(every["query_id"])
    detected = scores.is_valid().to_numpy()
    p, query = scores.drop_null().to_numpy(), code[detected]
    low, high = np.full(len(names), np.inf), np.full(len(names), -np.inf)
    np.minimum.at(low, query, p)
    np.maximum.at(high, query, p)
    ranking = Ranking.of(rest)
    place = {name: k for k, name in enumerate(ranking.names.to_pylist())}
    sizes = np.bincount(ranking.query, minlength=len(place))
    order = sorted(range(len(names)), key=lambda k: names[k])
    rated = [place.get(names[k]) for k in order]
    finite = np.isfinite(low)[order]
    ordered = [names[k] for k in order]
    if sums is not None:
        posterior_sums = np.array([sums.get(name, 0.0) for name in ordered], np.float64)
    else:
        posterior_sums = PosteriorSums.of(every).values(ordered) if probabilities else np.zeros(len(names))
    terms = [
        pa.array(ordered, pa.string()),
        pa.array([0 if at is None else int(ranking.ntrue[at]) for at in rated], pa.int64()),
        pa.array(posterior_sums),
        pa.array(low[order], mask=~finite),
        pa.array(high[order], mask=~finite),
        pa.array([0 if at is None else int(sizes[at]) for at in rated], pa.int64()),
    ]
    ranks = [
        pa.array(-ranking.score),
        pa.array((ranking.hits_above + ranking.hits).astype(np.int32)),
        pa.array((ranking.false_above + ranking.false_alarms).astype(np.int32)),
    ]
    return CompactList(
        pa.Table.from_arrays(terms, schema=TERMS_OF),
        pa.Table.from_arrays(ranks, schema=RANKS),
        rows.select(TRIALS.names),
    )


@dataclass(frozen=True, eq=False)
class Rescoring:
    """A list that can be scored at any point; only terms with references count, as in TWV.

    Attributes:
        names: (Q,) ids of the terms, ascending.
        ntrue: int64 (Q,).
        sums: float64 (Q,), S(w).
        begin, end: int64 (Q,), range of each term's rows.
        negative: float64 (n,), minus the scores, ascending within a term, distinct.
        hits, false_alarms: int (n,), cumulative from the top of the term; contested detections count as false alarms.
        extremes: float64 (2, n), least and greatest probability of every query with detections.
        extreme_sums, extreme_true: S(w), float64 (n,), and references, int64 (n,), of these queries.
        contest: the contested detections; None if there are none.
        probability: float64 (C,), of contested detections.
        term: int64 (C,), index in `names` of each one's term.
        rules: conventions of the scoring program.
    """

    names: pa.Array
    ntrue: Ints
    sums: Floats
    begin: Ints
    end: Ints
    negative: Floats
    hits: Ints
    false_alarms: Ints
    extremes: Floats
    extreme_sums: Floats
    extreme_true: Ints
    contest: Contest | None
    probability: Floats
    term: Ints
    rules: str

    @classmethod
    def of(cls, parts: Sequence[CompactList], *, tolerance: float | None, conventions: str) -> Rescoring:
        """Combine the parts of a list; no query is in two of them.

        Args:
            parts: at least one.
            tolerance, conventions: as of `compact_list`.

        Raises:
            UserError: no query has a reference.
        """
        terms = pa.concat_tables([part.terms for part in parts])
        referenced = terms.filter(pc.greater(terms["ntrue"], 0))
        if not referenced.num_rows:
            raise score_codes.NO_REFERENCES(measure="TWV")
        first = np.concatenate([np.zeros(1, np.int64), np.cumsum(referenced["ranks"].to_numpy())])
        negative, hits, false_alarms = (
            np.concatenate([part.ranks[name].to_numpy() for part in parts]) for name in RANKS.names
        )
        order = pc.sort_indices(referenced["query_id"]).to_numpy().astype(np.int64)
        names = referenced["query_id"].combine_chunks().take(pa.array(order))
        detected = terms.filter(pc.is_valid(terms["low"]))
        rows = pa.concat_tables([part.contested for part in parts])
        place = {name: k for k, name in enumerate(names.to_pylist())}
        contest = None
        if rows.num_rows and tolerance is not None:
            contest = Contest(rows, tolerance=tolerance, conventions=conventions)
        taken = rows.take(pa.array(contest.row)) if contest is not None else rows
        return cls(
            names,
            referenced["ntrue"].to_numpy()[order],
            referenced["sum"].to_numpy()[order],
            first[:-1][order],
            first[1:][order],
            negative,
            hits,
            false_alarms,
            np.stack([detected["low"].to_numpy(), detected["high"].to_numpy()]),
            detected["sum"].to_numpy(),
            detected["ntrue"].to_numpy(),
            contest,
            taken["score"].to_numpy().astype(np.float64),
            np.array([place[name] for name in taken["query_id"].to_pylist()], np.int64),
            conventions,
        )

    @classmethod
    def of_list(
        cls, aligned: pa.Table, listed: pa.Table | None = None, *, tolerance: float | None, conventions: str
    ) -> Rescoring:
        """From a whole aligned list; arguments as in `compact_list`."""
        part = compact_list(aligned, tolerance=tolerance, conventions=conventions, listed=listed)
        return cls.of([part], tolerance=tolerance, conventions=conventions)

    def at(self, method: Method, alpha: ArrayLike, beta: ArrayLike, *, trials: int) -> RescoredPoints:
        """Score at some points of KST or STO.

        Args:
            method: which thresholding.
            alpha, beta: (P,), or one for all points; positive.
            trials: T.

        Raises:
            UserError: alpha or beta is not positive, or a query occurs in every trial.
        """
        alphas, betas = np.broadcast_arrays(
            np.atleast_1d(alpha).astype(np.float64), np.atleast_1d(beta).astype(np.float64)
        )
        for name, values in (("alpha", alphas), ("beta", betas)):
            if not (np.isfinite(values) & (values > 0)).all():
                raise score_codes.VALUE_NOT_POSITIVE(name=name, value=values[~(np.isfinite(values) & (values > 0))][0])
        limits = thresholds(
            method, self.sums[:, None], self.ntrue[:, None], alpha=alphas[None], beta=betas[None], trials=trials
        )
        limits = np.broadcast_to(limits, (len(self.ntrue), len(alphas)))
        hits, false_alarms = self._kept(limits)
        if self.contest is not None:
            for k in range(limits.shape[1]):
                thresholding = Thresholding(method, trials, float(betas[k]), float(alphas[k]))
                paired = self._paired(self.contest, thresholding) & (self.probability >= limits[self.term, k])
                more = np.bincount(self.term[paired], minlength=len(limits))
                hits[:, k] += more
                false_alarms[:, k] -= more
        return RescoredPoints(self._means(hits, false_alarms, betas, trials), hits, false_alarms)

    def above(self, limits: Floats, betas: Floats, *, trials: int) -> RescoredPoints:
        """Score unchanged scores at given thresholds.

        Args:
            limits: (Q, P), on the scores of each term.
            betas: (P,).
            trials: T.

        Raises:
            UserError: a query occurs in every trial.
        """
        hits, false_alarms = self._kept(limits)
        return RescoredPoints(self._means(hits, false_alarms, betas, trials), hits, false_alarms)

    def _kept(self, limits: Floats) -> tuple[Ints, Ints]:
        """Hits and false alarms of each term at each point, int64 (Q, P)."""
        hits, false_alarms = (np.zeros(limits.shape, dtype=np.int64) for _ in range(2))
        for term, (begin, end) in enumerate(zip(self.begin.tolist(), self.end.tolist(), strict=True)):
            kept = np.searchsorted(self.negative[begin:end], -limits[term], side="right")
            some = np.flatnonzero(kept)
            last = begin + kept[some] - 1
            hits[term, some] = self.hits[last]
            false_alarms[term, some] = self.false_alarms[last]
        return hits, false_alarms

    def _means(self, hits: Ints, false_alarms: Ints, betas: Floats, trials: int) -> MeanRates:
        order = np.argsort(self.ntrue, kind="stable")
        classes, first, terms = np.unique(self.ntrue[order], return_index=True, return_counts=True)
        by_class = (np.add.reduceat(counts[order], first) for counts in (hits, false_alarms))
        pmiss, pfa = Means.of(classes, terms, trials=trials).rates(zip(*by_class, strict=True))
        return MeanRates(1 - (pmiss + betas * pfa), pmiss, pfa)

    def _paired(self, contest: Contest, rule: Thresholding) -> Bools:
        ntrue = self.ntrue[self.term]
        scores = rule.normalised(self.probability, self.sums[self.term], ntrue)
        if not conventions_of(self.rules).list_limits:
            return contest.hits(scores, None, None)
        low, high = score_limits(rule.normalised(self.extremes, self.extreme_sums[None], self.extreme_true[None]))
        return contest.hits(scores, low, high)


def query_values(ntrue: Ints, hits: Ints, false_alarms: Ints, *, beta: float, trials: int) -> Floats:
    """1 - Pmiss - beta Pfa of each query, float64 (Q,), as `swsdist.score.measures.twv.per_term` has it; their mean is ATWV."""
    pmiss = (ntrue - hits) / ntrue
    values: Floats = 1 - (pmiss + beta * (false_alarms / (trials - ntrue)))
    return values


#: Thresholds per block.
_BLOCK = 256


class BestThreshold(NamedTuple):
    """The threshold of maximum TWV (None without scores), and whether it rejects everything."""

    threshold: float | None
    rejecting: bool


@dataclass(frozen=True, eq=False)
class SortedDetections:
    """The detections of some terms with references, by class of Ntrue and score.

    Attributes:
        ntrue, terms: int64 (K,), the classes, ascending, and how many terms each has.
        first: int64 (K + 1,), where each class's rows begin.
        score: float64 (n,), ascending within a class.
        hits, false_alarms: int64 (n + K,), for each class the cumulative sums before each row, and the total.
        distinct: float64 (m,), all scores, ascending, each once.
    """

    ntrue: Ints
    terms: Ints
    first: Ints
    score: Floats
    hits: Ints
    false_alarms: Ints
    distinct: Floats

    def rates(self, at: Ints, trials: int) -> tuple[Floats, Floats]:
        """Mean Pmiss and Pfa at thresholds given by index in `distinct`; m rejects everything."""
        size = len(self.distinct)
        limits = np.full(len(at), math.inf)
        limits[at < size] = self.distinct[at[at < size]]
        kept = []
        for k in range(len(self.ntrue)):
            begin, end = self.first[k], self.first[k + 1]
            below = begin + k + np.searchsorted(self.score[begin:end], limits)
            kept.append((self.hits[end + k] - self.hits[below], self.false_alarms[end + k] - self.false_alarms[below]))
        return Means.of(self.ntrue, self.terms, trials=trials).rates(kept)

    def best(self, betas: Floats, *, trials: int, reject_all: bool = True) -> list[BestThreshold]:
        """The maximum TWV for each beta, at the lowest of equal thresholds.

        Args:
            betas: (P,).
            trials: T.
            reject_all: whether a threshold may reject everything; it always may without scores.
        """
        size = len(self.distinct)
        last = size + (1 if reject_all or not size else 0)
        starts = np.arange(0, last, _BLOCK)
        ends = np.minimum(starts + _BLOCK, last) - 1
        pmiss, pfa = self.rates(np.concatenate([starts, ends]), trials)
        evaluated: dict[int, tuple[Floats, Floats]] = {}
        results = []
        for beta in betas.tolist():
            ceiling = 1 - (pmiss[: len(starts)] + beta * pfa[len(starts) :])
            floor = float((1 - (pmiss + beta * pfa)).max())
            blocks = np.flatnonzero(ceiling >= floor - TIE)
            new = [block for block in blocks.tolist() if block not in evaluated]
            if new:
                places = [np.arange(starts[block], ends[block] + 1) for block in new]
                borders = np.cumsum([len(some) for some in places])[:-1]
                rated = [np.split(rate, borders) for rate in self.rates(np.concatenate(places), trials)]
                evaluated |= dict(zip(new, zip(*rated, strict=True), strict=True))
            values = [1 - (evaluated[block][0] + beta * evaluated[block][1]) for block in blocks.tolist()]
            top = max(float(some.max()) for some in values)
            block, k = next(
                (block, int(np.flatnonzero(some >= top - TIE)[0]))
                for block, some in zip(blocks.tolist(), values, strict=True)
                if some.max() >= top - TIE
            )
            place = int(starts[block]) + k
            label = None if not size else float(self.distinct[min(place, size - 1)])
            results.append(BestThreshold(label, place == size))
        return results


class ThresholdFitter:
    """A list whose terms are sorted once, for fits on subsets of terms.

    Args:
        rescoring: terms with references; scores of any kind.
    """

    def __init__(self, rescoring: Rescoring) -> None:
        self._rescoring = rescoring
        size, by_begin = rescoring.end - rescoring.begin, np.argsort(rescoring.begin, kind="stable")
        self._term = np.repeat(by_begin, size[by_begin])
        self._order = np.lexsort((-rescoring.negative, rescoring.ntrue[self._term]))
        self._ascending = np.argsort(-rescoring.negative, kind="stable")
        begins = np.zeros(len(rescoring.negative), dtype=bool)
        begins[rescoring.begin[size > 0]] = True
        self._hits, self._false_alarms = (
            np.where(begins, sums, np.diff(sums, prepend=0)).astype(np.int64)
            for sums in (rescoring.hits, rescoring.false_alarms)
        )

    def of(self, terms: Bools) -> SortedDetections:
        """The detections of some terms, (Q,)."""
        rescoring = self._rescoring
        order = self._order[terms[self._term[self._order]]]
        ascending = -rescoring.negative[self._ascending[terms[self._term[self._ascending]]]]
        classes, counts = np.unique(rescoring.ntrue[terms], return_counts=True)
        ntrue_of_rows = rescoring.ntrue[self._term[order]]
        first = np.append(np.searchsorted(ntrue_of_rows, classes), len(ntrue_of_rows)).astype(np.int64)
        sums = []
        for events in (self._hits[order], self._false_alarms[order]):
            parts = [np.append(0, np.cumsum(events[begin:end])) for begin, end in pairwise(first.tolist())]
            sums.append(np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64))
        distinct = ascending[np.append(True, np.diff(ascending) != 0)[: len(ascending)]]
        return SortedDetections(classes, counts, first, -rescoring.negative[order], sums[0], sums[1], distinct)


class FittedPoints(NamedTuple):
    """Values at P points with fitted thresholds, and at the maxima of TWV; thresholds of the maxima, float64 (P,), NaN
    without scores."""

    decided: RescoredPoints
    best: RescoredPoints
    threshold: Floats


def rescore_fitted(rescoring: Rescoring, folds: int, betas: Floats, *, trials: int, rejects_all: bool) -> FittedPoints:
    """ATWV with thresholds fitted for each beta, and MTWV.

    Args:
        rescoring: a list; scores of any kind.
        folds: each is decided by thresholds fitted on the others; 1: fitted on all (oracle).
        betas: (P,), positive.
        trials: T.
        rejects_all: whether the curve of MTWV has a point that rejects everything.
    """
    fitting = ThresholdFitter(rescoring)
    fold = np.array([fold_of(name, folds) for name in rescoring.names.to_pylist()], np.int64)
    limits = np.full((len(fold), len(betas)), math.inf)
    for k in range(folds):
        others = fold != k if folds > 1 else np.ones(len(fold), dtype=bool)
        own_fold = fold == k
        if not own_fold.any() or not others.any():
            continue
        learnt = fitting.of(others)
        if not len(learnt.distinct):
            continue  # no training data: the fold decides NO
        limits[own_fold] = [_threshold(best) for best in learnt.best(betas, trials=trials)]
    maxima = fitting.of(np.ones(len(fold), dtype=bool)).best(betas, trials=trials, reject_all=rejects_all)
    at_best = np.array([math.inf if item.rejecting or item.threshold is None else item.threshold for item in maxima])
    return FittedPoints(
        rescoring.above(limits, betas, trials=trials),
        rescoring.above(np.broadcast_to(at_best, limits.shape), betas, trials=trials),
        np.array([math.nan if item.threshold is None else item.threshold for item in maxima]),
    )


def _threshold(best: BestThreshold) -> float:
    """The threshold that a run fits: the next double above the highest score if it rejects everything."""
    assert best.threshold is not None
    return float(np.nextafter(best.threshold, math.inf)) if best.rejecting else best.threshold


#: Most bins of S(w) that are as wide as 1.
MOST_BINS = 100

#: 1.0 to 3.0 by 0.1.
ALPHAS: Floats = np.arange(10, 31) / 10


@dataclass(frozen=True, eq=False)
class StudyEntry:
    """A system to study.

    Attributes:
        name: label.
        task: name of what was searched; systems of one task share references.
        sweep: its aligned list of probabilities.
        trials, beta: its operating point.
        logistic: how probabilities were computed: `none` if the scores are probabilities, else the kind of fit.
    """

    name: str
    task: str
    sweep: Rescoring
    trials: int
    beta: float
    logistic: str = "none"


class Tests(NamedTuple):
    """Paired tests of two rows of values, and the direction of the ranks; None for fewer than two pairs."""

    sign_flip: SignFlip | None = None
    t: TTest | None = None
    wilcoxon: Wilcoxon | None = None
    rank_biserial: float | None = None


@dataclass(frozen=True, eq=False)
class SystemStudy:
    """Results of a system.

    Attributes:
        entry: the input.
        curves: ATWV at each alpha, of kst and sto.
        atwv: of the three methods, at their alphas.
        values: of its terms (Q,), by the three methods.
        thresholds: on its terms' probabilities (Q,).
        over_terms: tests of kst against sto.
    """

    entry: StudyEntry
    curves: dict[Method, Floats]
    atwv: dict[Method, float]
    values: dict[Method, Floats]
    thresholds: dict[Method, Floats]
    over_terms: Tests


class Breakdown(NamedTuple):
    """A difference of ATWV by bins of terms.

    Attributes:
        edges: (n + 1,), bin i is [edges[i], edges[i + 1]).
        terms: (n,), terms in each, the mean over systems.
        total: (n,), their contributions to the difference of the mean ATWVs.
        per_term: (n,), total over terms; 0 for empty bins.
    """

    edges: Floats
    terms: Floats
    total: Floats
    per_term: Floats


@dataclass(frozen=True, eq=False)
class Study:
    """Results of the study.

    Attributes:
        alphas: (A,).
        systems: in the given order; the first is the example that is shown alone.
        mean: ATWV at each alpha, the mean over systems, of kst and sto.
        best: alpha of kst and sto.
        chosen: whether `best` was given.
        atwv: mean over systems, of the three methods.
        over_systems: tests of kst against sto on ATWVs; None without pairs.
        by_sum: kst - sto by S(w), the mean over systems (fig. 7), in bins of 1; where there is a sum above `MOST_BINS`, in
            bins from 2^k - 1 to 2^(k + 1) - 1.
        by_ntrue: kst - oracle-kst by Ntrue, of the single system (fig. 8).
    """

    alphas: Floats
    systems: tuple[SystemStudy, ...]
    mean: dict[Method, Floats]
    best: dict[Method, float]
    chosen: bool
    atwv: dict[Method, float]
    over_systems: Tests
    by_sum: Breakdown
    by_ntrue: Breakdown


def study(entries: Sequence[StudyEntry], *, alphas: ArrayLike = ALPHAS, alpha: float | None = None) -> Study:
    """Compare KST and STO on some systems.

    Args:
        entries: at least one; the first is the example that is shown alone.
        alphas: to try, positive.
        alpha: compare at this alpha; None: at the best of each method.

    Raises:
        UserError: there is no system, two have one name, or an alpha is not positive.
    """
    if not entries:
        raise families.EMPTY_INPUT("no system to study", "name one or more system lists")
    names = [entry.name for entry in entries]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise score_codes.DUPLICATE_SYSTEM_NAME(name=twice)
    tried = np.asarray(alphas, dtype=np.float64)
    methods: tuple[Method, ...] = ("kst", "sto")
    curves: list[dict[Method, Floats]] = [
        {method: entry.sweep.at(method, tried, entry.beta, trials=entry.trials).points.twv for method in methods}
        for entry in entries
    ]
    mean = {method: _mean_rows([curve[method] for curve in curves]) for method in methods}
    best = {method: _best(tried, mean[method]) if alpha is None else alpha for method in methods}
    systems = tuple(_studied(item, curve, best) for item, curve in zip(entries, curves, strict=True))
    every: tuple[Method, ...] = ("oracle-kst", "kst", "sto")
    return Study(
        alphas=tried,
        systems=systems,
        mean=mean,
        best=best,
        chosen=alpha is not None,
        atwv={method: math.fsum(system.atwv[method] for system in systems) / len(systems) for method in every},
        over_systems=_tests(*([system.atwv[method] for system in systems] for method in methods)),
        by_sum=_by_sum(systems),
        by_ntrue=_by_ntrue(systems[0]),
    )


def _studied(study_entry: StudyEntry, curves: dict[Method, Floats], best: dict[Method, float]) -> SystemStudy:
    values: dict[Method, Floats] = {}
    limits: dict[Method, Floats] = {}
    atwv: dict[Method, float] = {}
    methods: tuple[Method, ...] = ("oracle-kst", "kst", "sto")
    for method in methods:
        thresholding = Thresholding(method, study_entry.trials, study_entry.beta, best.get(method, 1.0))
        rescored, ntrue = (
            study_entry.sweep.at(method, thresholding.alpha, study_entry.beta, trials=study_entry.trials),
            study_entry.sweep.ntrue,
        )
        kept = rescored.hits[:, 0], rescored.false_alarms[:, 0]
        values[method] = query_values(ntrue, *kept, beta=study_entry.beta, trials=study_entry.trials)
        limits[method] = thresholding.thresholds(study_entry.sweep.sums, ntrue)
        atwv[method] = float(rescored.points.twv[0])
    return SystemStudy(study_entry, curves, atwv, values, limits, _tests(values["kst"], values["sto"]))


def _tests(first: ArrayLike, second: ArrayLike) -> Tests:
    if len(np.atleast_1d(first)) < 2:
        return Tests()
    return Tests(
        sign_flips([(first, second)])[0],
        paired_t(first, second),
        wilcoxon(first, second),
        rank_biserial(first, second),
    )


def _mean_rows(rows: Sequence[Floats]) -> Floats:
    return np.array([math.fsum(column) / len(rows) for column in zip(*rows, strict=True)])


def _best(alphas: Floats, values: Floats) -> float:
    return float(alphas[np.flatnonzero(values >= values.max() - TIE)].min())


def _by_sum(systems: Sequence[SystemStudy]) -> Breakdown:
    sums = [system.entry.sweep.sums for system in systems]
    most = max(float(values_of_sums.max()) for values_of_sums in sums)
    edges = np.arange(math.floor(most) + 2, dtype=np.float64)
    if most > MOST_BINS:
        edges = np.exp2(np.arange(math.floor(math.log2(1 + most)) + 2)) - 1
    parts = [
        _binned(
            np.searchsorted(edges, values_of_sums, side="right") - 1,
            item.values["kst"] - item.values["sto"],
            len(edges) - 1,
        )
        for values_of_sums, item in zip(sums, systems, strict=True)
    ]
    terms, total = (_mean_rows([part[k] for part in parts]) for k in range(2))
    return _breakdown(edges, terms, total)


def _by_ntrue(system_study: SystemStudy) -> Breakdown:
    ntrue = system_study.entry.sweep.ntrue
    edges = np.arange(1, int(ntrue.max()) + 2, dtype=np.float64)
    return _breakdown(
        edges, *_binned(ntrue - 1, system_study.values["kst"] - system_study.values["oracle-kst"], len(edges) - 1)
    )


def _binned(member: Ints, gains: Floats, bins: int) -> tuple[Floats, Floats]:
    """Terms of each bin, and the sum of their gains over the number of all terms."""
    terms, total = np.bincount(member, minlength=bins).astype(np.float64), np.zeros(bins)
    np.add.at(total, member, gains)
    return terms, total / len(member)


def _breakdown(edges: Floats, terms: Floats, total: Floats) -> Breakdown:
    return Breakdown(edges, terms, total, np.where(terms > 0, total / np.maximum(terms, 1e-300), 0.0))
