"""ATWV at fitted thresholds, and MTWV, of one list for many weights of false alarms.

Scores, their order and pairs do not depend on beta; only the threshold of best TWV does. So all scores are sorted once, by
class of Ntrue, and the value at a threshold costs one binary search per class. The best threshold is searched in blocks of
neighbouring scores: from a block's first to its last threshold mean Pmiss rises and mean Pfa falls, so no value in it exceeds
1 - (Pmiss of the first + beta Pfa of the last). Only blocks that may contain the maximum, or a value that counts as equal,
are evaluated. Rates are computed from integers, class by class, as in `swsdist.score.measures.curve`, so each value and
threshold is the double that a run fits and scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.calibrate.operating_points.rescoring import RescoredPoints, Rescoring
from swsdist.calibrate.procedure import fold_of
from swsdist.score.measures.curve import TIE, Means

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

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
