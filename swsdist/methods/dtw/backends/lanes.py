"""Pieces of documents side by side in sixteen lanes, those of similar length next to each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.products import STRIDE, interleave
from swsdist.kernels.vectors import WIDTH
from swsdist.methods.dtw.backends.pieces import Piece
from swsdist.methods.dtw.backends.room import Room

#: Pieces wait for others of their length until they are so large together: one batch of long ones, several of short ones.
_WAITING_BYTES = 16_000_000

#: And are searched with empty lanes beside them rather than wait longer than this.
_MOST_BYTES = 64_000_000


class LaneBatch:
    """At most sixteen pieces in lanes. Padding is zero frames, which end no candidate.

    Attributes:
        pieces: by length, longest first.
        frames: of the longest, and on to a multiple of `STRIDE`.
        numbers: int64 (16, 5), of each lane's piece: frames, first, stop, document, offset; zeros for an empty lane.
    """

    def __init__(self, pieces: list[Piece], order: NDArray[np.int64]) -> None:
        self.pieces = pieces
        self.frames = -(-len(pieces[0].frames) // STRIDE) * STRIDE
        self.numbers = np.zeros((WIDTH, 5), np.int64)
        self.numbers[: len(pieces)] = [(len(p.frames), p.first, p.stop, p.document, p.offset) for p in pieces]
        self._order = order

    def segment(self, start: int, stop: int, room: Room) -> NDArray[np.int16]:
        """Frames start <= t < stop of all lanes, int16 (frames, pairs, 16, 2), flat: see `kernels.products`."""
        parts = [piece.frames[start:stop] for piece in self.pieces]
        size = (stop - start) * len(self._order) * WIDTH
        out = room("segment", size, np.int16)[:size]
        interleave((*parts, *[parts[0][:0]] * (WIDTH - len(parts))), self._order, out)
        return out


def batches(pieces: Iterable[Piece], lanes: int, order: NDArray[np.int64]) -> Iterator[LaneBatch]:
    """Lay pieces into lanes, sorted by length among those that wait together, so that little is padding.

    Args:
        pieces: none of them empty.
        lanes: pieces side by side; more than 16 are taken in turns.
        order: columns of a frame in pairs, see `kernels.products.interleave`.
    """
    lanes = min(lanes, WIDTH)
    waiting: list[Piece] = []
    held = 0
    for piece in pieces:
        waiting.append(piece)
        held += piece.frames.nbytes
        full = len(waiting) % lanes == 0 and held >= _WAITING_BYTES
        if full or len(waiting) == 64 * lanes or held >= _MOST_BYTES:
            yield from _laid_out(waiting, lanes, order)
            waiting, held = [], 0
    yield from _laid_out(waiting, lanes, order)


def _laid_out(pieces: list[Piece], lanes: int, order: NDArray[np.int64]) -> Iterator[LaneBatch]:
    ordered = sorted(pieces, key=lambda p: -len(p.frames))
    for k in range(0, len(ordered), lanes):
        yield LaneBatch(ordered[k : k + lanes], order)
