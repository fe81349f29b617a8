"""The search of queries in documents: exact, and bounded in memory whatever the documents' number and length.

For each batch of pieces and each query: distances by one matrix product a block, the recurrence across lanes, candidates
from the last row. What is found depends on nothing but the frames: not on lanes, blocks, cuts, the order of documents or
the BLAS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.bounded_slope import State
from swsdist.kernels.fixed_point import DISTANCES
from swsdist.kernels.peaks import local_minima
from swsdist.search.lanes import BLOCK, Batch, Piece, batches, cut

#: Found candidates are pruned to the best per query and document whenever so many have come together.
_PRUNE_AT = 2_000_000


class Example(NamedTuple):
    """One spoken example of a query: prepared frames, float32 (query frames, dimension)."""

    query_id: str
    example: int
    frames: NDArray[np.float32]


class Found(NamedTuple):
    """Candidates as parallel arrays, ordered by query, document, end frame.

    Attributes:
        query: int32, index of the example.
        document: int32, index of the document.
        end_frame: int64, last document frame of the path.
        frames: int32, document frames of the path.
        cost: int64, sum of the local distances over the query's frames.
    """

    query: NDArray[np.int32]
    document: NDArray[np.int32]
    end_frame: NDArray[np.int64]
    frames: NDArray[np.int32]
    cost: NDArray[np.int64]


class Settings(NamedTuple):
    """What the engine needs to know.

    Attributes:
        distance: name in `kernels.fixed_point.DISTANCES`.
        window: frames on either side that a candidate must be the least of.
        lanes: pieces side by side.
        piece: frames a piece reports on; longer where queries are long, so that the overlap stays small.
    """

    distance: str
    window: int
    lanes: int
    piece: int


def search(
    examples: list[Example],
    documents: Iterable[tuple[int, Iterable[NDArray[np.float32]]]],
    most: NDArray[np.int64],
    settings: Settings,
) -> Found:
    """Candidates of every example in every document.

    Args:
        examples: at least one frame each, all of the same dimension.
        documents: (index, consecutive blocks of prepared frames float32 (frames, dimension)).
        most: int64 (documents,), candidates kept per example and document: those of least cost, earlier ends first.
        settings: how.
    """
    if not examples:
        return _gathered([], most)
    longest = max(len(example.frames) for example in examples)
    before, after = 2 * longest + settings.window, settings.window
    piece = max(settings.piece, 4 * before)
    dimension = examples[0].frames.shape[1]
    pieces = (part for index, blocks in documents for part in cut(index, blocks, piece, before, after))
    order = sorted(range(len(examples)), key=lambda k: len(examples[k].frames))
    found: list[NDArray[np.int64]] = []
    held = 0
    for batch in batches(pieces, settings.lanes, dimension):
        scanner = _Scanner(batch, settings)
        for k in order:
            rows = scanner.scan(k, examples[k].frames)
            found.append(rows)
            held += len(rows)
        if held > _PRUNE_AT:
            kept = _pruned(np.concatenate(found), most)
            found, held = [kept], 0
    return _gathered(found, most)


class _Scanner:
    """Scratch memory for one batch; queries of equal length share it."""

    def __init__(self, batch: Batch, settings: Settings) -> None:
        self._batch = batch
        self._settings = settings
        self._lanes = len(batch.frames)
        self._distance = DISTANCES[settings.distance].from_dots
        self._length = 0
        pieces = batch.pieces + [Piece(0, 0, 0, 0, batch.blocks[0])] * (self._lanes - len(batch.pieces))
        self._document = np.array([piece.document for piece in pieces])
        self._offset = np.array([piece.offset for piece in pieces])

    def _resize(self, length: int) -> None:
        if length == self._length:
            return
        self._length = length
        self._dots = np.empty((length, BLOCK * self._lanes), np.float32)
        self._distances = np.empty((length, BLOCK, self._lanes), np.int32)
        self._state = State(length, self._lanes)
        self._curve = np.empty((len(self._batch.blocks) * BLOCK, self._lanes), self._state.packing.dtype)

    def scan(self, index: int, query: NDArray[np.float32]) -> NDArray[np.int64]:
        """Candidates of one query: int64 (candidates, 5) of query, document, end frame, frames, cost."""
        batch, settings = self._batch, self._settings
        self._resize(len(query))
        self._state.restart()
        flat = self._distances.reshape(-1)
        for k, block in enumerate(batch.blocks):
            np.matmul(query, block, out=self._dots)
            self._distance(self._dots.reshape(-1), flat)
            self._state.advance(self._distances, self._curve[k * BLOCK : (k + 1) * BLOCK])
        packing = self._state.packing
        bits = packing.frame_bits
        place = local_minima(
            self._curve, bits, batch.first, batch.stop, batch.frames, settings.window, packing.infinity
        )
        lane, frame = place[:, 0], place[:, 1]
        state = self._curve[frame, lane].astype(np.int64)
        rows = np.empty((len(place), 5), np.int64)
        rows[:, 0] = index
        rows[:, 1] = self._document[lane]
        rows[:, 2] = self._offset[lane] + frame
        rows[:, 3] = state & ((1 << bits) - 1)
        rows[:, 4] = state >> bits
        return rows


def _pruned(rows: NDArray[np.int64], most: NDArray[np.int64]) -> NDArray[np.int64]:
    """The best `most[document]` of each query and document; does not depend on the order of rows."""
    if len(rows) == 0:
        return rows
    rows = rows[np.lexsort((rows[:, 2], rows[:, 4], rows[:, 1], rows[:, 0]))]
    new = np.empty(len(rows), bool)
    new[0] = True
    np.any(rows[1:, :2] != rows[:-1, :2], axis=1, out=new[1:])
    starts = np.flatnonzero(new)
    rank = np.arange(len(rows)) - np.repeat(starts, np.diff(np.append(starts, len(rows))))
    return rows[rank < most[rows[:, 1]]]


def _gathered(found: list[NDArray[np.int64]], most: NDArray[np.int64]) -> Found:
    rows = _pruned(np.concatenate(found) if found else np.empty((0, 5), np.int64), most)
    rows = rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
    return Found(
        rows[:, 0].astype(np.int32),
        rows[:, 1].astype(np.int32),
        rows[:, 2].copy(),
        rows[:, 3].astype(np.int32),
        rows[:, 4].copy(),
    )


def whole(frames: NDArray[np.float32]) -> Iterator[NDArray[np.float32]]:
    """A document that is in memory, as blocks."""
    yield frames
