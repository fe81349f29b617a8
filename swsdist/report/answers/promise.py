"""The word likely is a promise: of the hits that are called so four fifths are right, and of the right ones among each
query's first ten at least three in ten are called so. Both are measured on other queries than the threshold is fitted on.

Where no threshold keeps that, hits are called by a neutral word, `strong`, and the share of them that is right is told.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.core.fingerprint import stable_hash

#: Of what is called likely so much is right; and of what is right among a query's first ten so much is called so.
RIGHT, CALLED = 0.8, 0.3
#: Parts of the queries, hits of a query that are looked at, and the least number that is called for a share to mean anything.
_FOLDS, _FIRST, _LEAST = 5, 10, 20


class Promise(NamedTuple):
    """What a threshold keeps.

    Attributes:
        threshold: least score; inf where none keeps it.
        right: part of what is called so that is right, on queries that it was not fitted on.
        called: part of the right ones among each query's first ten that is called so.
        hits: how many were called so.
        first: how many right ones there are among each query's first ten.
    """

    threshold: float
    right: float
    called: float
    hits: int
    first: int

    @property
    def is_kept(self) -> bool:
        """Whether hits may be called likely."""
        enough = self.hits >= _LEAST and np.isfinite(self.threshold)
        return bool(enough and self.right >= RIGHT and self.called >= CALLED)


class _Hits(NamedTuple):
    score: NDArray[np.float64]
    right: NDArray[np.bool_]
    first: NDArray[np.bool_]
    fold: NDArray[np.int64]


def fit_promise(trials: pa.Table) -> Promise:
    """The least threshold of which the promise is kept on some queries, and what it keeps on others.

    Args:
        trials: TRIALS of all queries.
    """
    hits = _hits(trials)
    called = np.zeros(len(hits.score), np.bool_)
    for fold in range(_FOLDS):
        here = hits.fold == fold
        called[here] = hits.score[here] >= _threshold(hits.score[~here], hits.right[~here])
    return _promise_of(_threshold(hits.score, hits.right), hits, called)


def precision_at(trials: pa.Table, threshold: float) -> Promise:
    """What a threshold keeps that was not fitted on these trials.

    Args:
        trials: TRIALS of all queries.
        threshold: least score.
    """
    hits = _hits(trials)
    return _promise_of(threshold, hits, hits.score >= threshold)


def _promise_of(threshold: float, hits: _Hits, called: NDArray[np.bool_]) -> Promise:
    count, right = int(called.sum()), int((called & hits.right).sum())
    there = hits.right & hits.first
    share = float(called[there].mean()) if there.any() else 0.0
    return Promise(threshold, right / count if count else 0.0, share, count, int(there.sum()))


def _hits(trials: pa.Table) -> _Hits:
    """Detections, best first within each query."""
    found = trials.filter(pc.is_valid(trials["score"])).sort_by([("query_id", "ascending"), ("score", "descending")])
    names = found["query_id"].to_numpy(zero_copy_only=False)
    known, code = np.unique(names.astype(str), return_inverse=True)
    rank = np.arange(len(code)) - np.searchsorted(code, code)
    folds = np.array([stable_hash(name) % _FOLDS for name in known.tolist()], np.int64)
    right = pc.is_valid(found["ref_start"]).to_numpy(zero_copy_only=False)
    return _Hits(found["score"].to_numpy(), right, rank < _FIRST, folds[code] if len(known) else np.empty(0, np.int64))


def _threshold(score: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """The least score from which on enough is right."""
    order = np.argsort(-score, kind="stable")
    ends = np.append(score[order][1:] != score[order][:-1], True)  # equal scores are called alike
    share = np.cumsum(right[order]) / np.arange(1, len(order) + 1)
    good = np.flatnonzero((share >= RIGHT) & ends[: len(order)])
    return float(score[order][good[-1]]) if len(good) else float("inf")
