"""Joins the halves of queries that match in one document (`swsdist.methods.query.parts`).

Two halves are joined if they do not overlap and at most `gap` frames lie between them, in either order. The joined match lasts
from the first frame to the last, and its cost is the sum of both. Of those of a query that end at the same frame, the
cheapest is kept, of equals the shortest; then as many of a document as of any example. All are integers of one document, so
candidates do not depend on how the work is split.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from swsdist.methods.dtw.matches import Matches, best_matches, first_of_equal
from swsdist.methods.query.parts import Parts

Ints = NDArray[np.int64]


def joined(matches: Matches, parts: Parts, most: Ints) -> Matches:
    """Candidates of `parts.results`.

    Args:
        matches: of `parts.searched`.
        parts: of the queries.
        most: int64 (documents,), candidates kept per query and document.
    """
    second = np.append(False, parts.target[1:] == parts.target[:-1])
    first = np.append(second[1:], False)
    rows = np.column_stack([parts.target[matches.query], *matches[1:5]]).astype(np.int64)
    first, second = first[matches.query], second[matches.query]
    pairs = [_after(rows[a], rows[b], parts.gap) for a, b in ((first, second), (second, first))]
    result = best_matches([rows[~(first | second)], _cheapest(np.concatenate(pairs))], most, matches.fill)
    return result._replace(saturated=matches.saturated)


def _after(halves: Ints, others: Ints, gap: int) -> Ints:
    """Each half with every other that begins after it, at most `gap` frames later.

    Args:
        halves, others: int64 (rows, 5): query, document, end frame, frames, cost.
        gap: frames.
    """
    begin = others[:, 2] - others[:, 3] + 1
    # A single number for query, document and frame; a gap does not reach the next document.
    span = max(int(some[:, 2].max(initial=0)) for some in (halves, others)) + gap + 2
    documents = max(int(some[:, 1].max(initial=0)) for some in (halves, others)) + 1

    def key(rows: Ints, frame: Ints) -> Ints:
        return (rows[:, 0] * documents + rows[:, 1]) * span + frame

    begins = key(others, begin)
    order = np.argsort(begins, kind="stable")
    nearest = key(halves, halves[:, 2] + 1)
    low = np.searchsorted(begins, nearest, sorter=order)
    count = np.searchsorted(begins, nearest + gap, side="right", sorter=order) - low
    place = np.repeat(low - np.cumsum(count) + count, count) + np.arange(count.sum())
    half, other = np.repeat(halves, count, axis=0), others[order[place]]
    frames = other[:, 2] - half[:, 2] + half[:, 3]
    return np.column_stack([half[:, :2], other[:, 2], frames, half[:, 4] + other[:, 4]])


def _cheapest(rows: Ints) -> Ints:
    """The best row of each query, document and end frame."""
    query, document, end, frames, cost = rows.T
    rows = rows[np.lexsort((frames, cost, end, document, query))]
    return rows[first_of_equal(rows, 3)]
