"""Exact search of windows: finds every candidate that ends in a window, exactly as the full search does.

A path of bounded slope spans at most 2 N document frames, and whether a frame is a candidate depends on w costs on
either side. A window is therefore computed from w + 2 (N - 1) frames before it to w after it; frames further off cannot
change the result. Overlapping windows of an example are joined, and long ones split; neither changes the result.

Documents arrive in blocks and are held one stretch at a time, several together, so that a call covers many windows of
an example.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels import windows
from swsdist.kernels.arithmetic import StateType, packing
from swsdist.kernels.distances.interface import Distance
from swsdist.kernels.products import QueryDistances, Room
from swsdist.methods.dtw.matches import Matches, best_matches
from swsdist.methods.first_pass.buffering import LaneGroups, buffered, stretches
from swsdist.methods.first_pass.interface import Documents, Windows, Work
from swsdist.methods.query.example import Example

#: Most end frames that a part of a window reports.
_PART = 1024

#: Columns whose distances to an example are held at once: with 50 query frames 800 kB, which fits the cache.
_COLUMNS = 1 << 13


class Visited(NamedTuple):
    """Candidates found in windows, and the work done."""

    matches: Matches
    work: Work


def visit(
    examples: list[Example],
    documents: Documents,
    lengths: NDArray[np.int64],
    chosen: Windows,
    most: NDArray[np.int64],
    distance: Distance,
    window: int,
) -> Visited:
    """Find the candidates that end in windows.

    Args:
        examples: prepared as queries.
        documents: at least those with windows.
        lengths: int64 (documents,), frames of each.
        chosen: the windows; parts beyond the document are ignored.
        most: int64 (documents,), candidates kept per example and document: those of least cost, earlier ends first.
        distance: the distance the frames are prepared for.
        window: frames on either side within which a candidate must have the least cost.

    Returns:
        Candidates of `engine.search` whose end frame is in a window of their example, pruned the same way. Work counts
        the cells whose distances were computed.
    """
    sizes = np.array([len(example.frames) for example in examples], np.int64)
    parts = _parts(chosen, lengths, sizes, window)
    room = Rooms()
    scan = [Scanner(example, distance, window, room) for example in examples]
    overlap = int(_PART + 2 * (window + sizes.max(initial=0)))
    candidates: list[NDArray[np.int64]] = []
    cells = 0
    ends = np.bincount(parts.document, minlength=len(lengths)).cumsum()
    by_document = np.argsort(parts.document, kind="stable")
    done = np.zeros(len(parts.document), bool)
    stream = (part for index, blocks in documents for part in stretches(index, blocks, overlap))
    for stretch in buffered(stream, distance):
        rows, shifts = [], []
        for item, base in zip(stretch.stretches, stretch.bases, strict=True):
            due = by_document[ends[item.document - 1] if item.document else 0 : ends[item.document]]
            due = due[~done[due] & (item.last | (parts.right[due] <= item.offset + len(item.frames)))]
            done[due] = True
            rows.append(due)
            shifts.append(np.full(len(due), base - item.offset))
        row, shift = np.concatenate(rows), np.concatenate(shifts)
        order = np.lexsort((row, parts.example[row]))
        row, shift = row[order], shift[order]
        bounds = np.searchsorted(parts.example[row], np.arange(len(examples) + 1))
        for k in np.flatnonzero(np.diff(bounds)).tolist():
            example_parts = parts.take(row[bounds[k] : bounds[k + 1]])
            for now in _calls(example_parts.right - example_parts.left):
                of = example_parts.take(now)
                columns = of.right - of.left
                laid = stretch.lay(of.left + shift[bounds[k] :][now], columns)
                table = np.column_stack(
                    [laid.start, columns, of.begin - of.left, of.first - of.left, of.stop - of.left]
                )
                rows_found = scan[k](laid, table)
                place = rows_found[:, 0]
                index = np.full(len(place), k)
                where = (index, of.document[place], of.left[place] + rows_found[:, 1])
                candidates.append(np.column_stack([*where, rows_found[:, 2:]]))
                cells += int(sizes[k] * columns.sum())
    return Visited(best_matches(candidates, most, 1.0), Work(cells=cells))


def warm(distance: Distance, window: int) -> None:
    """Load the kernels, by a visit of one frame by one frame."""
    frame = np.zeros((1, distance.columns), np.float32)
    index, begin, end = np.zeros(1, np.int32), np.zeros(1, np.int64), np.ones(1, np.int64)
    all_windows = Windows(index, index, begin, end, begin)
    visit([Example("", 1, frame)], [(0, [frame])], end, all_windows, end, distance, window)


class _Parts(NamedTuple):
    """Disjoint parts of windows, in frames of the document.

    Attributes:
        left, begin: the first frame needed, and the first whose cost is needed.
        first, stop: range of the end frames reported.
        right: the frame after the last one needed.
    """

    example: NDArray[np.int64]
    document: NDArray[np.int64]
    left: NDArray[np.int64]
    begin: NDArray[np.int64]
    first: NDArray[np.int64]
    stop: NDArray[np.int64]
    right: NDArray[np.int64]

    def take(self, rows: NDArray[np.int64] | slice) -> _Parts:
        """Select parts."""
        return _Parts(*(column[rows] for column in self))


def _parts(chosen: Windows, lengths: NDArray[np.int64], sizes: NDArray[np.int64], window: int) -> _Parts:
    """Join windows that overlap or touch, and cut them into parts of `_PART` end frames."""
    example, document = chosen.example.astype(np.int64), chosen.document.astype(np.int64)
    first, stop = np.maximum(chosen.first, 0), np.minimum(chosen.stop, lengths[document])
    some = first < stop
    example, document, first, stop = example[some], document[some], first[some], stop[some]
    if len(first) == 0:
        return _Parts(*(np.empty(0, np.int64) for _ in _Parts._fields))
    order = np.lexsort((first, document, example))
    example, document, first, stop = example[order], document[order], first[order], stop[order]
    # All frames on one axis: those of each example and document follow the previous pair's.
    group = example * len(lengths) + document
    line = group * (int(lengths.max()) + 1)
    reach = np.maximum.accumulate(line + stop)
    new = np.append(True, (line + first)[1:] > reach[:-1])
    heads = np.flatnonzero(new)
    stop = (np.maximum.reduceat(line + stop, heads) - line[heads]).astype(np.int64)
    example, document, first = example[heads], document[heads], first[heads]
    count = -(-(stop - first) // _PART)
    of = np.repeat(np.arange(len(first)), count)
    number = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)
    example, document = example[of], document[of]
    first = first[of] + number * _PART
    stop = np.minimum(first + _PART, stop[of])
    begin = np.maximum(first - window, 0)
    left = np.maximum(begin - 2 * (sizes[example] - 1), 0)
    return _Parts(example, document, left, begin, first, stop, np.minimum(stop + window, lengths[document]))


def _calls(columns: NDArray[np.int64]) -> Iterator[slice]:
    """Group windows with these numbers of columns into calls of about `_COLUMNS`."""
    total = np.cumsum(columns) // _COLUMNS
    bounds = [0, *(np.flatnonzero(total[1:] != total[:-1]) + 1).tolist(), len(columns)]
    for start, stop in pairwise(bounds):
        yield slice(start, stop)


class Rooms:
    """Buffers shared by scanners that take turns."""

    def __init__(self) -> None:
        self.distances = Room(np.int16)
        self.rows: dict[StateType, Room[np.int32] | Room[np.int64]] = {
            np.int32: Room(np.int32),
            np.int64: Room(np.int64),
        }


class Scanner:
    """Scans stretches of documents for one example: distances, recurrence and candidates."""

    def __init__(self, example: Example, distance: Distance, window: int, rooms: Rooms) -> None:
        self._rooms = rooms
        self._query_distances = QueryDistances(example.frames, distance, rooms.distances)
        self._packing = packing(len(example.frames))
        self._scan = windows.scanner(self._packing.dtype)  # type: ignore[arg-type] # mypy: a class cannot be hashed
        self._window = window

    def __call__(self, laid: LaneGroups, table: NDArray[np.int64]) -> NDArray[np.int64]:
        """Find candidates: int64 (many, 4), row of the table, column, document frames, cost.

        Args:
            laid: frames.
            table: int64 (windows, 5), see `kernels.windows.WINDOW`.
        """
        distances = self._query_distances(laid.source)
        packed = self._packing
        candidates = np.empty((int(((table[:, 4] - table[:, 3]) // (self._window + 1) + 1).sum()), 4), np.int64)
        count = self._scan(
            distances,
            self._query_distances.height,
            self._query_distances.frames,
            table,
            packed.frame_bits,
            packed.infinity,
            self._window,
            self._rooms.rows[packed.dtype](windows.room(int(table[:, 1].max()))),
            candidates,
        )
        return candidates[:count]
