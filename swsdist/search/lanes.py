"""Documents side by side.

The recurrence runs over lanes, so pieces of documents of similar length are laid next to each other: frame t of `lanes`
pieces is one stretch of memory. A long document is cut into pieces. Since a path takes at most twice the query's frames
(bounded slope), and a candidate depends on the costs within its window, a piece that begins 2 N frames early and ends a
window late gives exactly the candidates of the whole document.

A batch is laid out in blocks of a few frames, each (dimension, frames x lanes), the right-hand side of one matrix product.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Document frames in a block. With 64 lanes a block's product for 64 query frames is 256 kB and stays in cache.
BLOCK = 16

#: Pieces wait for others of their length until they are so large together: one batch of long ones, several of short ones.
_WAITING_BYTES = 16_000_000


class Piece(NamedTuple):
    """A stretch of a document.

    Attributes:
        document: index of the document.
        offset: document frame that `frames` begins with.
        first, stop: frames of the piece whose candidates are this piece's to report.
        frames: float32 (frames, dimension), prepared.
    """

    document: int
    offset: int
    first: int
    stop: int
    frames: NDArray[np.float32]


class Batch(NamedTuple):
    """Pieces in lanes. Padding is zero frames, which lie at distance 1 from everything and end no candidate.

    Attributes:
        pieces: at most as many as there are lanes.
        blocks: float32 (blocks, dimension, BLOCK * lanes).
        frames, first, stop: int64 (lanes,), of each piece; all 0 for an empty lane.
    """

    pieces: list[Piece]
    blocks: NDArray[np.float32]
    frames: NDArray[np.int64]
    first: NDArray[np.int64]
    stop: NDArray[np.int64]


def cut(document: int, blocks: Iterable[NDArray[np.float32]], piece: int, before: int, after: int) -> Iterator[Piece]:
    """Cut a document, given as consecutive blocks of prepared frames, into pieces.

    Args:
        document: its index.
        blocks: float32 (frames, dimension) each.
        piece: frames that a piece reports on.
        before, after: frames it also takes in on either side.
    """
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


def batches(pieces: Iterable[Piece], lanes: int, dimension: int) -> Iterator[Batch]:
    """Lay pieces into lanes, sorted by length among those that wait together, so that little is padding."""
    waiting: list[Piece] = []
    held = 0
    for one in pieces:
        waiting.append(one)
        held += one.frames.nbytes
        if len(waiting) == 16 * lanes or (len(waiting) % lanes == 0 and held >= _WAITING_BYTES):
            yield from _laid_out(waiting, lanes, dimension)
            waiting, held = [], 0
    yield from _laid_out(waiting, lanes, dimension)


def _laid_out(pieces: list[Piece], lanes: int, dimension: int) -> Iterator[Batch]:
    ordered = sorted(pieces, key=lambda p: -len(p.frames))
    for k in range(0, len(ordered), lanes):
        chosen = ordered[k : k + lanes]
        width = min(lanes, -(-len(chosen) // 16) * 16)  # the last batch is no wider than it needs to be
        count = -(-len(chosen[0].frames) // BLOCK)
        blocks = np.zeros((count, dimension, BLOCK, width), np.float32)
        numbers = np.zeros((3, width), np.int64)
        for lane, piece in enumerate(chosen):
            length = len(piece.frames)
            whole, rest = divmod(length, BLOCK)
            blocks[:whole, :, :, lane] = piece.frames[: whole * BLOCK].reshape(whole, BLOCK, dimension).swapaxes(1, 2)
            if rest:
                blocks[whole, :, :rest, lane] = piece.frames[whole * BLOCK :].T
            numbers[:, lane] = length, piece.first, piece.stop
        yield Batch(chosen, blocks.reshape(count, dimension, BLOCK * width), *numbers)
