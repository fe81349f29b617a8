"""Queries in tiles and documents in warps: the layout of a search in a GPU's memory.

`kernels.cuda.threads` defines the layouts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.arithmetic import State
from swsdist.kernels.cuda.threads import LANE, SPAN, TASK, WARP
from swsdist.kernels.vectors import WIDTH
from swsdist.methods.dtw.backends.interface import Work
from swsdist.methods.dtw.backends.pieces import Piece

#: Frames before a piece's first, if all are needed.
_ALL = 1 << 40


class QueryTiles(NamedTuple):
    """Queries with the same type of curve, the longest first, so that no long one remains at the end.

    Attributes:
        which: int64 (queries,), indices of the examples.
        tasks: int64 (queries, 6), see `kernels.cuda.threads.TASK`.
        tops: state (queries x 16,).
        tiles: float32 (tiles x columns x 16,).
        rows: the most rows of a query's tiles.
        elements: the most elements of the recurrence's columns for a query.
    """

    which: NDArray[np.int64]
    tasks: NDArray[np.int64]
    tops: State
    tiles: NDArray[np.float32]
    rows: int
    elements: int

    def arrays(self) -> tuple[NDArray[np.generic], ...]:
        """The arrays to copy to the GPU."""
        return self.tasks, self.tops, self.tiles


def queries(work: Work) -> list[QueryTiles]:
    """All examples, grouped by type of the curve."""
    return [_queries(chosen[::-1], work) for chosen in work.by_state()]


def _queries(chosen: list[int], work: Work) -> QueryTiles:
    recurrence = work.recurrence
    tasks, tops, tiles = np.zeros((len(chosen), len(TASK)), np.int64), [], []
    first = 0
    for row, k in enumerate(chosen):
        frames = work.examples[k].frames
        n, columns = frames.shape
        packing, reach = recurrence.packing(n), work.reach(n)
        count = -(-n // WIDTH)
        padding = count * WIDTH - n
        tasks[row] = first, count, packing.frame_bits, packing.infinity, _ALL if reach is None else reach, n
        first += count
        # Padding rows come before the query's first frame; every path begins in the last of them.
        tops.append([packing.infinity] * (padding - 1) + [0] * min(padding, 1) + [-1] * (WIDTH - padding))
        padded = np.concatenate([np.zeros((padding, columns), np.float32), frames])
        tiles.append(padded.reshape(count, WIDTH, columns).transpose(0, 2, 1).reshape(-1))
    elements = max(recurrence.elements(int(n)) for n in tasks[:, 5])
    above = cast("State", np.array(tops, recurrence.packing(int(tasks[0, 5])).dtype).reshape(-1))
    rows = int(tasks[:, 1].max()) * WIDTH
    return QueryTiles(np.array(chosen, np.int64), tasks, above, np.concatenate(tiles), rows, elements)


class WarpBatch:
    """Pieces in warps, by length.

    Attributes:
        pieces: of all warps, in order.
        lanes: int64 (warps x 32, 5), see `kernels.cuda.threads.LANE`; zeros for an empty one.
        warps: int64 (warps, 4), see `SPAN`.
        owner: int64 (warps x 32, 2): document, and the frame of it that a piece begins with.
        cells: frames x width of all warps.
        used: frames of all pieces.
    """

    def __init__(self, warps: list[list[Piece]], most: NDArray[np.int64]) -> None:
        self.pieces = [piece for warp in warps for piece in warp]
        self.lanes = np.zeros((len(warps) * WARP, len(LANE)), np.int64)
        self.warps = np.zeros((len(warps), len(SPAN)), np.int64)
        self.owner = np.zeros((len(warps) * WARP, 2), np.int64)
        begins = offset = 0
        for k, warp in enumerate(warps):
            self.warps[k] = offset, _height(warp), min(piece.first for piece in warp), len(warp)
            offset += _height(warp) * len(warp)
            for lane, piece in enumerate(warp, k * WARP):
                size = len(piece.frames)
                self.lanes[lane] = begins, size, piece.first, piece.stop, most[piece.document]
                self.owner[lane] = piece.document, piece.offset
                begins += size
        self.cells = offset
        self.used = begins

    def room(self, window: int) -> int:
        """Most candidates of a query in a lane."""
        reported = self.lanes[:, 3] - self.lanes[:, 2]
        return max(1, int(np.minimum(self.lanes[:, 4], -(-reported // (window + 1))).max()))


def batches(pieces: Iterable[Piece], columns: int, limit: int, most: NDArray[np.int64]) -> Iterator[WarpBatch]:
    """Group pieces into warps, and warps into batches.

    Args:
        pieces: non-empty.
        columns: of a frame.
        limit: the most bytes of a batch with several warps (`warp_size`).
        most: int64 (documents,), candidates kept per query and document.
    """
    waiting: list[Piece] = []
    held = 0
    for piece in pieces:
        waiting.append(piece)
        held += 2 * piece.frames.nbytes
        if held >= limit:
            yield from _batches(waiting, columns, limit, most)
            waiting, held = [], 0
    yield from _batches(waiting, columns, limit, most)


def warp_size(warp: Sequence[Piece], columns: int) -> int:
    """Bytes of a warp in GPU memory: the raw and the laid-out pieces."""
    frames = (sum(len(piece.frames) for piece in warp) + _height(warp) * len(warp)) * columns * 4
    return frames + 8 * (WARP * len(LANE) + len(SPAN))


def _batches(pieces: list[Piece], columns: int, limit: int, most: NDArray[np.int64]) -> Iterator[WarpBatch]:
    together: list[list[Piece]] = []
    held = 0
    for warp in _warps(pieces, columns, limit):
        size = warp_size(warp, columns)
        if together and held + size > limit:
            yield WarpBatch(together, most)
            together, held = [], 0
        together.append(warp)
        held += size
    if together:
        yield WarpBatch(together, most)


def _warps(pieces: list[Piece], columns: int, limit: int) -> Iterator[list[Piece]]:
    """Group pieces of similar length; fewer per warp if a full warp would exceed the limit."""
    ordered = sorted(pieces, key=lambda piece: (-len(piece.frames), -piece.first))
    while ordered:
        width = WARP
        while width > 1 and warp_size(ordered[:width], columns) > limit:
            width //= 2
        yield ordered[:width]
        ordered = ordered[width:]


def _height(warp: Sequence[Piece]) -> int:
    """Frames of a warp, a multiple of four; its pieces are sorted by length."""
    return -(-len(warp[0].frames) // 4) * 4
