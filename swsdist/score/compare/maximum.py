"""Bootstrap intervals of MTWV over queries, with the threshold chosen anew in each draw.

Q queries are drawn with replacement from the Q with references, m_q times each, as `bootstrap_terms` draws them::

    MTWV* = max over thresholds of sum_q m_q TWV(q, threshold) / Q, and 0, which rejects everything

A maximum is taken of what was drawn: it is at least the draw's value at the threshold of the whole set, and so the draws lie
too high, by the more the fewer queries there are, and so do their percentiles. BCa (`Bootstrap.interval`, method `bca`) takes
it into account: it shifts the tails by the share of draws that are below the value observed.

MTWV itself is the value of the best threshold for these very queries, which nobody knows beforehand. Its interval says how it
would vary with other queries, each time with their own best threshold, and not what a fixed threshold would give.

Between two true occurrences, by falling score, values only fall. So the maximum lies at the score of a true occurrence, and no
other threshold is looked at.

Source: as of `swsdist.score.compare.bootstrap`; BCa, Efron and Tibshirani 1993, chapter 14.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.errors import UserError
from swsdist.score.compare.bootstrap import Bootstrap, draws_of

Floats = NDArray[np.float64]


def bootstrap_maximum(
    lists: Sequence[pa.Table], *, trials: int, beta: float, resamples: int = 10_000, seed: int = 0
) -> Bootstrap:
    """Resample queries, and take the maximum of each draw.

    Args:
        lists: the aligned list of each system, TRIALS, whole; decisions are not looked at.
        trials: N of each query.
        beta: weight of false alarms.
        resamples: draws; each takes as many additions as there are queries with references times true occurrences found.
        seed: of the generator.

    Raises:
        UserError: there is no query with references, one has no other trial, references differ, or no draw is asked for.
    """
    counts = [_true(table) for table in lists]
    if not counts or not counts[0]:
        raise UserError("there is no query with references to resample", remedy="check the references")
    if any(one != counts[0] for one in counts):
        raise UserError("the systems have different references", remedy="score all systems alike, then compare")
    if resamples < 1:
        raise UserError(f"{resamples} resamples were asked for", remedy="ask for at least 1, better 1000 or more")
    ntrue = np.array(list(counts[0].values()), np.int64)
    if (ntrue >= trials).any():
        raise UserError(f"a query has {ntrue.max()} true occurrences in {trials} trials", remedy="check the trials")
    names, queries = list(counts[0]), len(ntrue)
    values = [_values(table, names, ntrue, trials, beta) for table in lists]
    observed = np.array([_greatest(each.sum(axis=1, keepdims=True) / queries)[0] for each in values])
    pieces = []
    for weights in draws_of(queries, resamples, seed):
        found = np.zeros((len(values), weights.shape[1]))
        for k, each in enumerate(values):
            total = np.zeros((len(each), weights.shape[1]))
            for column, times in zip(each.T, weights, strict=True):
                total += column[:, None] * times
            found[k] = _greatest(total / queries)
        pieces.append(found)
    left = np.empty((len(values), 0))
    if queries > 1:
        left = np.stack([_greatest((each.sum(axis=1, keepdims=True) - each) / (queries - 1)) for each in values])
    return Bootstrap(observed, np.concatenate(pieces, axis=1), left)


def _greatest(values: Floats) -> Floats:
    """Of each column of values by threshold, and 0."""
    greatest: Floats = values.max(axis=0, initial=0.0)
    return greatest


def _true(table: pa.Table) -> dict[str, int]:
    """How often each query occurs that does, in the order of names."""
    rows = table.filter(pc.is_valid(table["ref_start"])).group_by("query_id").aggregate([("ref_start", "count")])
    counts = zip(rows["query_id"].to_pylist(), rows["ref_start_count"].to_pylist(), strict=True)
    return dict(sorted(counts))


def _values(table: pa.Table, names: list[str], ntrue: NDArray[np.int64], trials: int, beta: float) -> Floats:
    """TWV of each query at each score that a true occurrence has, from the highest: float64 (scores, queries)."""
    code = pc.index_in(table["query_id"].cast(pa.string()), value_set=pa.array(names, pa.string()))
    there = pc.and_(pc.is_valid(table["score"]), pc.is_valid(code))
    query = pc.filter(code, there).to_numpy().astype(np.int64)
    found = table.filter(there)
    score = found["score"].to_numpy().astype(np.float64)
    true = pc.is_valid(found["ref_start"]).to_numpy()
    levels = np.unique(score[true])[::-1]
    # The first of the levels, from the highest, at which a detection counts; below the last it never does.
    level = np.searchsorted(-levels, -score)
    counted = level < len(levels)
    cell = level * len(names) + query
    hits, false = (
        np.bincount(cell[counted & of], minlength=len(levels) * len(names)).reshape(-1, len(names)).cumsum(axis=0)
        for of in (true, ~true)
    )
    values: Floats = hits / ntrue - beta * (false / (trials - ntrue))
    return values
