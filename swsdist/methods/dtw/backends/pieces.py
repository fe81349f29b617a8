"""Documents in pieces.

A long document is cut. Since a path of bounded slope takes at most twice the query's frames, and a candidate depends on the
costs within its window, a piece that begins 2 N frames early and ends a window late gives exactly the candidates of the whole
document. With a recurrence that has no such bound a document stays whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


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
