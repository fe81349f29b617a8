"""Interface of the backends of the exact search, and the pieces of documents that they search.

A path of bounded slope spans at most twice the query's frames, and a candidate depends on the costs within its window.
A piece that begins 2 N frames early and ends a window late therefore yields exactly the candidates of the complete
document. With an unbounded recurrence, documents are not cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Ints, Singles
from swsdist.kernels.arithmetic import StateType
from swsdist.kernels.products import Element, aligned
from swsdist.kernels.recurrences.interface import Recurrence
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.query.example import Example


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
    frames: Singles


def cut(document: int, blocks: Iterable[Singles], piece: int | None, before: int, after: int) -> Iterator[Piece]:
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
    buffered: list[Singles] = []
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


class Work(NamedTuple):
    """A search: examples, recurrence, limits, settings.

    Attributes:
        examples: at least one, of at least one frame each, prepared as queries.
        recurrence: that the settings name.
        most: int64 (documents,), candidates kept per example and document: those of least cost, earlier ends first.
        settings: of the engine.
    """

    examples: list[Example]
    recurrence: Recurrence
    most: Ints
    settings: Settings

    def reach(self, query_frames: int) -> int | None:
        """Frames that a query needs before the first reported frame; None: all."""
        if self.recurrence.reach is None or self.settings.row_range:
            return None
        return self.recurrence.reach(query_frames) + self.settings.window

    def by_state(self) -> list[list[int]]:
        """Indices of the examples, shortest first, a list for each state type of the curve."""
        packed: dict[StateType, list[int]] = {}
        for k in sorted(range(len(self.examples)), key=lambda k: len(self.examples[k].frames)):
            packed.setdefault(self.recurrence.packing(len(self.examples[k].frames)).dtype, []).append(k)
        return list(packed.values())

    def is_long(self, frames: int) -> bool:
        """Whether a document of this length needs the wider state."""
        return self.recurrence.int32_frames is not None and frames > self.recurrence.int32_frames


class Scanned(NamedTuple):
    """Candidates since the last result of a backend.

    Attributes:
        rows: int64 (candidates, 5) each, columns as in `kernels.scan`.
        used: frames of pieces that were laid out.
        laid: frames that they took, padding included.
    """

    rows: list[Ints]
    used: int
    laid: int


class Backend(Protocol):
    """An implementation of the exact search, created from the work: ``backend(work) -> Backend``.

    In a piece it finds the ends of paths, `first <= end < stop`, whose cost is the least within the window on either
    side (of equal costs the earliest). It yields at least the best `most` of each example and document, and the caller
    keeps these. Rows may come in any order, and none twice. `swsdist.testing.conformance.check_backend` compares it
    with `int16`.
    """

    def scan(self, pieces: Iterable[Piece]) -> Iterator[Scanned]:
        """Search pieces of documents, as they come; memory is bounded, however many there are.

        Raises:
            UserError: its memory does not suffice.
        """


class Room:
    """Arrays by name and type, which grow on demand."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, type[np.generic]], NDArray[np.generic]] = {}

    def __call__(self, name: str, elements: int, dtype: type[Element]) -> NDArray[Element]:
        """The array of that name, flat, of at least so many elements; begins on a cache line."""
        array = cast("NDArray[Element] | None", self._held.get((name, dtype)))
        if array is None or array.size < elements:
            array = aligned(elements, dtype)
            self._held[name, dtype] = array
        return array
