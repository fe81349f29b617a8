"""The curve of one query in one document, and the warping path of a detection, computed on demand for plots.

A search keeps neither. Here the same recurrence runs over a complete table of distances
(`kernels.recurrences.interface`), for one query and a few thousand frames at a time, so cost and document frames of
every end frame, and the path of a detection, equal those of the search.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Ints, Singles
from swsdist.core.codes import families
from swsdist.core.codes import methods as codes
from swsdist.kernels.distances.interface import Distance
from swsdist.kernels.products import local_distances
from swsdist.kernels.recurrences import interface
from swsdist.kernels.recurrences.interface import create

_DEFAULT: Mapping[str, object] = MappingProxyType({})


class Curve(NamedTuple):
    """The paths that end at each document frame.

    Attributes:
        cost: int64 (document frames,), as a candidate's; -1 where no path ends.
        frames: int64 (document frames,), document frames of the path; 0 where no path ends.
    """

    cost: Ints
    frames: Ints


def curve(
    query: Singles,
    document: Singles,
    distance: Distance,
    recurrence: str = "bounded-slope",
    options: Mapping[str, object] = _DEFAULT,
    ranged: bool = False,
) -> Curve:
    """Cost and document frames of the path that ends at each frame of a document.

    Args:
        query, document: float32 (frames, columns), prepared by the distance; at least one frame each.
        distance: between frames.
        recurrence: its name.
        options: of the recurrence.
        ranged: map the distances of each query frame to their range, as `search.row_range` does.

    Raises:
        UserError: the query is too long for the recurrence.
    """
    rule = create(recurrence, options)
    rule.packing(len(query))  # rejects the same queries as the search
    return traced(local_distances(query, document, distance, ranged=ranged), rule.trace, rule.option)[0]


def path(
    query: Singles,
    document: Singles,
    end_frame: int,
    distance: Distance,
    recurrence: str = "bounded-slope",
    options: Mapping[str, object] = _DEFAULT,
    ranged: bool = False,
) -> Ints:
    """The path that ends at a document frame: its cells (query frame, document frame), int64 (cells, 2), in order.

    Args:
        end_frame: last document frame of the path, as a candidate's.

    Other arguments are those of `curve`.

    Raises:
        UserError: no path ends there, or the query is too long for the recurrence.
    """
    rule = create(recurrence, options)
    rule.packing(len(query))
    if not 0 <= end_frame < len(document):
        raise codes.NO_SUCH_FRAME(frames=len(document), frame=end_frame)
    first = 0 if rule.reach is None else max(0, end_frame - rule.reach(len(query))) // rule.grid * rule.grid
    table = local_distances(query, document, distance, slice(first, end_frame + 1), ranged)
    result, steps = traced(table, rule.trace, rule.option)
    frames = int(result.frames[-1])
    if frames == 0:
        raise families.UNDEFINED(
            "no path ends at frame {frame}",
            "give the end of a detection; a query of bounded slope needs half as many frames before it",
            frame=end_frame,
        )
    if rule.trace_path is not None:
        first = end_frame - frames + 1
        _, steps = traced(np.ascontiguousarray(table[:, -frames:]), rule.trace_path, rule.option)
    cells = _walked(steps)
    cells[:, 1] += first
    return cells


def traced(table: NDArray[np.int16], twin: interface.Twin, option: int) -> tuple[Curve, NDArray[np.uint8]]:
    """The curve of a table of distances, and the step into every cell, by the plain version of a recurrence.

    Args:
        table: int16 (query frames, document frames).
        twin: the plain version (`kernels.recurrences.interface`).
        option: of the recurrence.

    Returns:
        The curve; and the steps, uint8 (query frames, document frames).
    """
    result = Curve(np.empty(table.shape[1], np.int64), np.empty(table.shape[1], np.int64))
    steps = np.empty(table.shape, np.uint8)
    interface.traced(twin)(table, option, result.cost, result.frames, steps)
    return result, steps


def _walked(steps: NDArray[np.uint8]) -> Ints:
    """Cells of the path that ends in the last one."""
    i, t = steps.shape[0] - 1, steps.shape[1] - 1
    cells = []
    while i >= 0:
        cells.append((i, t))
        code = steps[i, t]
        if code == interface.BEGIN:
            break
        query_step, document_step = interface.STEPS[code]
        if query_step == 2:  # both query frames add their distance at this document frame
            cells.append((i - 1, t))
        i, t = i - query_step, t - document_step
    return np.array(cells[::-1], np.int64)
