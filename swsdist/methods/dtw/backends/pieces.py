"""Cut documents into pieces.

A path of bounded slope spans at most twice the query's frames, and a candidate depends on the costs within its window.
A piece that begins 2 N frames early and ends a window late therefore yields exactly the candidates of the complete
document. With an unbounded recurrence, documents are not cut.
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
        offset: the document frame where `frames` begins.
        first, stop: range of the piece's frames whose candidates it reports.
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
        piece: frames that a piece reports; None: one piece with the complete document.
        before, after: additional frames on either side.
    """
    if piece is None:
        parts = list(blocks)
        if parts:
            frames = np.concatenate(parts) if len(parts) > 1 else parts[0]
            yield Piece(document, 0, 0, len(frames), frames)
        return
    buffered: list[NDArray[np.float32]] = []
    have = offset = 0  # buffered frames, and the document frame where they begin
    reported = 0
    source = iter(blocks)
    more = True
    while more:
        while have < reported - offset + piece + after:
            block = next(source, None)
            if block is None:
                more = False
                break
            buffered.append(block)
            have += len(block)
        if not buffered:
            return
        frames = np.concatenate(buffered) if len(buffered) != 1 else buffered[0]
        length = reported - offset + piece + after if more else have
        stop = reported + piece if more else offset + have
        while not more and stop - reported > piece:  # more than one piece remains
            end = reported + piece
            yield Piece(document, offset, reported - offset, end - offset, frames[: end - offset + after])
            drop = max(0, end - before - offset)
            frames, offset, reported = frames[drop:], offset + drop, end
            length = len(frames)
        if stop > reported:
            yield Piece(document, offset, reported - offset, stop - offset, frames[:length])
        drop = max(0, stop - before - offset)
        buffered, have = [frames[drop:]], len(frames) - drop
        offset, reported = offset + drop, stop
