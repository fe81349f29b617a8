"""Recurrences by name: what the engine must know of each.

A new one is a file in `swsdist.kernels` with its `cell`, `advance`, `restart` and packing, a plain twin in
`swsdist.kernels.recurrences.tracing`, a maker in `_MAKERS`, and its name in the config's `search.recurrence`.
docs/concepts/recurrences.md compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from swsdist.kernels.recurrences import asymmetric, averages, bounded_slope, nonsegmental, segmental
from swsdist.kernels.recurrences.packing import Packing, packing
from swsdist.kernels.scan import scanner
from swsdist.kernels.vectors import WIDTH


class Pattern(NamedTuple):
    """A recurrence.

    Attributes:
        packing: of a query's length, how the curve's cost and frames share an integer.
        advance, restart: plain functions, see `kernels.bounded_slope`.
        columns: rows of the state that is kept, of sixteen lanes each, for a query of n frames.
        reach: for a query of n frames, how many document frames a result depends on; None: on all that came before.
        option: what `advance` and `restart` take as that.
        grid: a document is cut at multiples of this only.
        int32_frames: the state is int32 for documents of at most so many frames, and int64 for longer ones; None: it is
            of the curve's type.
        most_frames: of a document that can be searched; None: any number.
    """

    packing: Callable[[int], Packing]
    advance: Any
    restart: Any
    columns: Callable[[int], int]
    reach: Callable[[int], int] | None
    option: int = 0
    grid: int = 1
    int32_frames: int | None = None
    most_frames: int | None = None

    def elements(self, query_frames: int) -> int:
        """Elements of the columns."""
        return self.columns(query_frames) * WIDTH

    def state(self, curve: Any, wide: bool) -> Any:
        """dtype of the columns, for a dtype of the curve; `wide`: for documents longer than `int32_frames`."""
        if self.int32_frames is None:
            return curve
        return np.int64 if wide else np.int32

    def scanner(self, state: Any, curve: Any, streams: int) -> Any:
        """The compiled inner loop."""
        return scanner(self.advance, self.restart, state, curve, streams)

    def whole_grid(self, frames: int) -> int:
        """The least multiple of `grid` that is not below a number of frames."""
        return -(-frames // self.grid) * self.grid


def _bounded_slope(band: int) -> Pattern:
    return Pattern(packing, bounded_slope.advance, bounded_slope.restart, lambda n: 3 * (n + 2), reach=lambda n: 2 * n)


def _asymmetric(band: int) -> Pattern:
    return Pattern(packing, asymmetric.advance, asymmetric.restart, asymmetric.columns, reach=lambda n: 2 * n)


def _non_segmental(band: int) -> Pattern:
    return Pattern(
        nonsegmental.packing, nonsegmental.advance, nonsegmental.restart, nonsegmental.columns, reach=lambda n: 2 * n
    )


def _averages(band: int) -> Pattern:
    return Pattern(
        averages.packing,
        averages.advance,
        averages.restart,
        averages.columns,
        reach=None,
        int32_frames=averages.INT32_FRAMES,
        most_frames=averages.MOST_FRAMES,
    )


def _segmental(band: int) -> Pattern:
    return Pattern(
        lambda n: segmental.packing(n, band),
        segmental.advance,
        segmental.restart,
        lambda n: segmental.columns(n, band),
        reach=lambda n: n + band,
        option=band,
        grid=band,
    )


_MAKERS: dict[str, Callable[[int], Pattern]] = {
    "bounded-slope": _bounded_slope,
    "asymmetric": _asymmetric,
    "averages": _averages,
    "non-segmental": _non_segmental,
    "segmental": _segmental,
}

#: Names of the recurrences.
PATTERNS = tuple(_MAKERS)


@cache
def pattern(name: str, band: int = 1) -> Pattern:
    """The recurrence of a name in `PATTERNS`; `band` is R of segmental, at least 1, and nothing to the others."""
    return _MAKERS[name](band)
