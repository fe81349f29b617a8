"""What a recurrence is to the search: the functions of its inner loop, its plain twin, and what must be known of its state.

The inner loop's functions run on sixteen lanes (`kernels.vectors`) and are compiled for each type of state; `trace` is the
same recurrence over one whole table of distances, in the simplest layout there is, with the step into every cell: it draws
curves and paths on demand, and the vectors are held against it. Both call the recurrence's one `cell`.
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
        packing: of a query's length, how the curve's cost and frames share an integer.
        advance, restart: plain functions, see `kernels.recurrences.bounded_slope`.
        columns: rows of the state that is kept, of sixteen lanes each, for a query of n frames.
        reach: for a query of n frames, how many document frames a result depends on; None: on all that came before.
        trace: plain function, see `kernels.recurrences.tracing`.
        trace_path: of a table that holds the document frames of one path, from its first to its last, the steps of that
            path; None: as `trace` has them.
        option: a number that `advance`, `restart` and `trace` are given.
        grid: a document is cut at multiples of this only.
        int32_frames: the state is int32 for documents of at most so many frames, and int64 for longer ones; None: it is
            of the curve's type.
        most_frames: of a document that can be searched; None: any number.
        neighbours: plain function of S(i-1, t-1), S(i-1, t-2), S(i-2, t-1), d(i, t) and d(i-1, t), distances shifted, that is
            S(i, t), where it depends on nothing else: with S(-1, t) = 0, S(-2, t) infinite, and the packed state of the
            query's last frame as the curve. A GPU's thread then keeps sixteen query frames in registers. None: it runs
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
        """Elements of the columns."""
        return self.columns(query_frames) * WIDTH

    def state(self, curve: StateType, wide: bool) -> StateType:
        """dtype of the columns, for a dtype of the curve; `wide`: for documents longer than `int32_frames`."""
        if self.int32_frames is None:
            return curve
        return np.int64 if wide else np.int32

    def scanner(self, state: StateType, curve: StateType, streams: int) -> Scan:
        """The compiled inner loop."""
        # mypy takes a class for one that cannot be hashed
        return scanner(self.advance, self.restart, state, curve, streams)  # type: ignore[arg-type]

    def whole_grid(self, frames: int) -> int:
        """The least multiple of `grid` that is not below a number of frames."""
        return -(-frames // self.grid) * self.grid
