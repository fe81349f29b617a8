"""Exact search of every query in every document.

The result depends only on the frames, not on backend, lanes, cuts, threads, order of documents, or matrix product.
Memory is bounded, except that a recurrence of unbounded paths holds complete documents.

**Halves** of queries (`swsdist.methods.query.example`) that match in one document are joined. Two halves are joined if
they do not overlap and at most `gap` frames lie between them, in either order. The joined match lasts from the first
frame to the last, and its cost is the sum of both. Of the joined matches of a query that end at the same frame, the
cheapest is kept, of equals the shortest; then as many of a document as of any example. All are integers of one
document, so candidates do not depend on how the work is split.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Bools, Ints, Singles
from swsdist.core.codes import families
from swsdist.kernels.distances.interface import create as create_distance
from swsdist.kernels.recurrences.interface import create as create_recurrence
from swsdist.kernels.scan import COLUMNS
from swsdist.methods.dtw.backends.create import create
from swsdist.methods.dtw.backends.interface import Backend, Piece, Work, cut
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.query.example import Example, Parts


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
    end_frame: Ints
    frames: NDArray[np.int32]
    cost: Ints
    fill: float
    saturated: int = 0


def pruned(rows: Ints, most: Ints) -> Ints:
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


def first_of_equal(rows: Ints, columns: int) -> Bools:
    """Whether each sorted row differs from the one before in its first columns: bool (rows,)."""
    new = np.ones(len(rows), bool)
    np.any(rows[1:, :columns] != rows[:-1, :columns], axis=1, out=new[1:])
    return new


def joined(matches: list[Ints]) -> Ints:
    """Concatenate the rows of all parts, int64 (candidates, 5) each, and empty the list."""
    rows = np.concatenate(matches) if matches else np.empty((0, COLUMNS), np.int64)
    matches.clear()
    return rows


def best_matches(matches: list[Ints], most: Ints, fill: float) -> Matches:
    """The best candidates.

    Args:
        matches: rows as for `pruned`, in parts; the list is emptied, to save memory.
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


#: Candidates are pruned to the best per query and document when this many have been added to twice the rest.
_PRUNE_AT = 400_000


def search(
    examples: list[Example],
    documents: Iterable[tuple[int, Iterable[Singles]]],
    most: Ints,
    settings: Settings,
) -> Matches:
    """Find the candidates of every example in every document.

    Args:
        examples: at least one frame each, prepared as queries.
        documents: (index, consecutive blocks of prepared frames float32 (frames, columns)).
        most: int64 (documents,), candidates kept per example and document: those of least cost, earlier ends first.
        settings: of the search.

    Raises:
        UserError: an example or a document is too long for the recurrence; the library's product is inexact; the GPU
            does not exist, or lacks memory.
        ConfigError: the recurrence or backend is unknown, or the recurrence does not have an option.
    """
    if not examples:
        return best_matches([], most, 1.0)
    work = Work(examples, create_recurrence(settings.recurrence, settings.options), most, settings)
    return run(create(settings.backend, work), documents, work)


def run(backend: Backend, documents: Iterable[tuple[int, Iterable[Singles]]], work: Work) -> Matches:
    """Search documents with a backend."""
    candidates: list[Ints] = []
    rows = used = laid = 0
    prune_at = _PRUNE_AT
    for scanned in backend.scan(_pieces(documents, work)):
        used += scanned.used
        laid += scanned.laid
        candidates += scanned.rows
        rows += sum(map(len, scanned.rows))
        if rows > prune_at:
            candidates = [pruned(joined(candidates), work.most)]
            rows = len(candidates[0])
            prune_at = 2 * rows + _PRUNE_AT
    return best_matches(candidates, work.most, used / laid if laid else 1.0)


def _pieces(documents: Iterable[tuple[int, Iterable[Singles]]], work: Work) -> Iterator[Piece]:
    recurrence, settings = work.recurrence, work.settings
    reach = work.reach(max(len(example.frames) for example in work.examples))
    before = recurrence.whole_grid(reach or 0)
    size = None if reach is None else recurrence.whole_grid(max(settings.piece, 4 * before))
    longest = recurrence.most_frames
    for index, blocks in documents:
        for piece in cut(index, blocks, size, before, settings.window):
            if longest is not None and len(piece.frames) > longest:
                raise families.TOO_LARGE(
                    "a document of {frames} frames is too long for the recurrence {recurrence}",
                    (
                        "cut it into documents of at most {longest} frames, or search with another recurrence "
                        "(search.recurrence)"
                    ),
                    where=f"document {index}",
                    frames=len(piece.frames),
                    recurrence=settings.recurrence,
                    longest=longest,
                )
            yield piece


def warm(settings: Settings | None = None) -> None:
    """Load the kernels of a search, by a search of one frame in one frame."""
    chosen = settings or Settings(create_distance("cosine", 1), 1, 1, 1)
    frame = np.zeros((1, chosen.distance.columns), np.float32)
    search([Example("", 1, frame)], [(0, [frame])], np.ones(1, np.int64), chosen)


def halves_joined(matches: Matches, parts: Parts, most: Ints) -> Matches:
    """Join the candidates of halves: candidates of `parts.results`.

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
