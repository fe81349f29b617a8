"""Documents side by side.

The recurrence runs over sixteen lanes, so pieces of documents of similar length are laid next to each other. A long document is
cut into pieces. Since a path of bounded slope takes at most twice the query's frames, and a candidate depends on the costs
within its window, a piece that begins 2 N frames early and ends a window late gives exactly the candidates of the whole
document. With a recurrence that has no such bound a document stays whole, and is laid out and searched a segment at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.products import STRIDE, interleave
from swsdist.kernels.vectors import WIDTH

#: Pieces wait for others of their length until they are so large together: one batch of long ones, several of short ones.
_WAITING_BYTES = 16_000_000

#: And are searched with empty lanes beside them rather than wait longer than this.
_MOST_BYTES = 64_000_000


class Piece(NamedTuple):
    """A stretch of a document.

    Attributes:
        document: index of the document.
        offset: document frame that `frames` begins with.
        first, stop: frames of the piece whose candidates are this piece's to report.
        frames: float32 (frames, columns), prepared.
    """

    document: int
    offset: int
    first: int
    stop: int
    frames: NDArray[np.float32]


class Batch:
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
        for lane, piece in enumerate(pieces):
            self.numbers[lane] = len(piece.frames), piece.first, piece.stop, piece.document, piece.offset
        self._order = order

    def segment(self, start: int, stop: int) -> NDArray[np.int16]:
        """Frames start <= t < stop of all lanes, int16 (frames, pairs, 16, 2), flat: see `kernels.products`."""
        parts = [piece.frames[start:stop] for piece in self.pieces]
        lengths = np.zeros(WIDTH, np.int64)
        lengths[: len(parts)] = [len(part) for part in parts]
        together = np.concatenate(parts) if len(parts) > 1 else np.ascontiguousarray(parts[0])
        return interleave(together, lengths, self._order, stop - start)


def cut(
    document: int, blocks: Iterable[NDArray[np.float32]], piece: int | None, before: int, after: int
) -> Iterator[Piece]:
    """Cut a document, given as consecutive blocks of prepared frames, into pieces.

    Args:
        document: its index.
        blocks: float32 (frames, columns) each.
        piece: frames that a piece reports on; None for the whole document in one.
        before, after: frames it also takes in on either side.
    """
    if piece is None:
        whole = list(blocks)
        if whole:
            frames = np.concatenate(whole) if len(whole) > 1 else whole[0]
            yield Piece(document, 0, 0, len(frames), frames)
        return
    held: list[NDArray[np.float32]] = []
    have = offset = 0  # frames held, and document frame that they begin with
    reported = 0
    source = iter(blocks)
    more = True
    while more:
        while have < reported - offset + piece + after:
            block = next(source, None)
            if block is None:
                more = False
                break
            held.append(block)
            have += len(block)
        if not held:
            return
        frames = np.concatenate(held) if len(held) != 1 else held[0]
        length = reported - offset + piece + after if more else have
        stop = reported + piece if more else offset + have
        while not more and stop - reported > piece:  # the rest is more than one piece
            end = reported + piece
            yield Piece(document, offset, reported - offset, end - offset, frames[: end - offset + after])
            drop = max(0, end - before - offset)
            frames, offset, reported = frames[drop:], offset + drop, end
            length = len(frames)
        if stop > reported:
            yield Piece(document, offset, reported - offset, stop - offset, frames[:length])
        drop = max(0, stop - before - offset)
        held, have = [frames[drop:]], len(frames) - drop
        offset, reported = offset + drop, stop


def batches(pieces: Iterable[Piece], lanes: int, order: NDArray[np.int64]) -> Iterator[Batch]:
    """Lay pieces into lanes, sorted by length among those that wait together, so that little is padding.

    Args:
        pieces: none of them empty.
        lanes: pieces side by side; more than 16 are taken in turns.
        order: columns of a frame in pairs, see `kernels.products.interleave`.
    """
    lanes = min(lanes, WIDTH)
    waiting: list[Piece] = []
    held = 0
    for one in pieces:
        waiting.append(one)
        held += one.frames.nbytes
        full = len(waiting) % lanes == 0 and held >= _WAITING_BYTES
        if full or len(waiting) == 64 * lanes or held >= _MOST_BYTES:
            yield from _laid_out(waiting, lanes, order)
            waiting, held = [], 0
    yield from _laid_out(waiting, lanes, order)


def _laid_out(pieces: list[Piece], lanes: int, order: NDArray[np.int64]) -> Iterator[Batch]:
    ordered = sorted(pieces, key=lambda p: -len(p.frames))
    for k in range(0, len(ordered), lanes):
        yield Batch(ordered[k : k + lanes], order)
