"""Recurrences by name: what the engine must know of each.

A new one is a file in `swsdist.kernels` with its `cell`, `advance`, `restart` and packing, and a line here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from swsdist.kernels import bounded_slope
from swsdist.kernels.packing import Packing, packing
from swsdist.kernels.scan import scanner
from swsdist.kernels.vectors import WIDTH


class Pattern(NamedTuple):
    """A recurrence.

    Attributes:
        packing: of a query's length, how the curve's cost and frames share an integer.
        advance, restart: plain functions, see `kernels.bounded_slope`.
        columns: elements of the state that is kept, of sixteen lanes each, for a query of n frames.
        state: dtype of that state, for a dtype of the curve.
        reach: a result depends on at most this many times the query's frames; None: on all that came before.
    """

    packing: Callable[[int], Packing]
    advance: Any
    restart: Any
    columns: Callable[[int], int]
    state: Callable[[Any], Any]
    reach: int | None

    def elements(self, query_frames: int) -> int:
        """Elements of the columns."""
        return self.columns(query_frames) * WIDTH

    def scanner(self, curve: Any, streams: int) -> Any:
        """The compiled inner loop."""
        return scanner(self.advance, self.restart, self.state(curve), curve, streams)


PATTERNS = {
    "bounded-slope": Pattern(
        packing, bounded_slope.advance, bounded_slope.restart, lambda n: 3 * (n + 2), lambda curve: curve, 2
    ),
}
