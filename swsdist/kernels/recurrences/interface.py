"""Interface of recurrences: functions of the inner loop, a plain version, and properties of the state.

The inner loop's functions run on sixteen lanes (`kernels.vectors`) and are compiled for each type of state. `trace` is
the same recurrence over a complete table of distances, in the simplest layout, with the step into every cell: it draws
curves and paths on demand, and serves as a reference for the vectors. Both call the recurrence's one `cell`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from swsdist.kernels.arithmetic import Value
from swsdist.kernels.recurrences.packing import Packing, StateType
from swsdist.kernels.recurrences.tracing import Twin
from swsdist.kernels.scan import Advance, Restart, Scan, scanner
from swsdist.kernels.vectors import WIDTH


class Recurrence(NamedTuple):
    """A recurrence, with its options.

    Attributes:
        packing: how the curve's cost and frames share an integer, for a query length.
        advance, restart: plain functions, see `kernels.recurrences.bounded_slope`.
        columns: rows of the stored state, of sixteen lanes each, for a query of n frames.
        reach: document frames that a result depends on, for a query of n frames; None: all earlier frames.
        trace: plain function, see `kernels.recurrences.tracing`.
        trace_path: the steps of a path, from a table with exactly its document frames; None: those of `trace`.
        option: a number passed to `advance`, `restart` and `trace`.
        grid: documents are cut at multiples of this only.
        int32_frames: the state is int32 for documents of at most this many frames, and int64 for longer ones; None: it
            has the curve's type.
        most_frames: the longest document that can be searched; None: unlimited.
        neighbours: plain function of S(i-1, t-1), S(i-1, t-2), S(i-2, t-1), d(i, t) and d(i-1, t), distances shifted,
            that
            returns S(i, t), if it depends on nothing else, with S(-1, t) = 0, S(-2, t) infinite, and the packed state
            of the
            query's last frame as the curve. A GPU thread then keeps sixteen query frames in registers. None: it runs
            `advance`, with the state in memory.
    """

    packing: Callable[[int], Packing]
    advance: Advance
    restart: Restart
    columns: Callable[[int], int]
    reach: Callable[[int], int] | None
    trace: Twin
    trace_path: Twin | None = None
    option: int = 0
    grid: int = 1
    int32_frames: int | None = None
    most_frames: int | None = None
    neighbours: Callable[..., Value] | None = None

    def elements(self, query_frames: int) -> int:
        """Number of elements of the columns."""
        return self.columns(query_frames) * WIDTH

    def state(self, curve: StateType, wide: bool) -> StateType:
        """dtype of the columns, for a dtype of the curve; `wide`: for documents longer than `int32_frames`."""
        if self.int32_frames is None:
            return curve
        return np.int64 if wide else np.int32

    def scanner(self, state: StateType, curve: StateType, streams: int, row_range: bool) -> Scan:
        """The compiled inner loop."""
        # mypy considers a class unhashable
        return scanner(self.advance, self.restart, state, curve, streams, row_range)  # type: ignore[arg-type]

    def whole_grid(self, frames: int) -> int:
        """The least multiple of `grid` that is not below a number of frames."""
        return -(-frames // self.grid) * self.grid
