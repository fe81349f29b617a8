"""Candidates of a search as arrays, and the selection of the best of each query and document."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.scan import COLUMNS


class Matches(NamedTuple):
    """Candidates as parallel arrays, ordered by query, document, end frame.

    Attributes:
        query: int32, index of the example.
        document: int32, index of the document.
        end_frame: int64, last document frame of the path.
        frames: int32, document frames of the path.
        cost: int64, sum of the local distances over the query's frames.
        fill: how much of the lanes was frames of documents, 0 to 1; the rest was padding.
        saturated: frames of documents outside the range of the distance, counted by the caller.
    """

    query: NDArray[np.int32]
    document: NDArray[np.int32]
    end_frame: NDArray[np.int64]
    frames: NDArray[np.int32]
    cost: NDArray[np.int64]
    fill: float
    saturated: int = 0


def pruned(rows: NDArray[np.int64], most: NDArray[np.int64]) -> NDArray[np.int64]:
    """The best `most[document]` of each query and document: those of least cost, earlier ends first.

    Args:
        rows: int64 (candidates, 5), columns as in `kernels.scan`; in any order, none twice.
        most: int64 (documents,).

    Returns:
        Those rows, by query, document, end frame.
    """
    if len(rows) == 0:
        return rows
    query, document, end = (rows[:, k] for k in range(3))
    documents, ends = int(document.max()) + 1, int(end.max()) + 1
    if (int(query.max()) + 1) * documents * ends < 1 << 63:  # one number is sorted twenty times as fast as three
        rows = rows[np.argsort((query * documents + document) * ends + end)]
    else:
        rows = rows[np.lexsort((end, document, query))]
    new = first_of_equal(rows, 2)
    starts = np.flatnonzero(new)
    sizes = np.diff(np.append(starts, len(rows)))
    too_many = np.repeat(sizes > most[rows[starts, 1]], sizes)
    if not too_many.any():
        return rows
    places = np.flatnonzero(too_many)
    group = np.cumsum(new)[places]
    places = places[np.lexsort((rows[places, 2], rows[places, 4], group))]
    group = np.cumsum(new)[places]
    rank = np.arange(len(places)) - np.searchsorted(group, group)
    keep = np.ones(len(rows), bool)
    keep[places[rank >= most[rows[places, 1]]]] = False
    return rows[keep]


def first_of_equal(rows: NDArray[np.int64], columns: int) -> NDArray[np.bool_]:
    """Which sorted rows differ from the one before in their first columns, bool (rows,)."""
    new = np.ones(len(rows), bool)
    np.any(rows[1:, :columns] != rows[:-1, :columns], axis=1, out=new[1:])
    return new


def joined(matches: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Concatenate the rows of all parts, and empty the list."""
    rows = np.concatenate(matches) if matches else np.empty((0, COLUMNS), np.int64)
    matches.clear()
    return rows


def best_matches(matches: list[NDArray[np.int64]], most: NDArray[np.int64], fill: float) -> Matches:
    """The best candidates.

    Args:
        matches: rows as `pruned` takes them, in parts; it is emptied, so that no row is held twice for longer than it must.
        most: int64 (documents,), candidates kept per query and document.
        fill: see `Matches`.
    """
    rows = pruned(joined(matches), most)
    return Matches(
        rows[:, 0].astype(np.int32),
        rows[:, 1].astype(np.int32),
        rows[:, 2].copy(),
        rows[:, 3].astype(np.int32),
        rows[:, 4].copy(),
        fill,
    )


def together(first: Matches, second: Matches) -> Matches:
    """The candidates of two searches of different documents."""
    parts = [np.column_stack(matches[:5]).astype(np.int64) for matches in (first, second)]
    unlimited = np.full(int(max(part[:, 1].max(initial=0) for part in parts)) + 1, sum(map(len, parts)))
    return best_matches(parts, unlimited, second.fill)
