"""Exact search of every query in every document, in bounded memory. (With a recurrence of unbounded paths, complete documents
are in memory.)

The result depends only on the frames, not on backend, lanes, cuts, threads, order of documents, or matrix product.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import methods as codes
from swsdist.kernels.distances.interface import create as create_distance
from swsdist.kernels.recurrences.interface import create as create_recurrence
from swsdist.methods.dtw.backends.create import create
from swsdist.methods.dtw.backends.interface import Backend, Work
from swsdist.methods.dtw.backends.pieces import Piece, cut
from swsdist.methods.dtw.matches import Matches, best_matches, joined, pruned
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.query.example import Example

#: Candidates are pruned to the best per query and document when this many have been added to twice the rest.
_PRUNE_AT = 400_000


def search(
    examples: list[Example],
    documents: Iterable[tuple[int, Iterable[NDArray[np.float32]]]],
    most: NDArray[np.int64],
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


def run(backend: Backend, documents: Iterable[tuple[int, Iterable[NDArray[np.float32]]]], work: Work) -> Matches:
    """Search documents with a backend."""
    candidates: list[NDArray[np.int64]] = []
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


def _pieces(documents: Iterable[tuple[int, Iterable[NDArray[np.float32]]]], work: Work) -> Iterator[Piece]:
    recurrence, settings = work.recurrence, work.settings
    reach = work.reach(max(len(example.frames) for example in work.examples))
    before = recurrence.whole_grid(reach or 0)
    size = None if reach is None else recurrence.whole_grid(max(settings.piece, 4 * before))
    longest = recurrence.most_frames
    for index, blocks in documents:
        for piece in cut(index, blocks, size, before, settings.window):
            if longest is not None and len(piece.frames) > longest:
                raise codes.DOCUMENT_TOO_LONG(
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
