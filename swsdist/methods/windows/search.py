"""Coarse and fine search of a group of queries in documents: arrays in, candidates out.

Documents arrive in stretches (`methods.first_pass.interface`), so memory does not grow with a document. The distances
of a stretch to a query are computed once, for both searches. If a document is longer than a stretch, its best windows
are known only at its end; until then the fine search covers all windows that may still be kept.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Ints, Singles
from swsdist.kernels.alignment import in_windows, packed
from swsdist.kernels.arithmetic import State
from swsdist.kernels.distances.interface import Distance
from swsdist.kernels.products import QueryDistances, Room, aligned
from swsdist.kernels.suppression import separated
from swsdist.kernels.vectors import WIDTH
from swsdist.kernels.windows import column_minima, least_sums
from swsdist.methods.dtw.search import Matches, best_matches, pruned
from swsdist.methods.first_pass.interface import Documents, FrameBuffer, Stretch, buffered, stretches
from swsdist.methods.query.example import Example

#: Upper bound of all sums of distances.
_ANY = int(np.iinfo(np.int64).max)

#: Columns of rows: the window (example, document, first frame, estimate), and its path (first and last frame, cost).
_COLUMNS = 7
_EXAMPLE, _DOCUMENT, _WINDOW, _ESTIMATE, _FIRST, _LAST, _COST = range(_COLUMNS)

_Rows = Ints


class Limits(NamedTuple):
    """Limits per document.

    Attributes:
        lengths: int64 (documents,), frames.
        windows: int64 (documents,), number of windows searched per example: those of least estimate, earlier ones
            first.
        apart: the least distance between the ends of two candidates, in frames.
        candidates: int64 (documents,), number kept per example: those of least cost, earlier ends first.
        free: whether a path may begin and end anywhere in its window.
    """

    lengths: Ints
    windows: Ints
    apart: int
    candidates: Ints
    free: bool


def search(examples: list[Example], documents: Documents, limits: Limits, distance: Distance) -> Matches:
    """Find the candidates of every example in every document.

    Args:
        examples: at least one frame each, prepared as queries.
        documents: (index, consecutive blocks of prepared frames).
        limits: what to keep.
        distance: the distance the frames are prepared for.
    """
    room = Room(np.int16)
    queries = [QueryDistances(example.frames, distance, room) for example in examples]
    longest = max((query.frames for query in queries), default=1)
    seen = np.zeros(len(limits.lengths), np.int64)  # frames of a document whose windows are done
    matches: list[_Rows] = []
    pending = np.empty((0, _COLUMNS), np.int64)
    parts = (part for index, blocks in documents for part in stretches(index, blocks, longest))
    for stretch in buffered(parts, distance):
        rows = np.concatenate([pending, *_fine(stretch, queries, seen, limits)])
        last = stretch.stretches[-1]
        going_on = rows[:, _DOCUMENT] == (-1 if last.last else last.document)
        pending = rows[going_on]
        if len(pending) > len(queries) * limits.windows[last.document]:
            pending = pending[_of_least_estimate(pending, limits)]
        matches.append(settled(rows[~going_on], limits))
    return best_matches(matches, limits.candidates, 1.0)


def _fine(held: FrameBuffer, queries: list[QueryDistances], seen: Ints, limits: Limits) -> list[_Rows]:
    """Find the best windows of each query in stretches, and the best path in each."""
    laid = held.lay(np.array([0], np.int64), np.array([len(held.pairs)], np.int64))
    document = np.array([part.document for part in held.stretches], np.int64)
    zero = np.array([base - part.offset for part, base in zip(held.stretches, held.bases, strict=True)], np.int64)
    stop = np.array([part.offset + len(part.frames) for part in held.stretches], np.int64)
    table = np.column_stack([zero, limits.lengths[document], seen[document], stop])
    seen[document] = stop
    most = np.minimum(limits.windows[document], [len(part.frames) + 2 for part in held.stretches])
    best = np.empty((int(most.sum()), 3), np.int64)
    minima = np.empty(-(-len(held.pairs) // WIDTH) * WIDTH, np.int16)
    candidates = []
    for k, query in enumerate(queries):
        distances = query(laid.source)
        column_minima(distances, query.height, query.frames, minima)
        count = least_sums(minima, table, query.frames, most, _ANY, best)
        stretch, first = best[:count, 0], best[:count, 1]
        columns = np.minimum(query.frames, limits.lengths[document[stretch]] - first)
        paths = np.empty((count, 3), np.int64)
        places = np.column_stack([zero[stretch] + first, columns])
        _paths(distances, query, places, limits.free, paths)
        paths[:, :2] += first[:, None]
        candidates.append(np.column_stack([np.full(count, k), document[stretch], best[:count, 1:], paths]))
    return candidates


def _paths(distances: NDArray[np.int16], query: QueryDistances, places: _Rows, free: bool, rows: Ints) -> None:
    """Find the best path of a query in each window; see `kernels.alignment.in_windows`."""
    n = query.frames
    state = packed(n, int(places[:, 1].max(initial=1)))
    column = cast("State", aligned(n * WIDTH, np.dtype(state.dtype)))
    run = in_windows(state.dtype)  # type: ignore[arg-type] # mypy: a class cannot be hashed
    run(distances, query.height, n, places, free, state.bits, aligned(n * WIDTH, np.int16), column, rows)


def settled(rows: _Rows, limits: Limits) -> _Rows:
    """Select the candidates of documents whose windows are complete.

    Args:
        rows: int64 (windows, 7): example, document, first frame of the window, estimate; first and last frame of the
            path in it, cost.
        limits: what to keep.

    Returns:
        int64 (candidates, 5), columns as in `kernels.scan`, by example, document, last frame.
    """
    group = _groups(rows, limits)
    chosen = _of_least_estimate(rows, limits)
    chosen = chosen[np.lexsort((-rows[chosen, _FIRST], rows[chosen, _LAST], rows[chosen, _COST], group[chosen]))]
    bounds = np.append(np.flatnonzero(np.diff(group[chosen], prepend=-1)), len(chosen))
    keep = np.empty(len(chosen), np.bool_)
    separated(bounds, np.ascontiguousarray(rows[chosen, _LAST]), limits.apart, keep)
    kept = rows[chosen[keep]]
    frames = kept[:, _LAST] - kept[:, _FIRST] + 1
    candidates = np.column_stack([kept[:, _EXAMPLE], kept[:, _DOCUMENT], kept[:, _LAST], frames, kept[:, _COST]])
    return pruned(candidates, limits.candidates)


def _groups(rows: _Rows, limits: Limits) -> Ints:
    """A number for each pair of example and document."""
    numbers: Ints = rows[:, _EXAMPLE] * len(limits.lengths) + rows[:, _DOCUMENT]
    return numbers


def _of_least_estimate(rows: _Rows, limits: Limits) -> Ints:
    """Mask of the rows whose windows are kept for their example and document."""
    group = _groups(rows, limits)
    order = np.lexsort((rows[:, _WINDOW], rows[:, _ESTIMATE], group))
    rank = np.arange(len(order)) - np.searchsorted(group[order], group[order])
    kept: Ints = order[rank < limits.windows[rows[order, _DOCUMENT]]]
    return kept


def best_in(example: Example, part: Singles, distance: Distance, *, free: bool) -> tuple[int, int, int]:
    """Find the best path in a stretch, with a window every half of the query from its start, and one that ends with it.

    A stretch shorter than the query is one window.

    Args:
        example: prepared as a query.
        part: float32 (frames, columns), the stretch, prepared as a document.
        distance: of the frames.
        free: whether the path may begin and end at any frame of a window.

    Returns:
        First and last frame of the path, and its cost; the first window wins ties.
    """
    (stretch,) = buffered([Stretch(0, 0, part, True)], distance)
    laid = stretch.lay(np.array([0], np.int64), np.array([len(part)], np.int64))
    query = QueryDistances(example.frames, distance, Room(np.int16))
    n = query.frames
    last = max(0, len(part) - n)
    first = np.append(np.arange(0, last, max(1, n // 2)), last)
    places = np.column_stack([first, np.full(len(first), min(n, len(part)))])
    paths = np.empty((len(first), 3), np.int64)
    _paths(query(laid.source), query, places, free, paths)
    k = int(np.argmin(paths[:, 2]))
    return int(first[k] + paths[k, 0]), int(first[k] + paths[k, 1]), int(paths[k, 2])


def warm(distance: Distance) -> None:
    """Load the kernels, by a search of one frame in one frame."""
    frame, one = np.zeros((1, distance.columns), np.float32), np.ones(1, np.int64)
    search([Example("", 1, frame)], [(0, [frame])], Limits(one, one, 1, one, False), distance)
