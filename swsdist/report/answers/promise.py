"""The verdict `likely` is a promise: a precision of at least 0.8, and a recall of at least 0.3 of the correct hits among each
query's first ten. Both are cross-validated over queries.

If no threshold keeps the promise, the verdict is `strong`, with the measured precision.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.core.fingerprint import stable_hash

#: Least precision of likely hits, and least recall of correct hits among a query's first ten.
RIGHT, CALLED = 0.8, 0.3
#: Folds of the queries, hits per query for recall, and least number of likely hits for an estimate.
_FOLDS, _FIRST, _LEAST = 5, 10, 20


class Promise(NamedTuple):
    """The measured quality of a threshold.

    Attributes:
        threshold: least score; inf if none suffices.
        right: precision on held-out queries.
        called: recall of the correct hits among each query's first ten.
        hits: number above the threshold.
        first: number of correct hits among each query's first ten.
    """

    threshold: float
    right: float
    called: float
    hits: int
    first: int

    @property
    def is_kept(self) -> bool:
        """Whether the promise is kept."""
        enough = self.hits >= _LEAST and np.isfinite(self.threshold)
        return bool(enough and self.right >= RIGHT and self.called >= CALLED)


class _Hits(NamedTuple):
    score: NDArray[np.float64]
    right: NDArray[np.bool_]
    first: NDArray[np.bool_]
    fold: NDArray[np.int64]


def fit_promise(trials: pa.Table) -> Promise:
    """Fit the least threshold that keeps the promise, and measure it on held-out queries.

    Args:
        trials: TRIALS of all queries.
    """
    hits = _hits(trials)
    above = np.zeros(len(hits.score), np.bool_)
    for fold in range(_FOLDS):
        in_fold = hits.fold == fold
        above[in_fold] = hits.score[in_fold] >= _threshold(hits.score[~in_fold], hits.right[~in_fold])
    return _promise_of(_threshold(hits.score, hits.right), hits, above)


def precision_at(trials: pa.Table, threshold: float) -> Promise:
    """The quality of a threshold that was not fitted on these trials.

    Args:
        trials: TRIALS of all queries.
        threshold: least score.
    """
    hits = _hits(trials)
    return _promise_of(threshold, hits, hits.score >= threshold)


def _promise_of(threshold: float, hits: _Hits, above: NDArray[np.bool_]) -> Promise:
    count, right = int(above.sum()), int((above & hits.right).sum())
    correct = hits.right & hits.first
    share = float(above[correct].mean()) if correct.any() else 0.0
    return Promise(threshold, right / count if count else 0.0, share, count, int(correct.sum()))


def _hits(trials: pa.Table) -> _Hits:
    """Detections, best first within each query."""
    results = trials.filter(pc.is_valid(trials["score"])).sort_by([("query_id", "ascending"), ("score", "descending")])
    names = results["query_id"].to_numpy(zero_copy_only=False)
    query_ids, code = np.unique(names.astype(str), return_inverse=True)
    rank = np.arange(len(code)) - np.searchsorted(code, code)
    folds = np.array([stable_hash(name) % _FOLDS for name in query_ids.tolist()], np.int64)
    right = pc.is_valid(results["ref_start"]).to_numpy(zero_copy_only=False)
    return _Hits(
        results["score"].to_numpy(), right, rank < _FIRST, folds[code] if len(query_ids) else np.empty(0, np.int64)
    )


def _threshold(score: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """The least score with sufficient precision above it."""
    order = np.argsort(-score, kind="stable")
    ends = np.append(score[order][1:] != score[order][:-1], True)  # equal scores get the same verdict
    share = np.cumsum(right[order]) / np.arange(1, len(order) + 1)
    good = np.flatnonzero((share >= RIGHT) & ends[: len(order)])
    return float(score[order][good[-1]]) if len(good) else float("inf")
