"""The search of queries in documents: exact, and bounded in memory whatever the documents' number and length.

For each batch of pieces and each query: distances by one matrix product a block, the recurrence across lanes, candidates
from the last row. What is found depends on nothing but the frames: not on lanes, blocks, cuts, the order of documents or
the BLAS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.bounded_slope import State
from swsdist.kernels.fixed_point import DISTANCES
from swsdist.kernels.peaks import local_minima
from swsdist.search.example import Example
from swsdist.search.lanes import BLOCK, Batch, Piece, batches, cut

#: Found candidates are pruned to the best per query and document whenever so many have come together.
_PRUNE_AT = 400_000

#: Query frames that meet a block of document frames in one matrix product: its result (256 x 1024 float32) stays in cache.
_GROUP_ROWS = 256


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
    groups = _groups(examples)
    found: list[NDArray[np.int64]] = []
    held = 0
    for batch in batches(pieces, settings.lanes, dimension):
        scanner = _Scanner(batch, settings)
        for group in groups:
            for rows in scanner.scan(group, examples):
                found.append(rows)
                held += len(rows)
        if held > _PRUNE_AT:
            kept = _pruned(np.concatenate(found), most)
            found, held = [kept], 0
    return _gathered(found, most)


def warm() -> None:
    """Load the kernels that every search uses, by a search of one frame in one frame."""
    frame = np.ones((1, 1), np.float32)
    search([Example("", 1, frame)], [(0, [frame])], np.ones(1, np.int64), Settings("cosine", 1, 1, 1))


def _groups(examples: list[Example]) -> list[list[int]]:
    """Examples that share matrix products: of similar length, and together of about _GROUP_ROWS frames."""
    groups: list[list[int]] = []
    rows = _GROUP_ROWS
    for k in sorted(range(len(examples)), key=lambda k: len(examples[k].frames)):
        length = len(examples[k].frames)
        if rows + length > _GROUP_ROWS:
            groups.append([])
            rows = 0
        groups[-1].append(k)
        rows += length
    return groups


class _Scanner:
    """One batch: what its lanes are, and the search of groups of queries in it."""

    def __init__(self, batch: Batch, settings: Settings) -> None:
        self._batch = batch
        self._settings = settings
        self._lanes = len(batch.frames)
        self._distance = DISTANCES[settings.distance].from_dots
        pieces = batch.pieces + [Piece(0, 0, 0, 0, batch.blocks[0])] * (self._lanes - len(batch.pieces))
        self._document = np.array([piece.document for piece in pieces])
        self._offset = np.array([piece.offset for piece in pieces])

    def scan(self, group: list[int], examples: list[Example]) -> Iterator[NDArray[np.int64]]:
        """Candidates of each example of a group: int64 (candidates, 5) of query, document, end frame, frames, cost.

        A block of frames is fetched once for the whole group: all its queries' frames meet it in one product.
        """
        batch, lanes = self._batch, self._lanes
        queries = np.concatenate([examples[k].frames for k in group])
        bounds = np.cumsum([0, *(len(examples[k].frames) for k in group)])
        dots = np.empty((len(queries), BLOCK * lanes), np.float32)
        distances = np.empty(int(np.diff(bounds).max()) * BLOCK * lanes, np.int32)
        states = [State(len(examples[k].frames), lanes) for k in group]
        curves = [np.empty((len(batch.blocks) * BLOCK, lanes), state.packing.dtype) for state in states]
        for k, block in enumerate(batch.blocks):
            np.matmul(queries, block, out=dots)
            for j, state in enumerate(states):
                mine = dots[bounds[j] : bounds[j + 1]].reshape(-1)
                flat = distances[: len(mine)]
                self._distance(mine, flat)
                state.advance(flat.reshape(-1, BLOCK, lanes), curves[j][k * BLOCK : (k + 1) * BLOCK])
        for index, state, curve in zip(group, states, curves, strict=True):
            yield self._candidates(index, state, curve)

    def _candidates(self, index: int, state: State, curve: NDArray[Any]) -> NDArray[np.int64]:
        batch, packing = self._batch, state.packing
        bits, window = packing.frame_bits, self._settings.window
        place = local_minima(curve, bits, batch.first, batch.stop, batch.frames, window, packing.infinity)
        lane, frame = place[:, 0], place[:, 1]
        packed = curve[frame, lane].astype(np.int64)
        rows = np.empty((len(place), 5), np.int64)
        rows[:, 0] = index
        rows[:, 1] = self._document[lane]
        rows[:, 2] = self._offset[lane] + frame
        rows[:, 3] = packed & ((1 << bits) - 1)
        rows[:, 4] = packed >> bits
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
