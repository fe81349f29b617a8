"""Interface of the backends of the exact search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.arithmetic import StateType
from swsdist.kernels.recurrences.interface import Recurrence
from swsdist.methods.dtw.backends.pieces import Piece
from swsdist.methods.dtw.settings import Settings
from swsdist.methods.query.example import Example


class Work(NamedTuple):
    """A search: examples, recurrence, limits, settings.

    Attributes:
        examples: at least one, of at least one frame each, prepared as queries.
        recurrence: that the settings name.
        most: int64 (documents,), candidates kept per example and document: those of least cost, earlier ends first.
        settings: how.
    """

    examples: list[Example]
    recurrence: Recurrence
    most: NDArray[np.int64]
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

    rows: list[NDArray[np.int64]]
    used: int
    laid: int


class Backend(Protocol):
    """An implementation of the exact search, made of the work: ``backend(work) -> Backend``.

    What it finds in a piece are the ends of paths whose cost is the least within the window on either side (earlier ends first
    where costs are equal), `first <= end < stop`; of each example and document at least the best `most`: whoever calls keeps
    these. Rows may come in any order, and none twice. `swsdist.testing.conformance.check_backend` holds it against `int16`.
    """

    def scan(self, pieces: Iterable[Piece]) -> Iterator[Scanned]:
        """Search pieces of documents, as they come; memory is bounded, however many there are.

        Raises:
            UserError: its memory does not suffice.
        """
