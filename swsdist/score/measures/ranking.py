"""An aligned list as rankings: for each query with references, its detections in groups of equal score, best first.

Basis of counts per query and rank instead of per class of Ntrue: spreads over queries (`swsdist.score.measures.det`),
average precision and similar measures (`swsdist.score.measures.retrieval`). All counts are integers, in an order that does not
depend on the rows' order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdist.score.tables import as_table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ranking:
    """Queries with references, by id, and their groups, by query and then by score descending.

    Attributes:
        names: (Q,) query ids, ascending.
        ntrue: int64 (Q,), true occurrences, detected or not; positive.
        query: int64 (G,), index of each group's query.
        score: float64 (G,), no two groups of a query with the same.
        hits: int64 (G,), paired detections of the group.
        false_alarms: int64 (G,), unpaired ones.
        hits_above: int64 (G,), paired detections of the query with a higher score.
        false_above: int64 (G,), unpaired ones.
    """

    names: pa.Array
    ntrue: Ints
    query: Ints
    score: Floats
    hits: Ints
    false_alarms: Ints
    hits_above: Ints
    false_above: Ints

    @classmethod
    def of(cls, aligned: object) -> Ranking:
        """Rank an aligned list.

        Args:
            aligned: schema TRIALS, rows in any order, all rows of each query.
        """
        table = as_table(aligned, "aligned")
        names, index = query_index(table)
        true = pc.is_valid(table["ref_start"]).to_numpy()
        ntrue = np.bincount(index[true], minlength=len(names))
        kept = np.flatnonzero(ntrue)
        place = np.full(len(names), -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))

        rows = np.flatnonzero(pc.is_valid(table["score"]).to_numpy() & (place[index] >= 0))
        # Adding 0 gives -0.0 and 0.0, which are equal, the same sign.
        query, score = place[index[rows]], pc.fill_null(table["score"], 0.0).to_numpy()[rows] + 0.0
        order = np.lexsort((-score, query))
        query, score, hit = query[order], score[order], true[rows][order]
        first = np.flatnonzero(np.append(True, (np.diff(query) != 0) | (np.diff(score) != 0))[: len(query)])
        query, score = query[first], score[first]
        size = np.diff(np.append(first, len(hit)))
        hits = _sums(hit.astype(np.int64), first)
        return cls(
            names.take(pa.array(kept)),
            ntrue[kept],
            query,
            score,
            hits,
            size - hits,
            _above(hits, query),
            _above(size - hits, query),
        )


def query_index(aligned: pa.Table) -> tuple[pa.Array, Ints]:
    """Query ids of a list, ascending, and the index of each row's."""
    encoded = aligned["query_id"].combine_chunks().dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return encoded.dictionary.take(pa.array(order)), rank[encoded.indices.to_numpy()]


def _sums(values: Ints, first: Ints) -> Ints:
    return np.add.reduceat(values, first) if len(first) else values[:0]


def _above(values: Ints, query: Ints) -> Ints:
    """Cumulative sum of the query's values before each row."""
    before = np.cumsum(values) - values
    return before - before[np.searchsorted(query, query)] if len(values) else values
