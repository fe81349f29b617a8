"""Greedy suppression, best first, of overlapping spans and of candidates too near to better ones."""

from __future__ import annotations

import numpy as np

from swsdist.core.arrays import Bools, Floats, Ints
from swsdist.kernels.compiled import compiled

#: Up to this many spans are all compared with each other; of more, only those near in time.
_FEW = 32


@compiled("boolean(int64[::1], int64[::1], int64, int64, float64)")
def _overlaps(first: Ints, last: Ints, item: np.int64, other: np.int64, overlap: float) -> bool:
    common = min(last[item], last[other]) - max(first[item], first[other]) + 1
    return bool(common > overlap * (min(last[item] - first[item], last[other] - first[other]) + 1))


@compiled("void(int64[::1], float64[::1], int64[::1], int64[::1], int64[::1], float64, int64[::1], int64[::1])")
def claim(
    bounds: Ints,
    score: Floats,
    first: Ints,
    last: Ints,
    example: Ints,
    overlap: float,
    order: Ints,
    owner: Ints,
) -> None:
    """Assign spans to owners: a span owns itself unless a better owner overlaps it by more than `overlap` of the
    shorter span.

    The better of two spans has the higher score; ties are broken by the lower first frame, then last frame, then
    example.

    Args:
        bounds: int64 (groups + 1,), spans bounds[g]..bounds[g + 1] compete with each other only.
        score: float64 (spans,), finite.
        first, last, example: int64 (spans,), frames inclusive.
        overlap: 0 to 1.
        order: int64 (spans,), written: the spans of each group, best first.
        owner: int64 (spans,), written: for each place in `order`, the place of the best owner that overlaps it, or its
            own.
    """
    for g in range(len(bounds) - 1):
        begin, end = bounds[g], bounds[g + 1]
        count = end - begin
        if count <= _FEW:
            for i in range(begin, end):
                order[i] = i
        else:
            order[begin:end] = begin + np.argsort(-score[begin:end], kind="mergesort")
        # Insertion sort: spans are few, or sorted by score, so that only ties are exchanged.
        for i in range(begin + 1, end):
            row = order[i]
            j = i
            while j > begin:
                other = order[j - 1]
                if score[other] != score[row]:
                    better = score[row] > score[other]
                elif first[other] != first[row]:
                    better = first[row] < first[other]
                elif last[other] != last[row]:
                    better = last[row] < last[other]
                else:
                    better = example[row] < example[other]
                if not better:
                    break
                order[j] = other
                j -= 1
            order[j] = row
        if count <= _FEW:
            for i in range(begin, end):
                owner[i] = i
                for j in range(begin, i):
                    if owner[j] == j and _overlaps(first, last, order[i], order[j], overlap):
                        owner[i] = j
                        break
            continue
        # Owners are linked in cells of time, as wide as the longest span, by their first frame: a span that overlaps
        # another begins in its last frame's cell, or at most one cell before its first frame's.
        width = np.int64(1)
        low = first[begin]
        high = first[begin]
        for i in range(begin, end):
            width = max(width, last[i] - first[i] + 1)
            low, high = min(low, first[i]), max(high, first[i])
        width = max(width, (high - low) // (4 * count) + 1)
        newest = np.full((high - low) // width + 1, -1, np.int64)
        before = np.empty(count, np.int64)
        for i in range(begin, end):
            span = order[i]
            owner[i] = i
            cell = (first[span] - low) // width
            for near in range(max(cell - 1, 0), min((last[span] - low) // width, len(newest) - 1) + 1):
                j = newest[near]
                while j >= 0:
                    if j < owner[i] and _overlaps(first, last, span, order[j], overlap):
                        owner[i] = j
                    j = before[j - begin]
            if owner[i] == i:
                before[i - begin] = newest[cell]
                newest[cell] = i


@compiled("void(int64[::1], int64[::1], int64, boolean[::1])")
def separated(bounds: Ints, frame: Ints, apart: int, keep: Bools) -> None:
    """Keep rows that are at least `apart` frames from every better kept row.

    Args:
        bounds: int64 (groups + 1,), rows bounds[g]..bounds[g + 1] compete with each other only, best first.
        frame: int64 (rows,), 0 or more.
        apart: at least 1.
        keep: bool (rows,), written.
    """
    for g in range(len(bounds) - 1):
        begin, end = bounds[g], bounds[g + 1]
        highest = np.int64(0)
        for row in range(begin, end):
            highest = max(highest, frame[row])
        # A stretch of `apart` frames holds at most one kept row.
        kept = np.full(highest // apart + 1, -1, np.int64)
        for row in range(begin, end):
            place = frame[row] // apart
            keep[row] = True
            for near in range(max(place - 1, 0), min(place + 1, len(kept) - 1) + 1):
                if kept[near] >= 0 and abs(kept[near] - frame[row]) < apart:
                    keep[row] = False
            if keep[row]:
                kept[place] = frame[row]


@compiled(
    "void(int64[::1], float64[::1], int64[::1], int64[::1], int64[::1], int64, float64, boolean, int64[::1], int64[::1])"
)
def join(
    bounds: Ints,
    score: Floats,
    first: Ints,
    last: Ints,
    system: Ints,
    systems: int,
    share: float,
    by_middle: bool,
    order: Ints,
    owner: Ints,
) -> None:
    """Form places: each remaining best span starts one, and the best remaining span of each other system that meets it
    joins.

    The better of two spans has the higher score; ties are broken by the lower first, then last, then system. Two spans
    meet if they share more than a fraction of the shorter one; or if the midpoint of one lies in the other, both
    borders included.

    Args:
        bounds: int64 (groups + 1,), spans bounds[g]..bounds[g + 1] may be joined with each other only.
        score: float64 (spans,), finite.
        first, last: int64 (spans,), both inclusive.
        system: int64 (spans,), from 0.
        systems: number of systems.
        share: 0 to 1; unused with `by_middle`.
        by_middle: whether spans meet by their midpoints.
        order: int64 (spans,), written: the spans of each group, best first.
        owner: int64 (spans,), written: for each place in `order`, the place of the span it belongs to, or its own.
    """
    seen = np.empty(systems, np.bool_)
    for g in range(len(bounds) - 1):
        begin, end = bounds[g], bounds[g + 1]
        order[begin:end] = begin + np.argsort(-score[begin:end], kind="mergesort")
        for i in range(begin + 1, end):  # insertion sort: sorted by score, so only ties are exchanged
            row = order[i]
            j = i
            while j > begin:
                other = order[j - 1]
                if score[other] != score[row]:
                    break
                if first[other] != first[row]:
                    better = first[row] < first[other]
                elif last[other] != last[row]:
                    better = last[row] < last[other]
                else:
                    better = system[row] < system[other]
                if not better:
                    break
                order[j] = other
                j -= 1
            order[j] = row
        for i in range(begin, end):
            owner[i] = -1
        for i in range(begin, end):
            if owner[i] >= 0:
                continue
            owner[i] = i
            row = order[i]
            seen[:] = False
            seen[system[row]] = True
            left = systems - 1
            for j in range(i + 1, end):
                if left == 0:
                    break
                other = order[j]
                if owner[j] >= 0 or seen[system[other]]:
                    continue
                if by_middle:
                    # Twice the midpoints, as integers.
                    middle, other_middle = first[row] + last[row] + 1, first[other] + last[other] + 1
                    meets = (2 * first[other] <= middle <= 2 * (last[other] + 1)) or (
                        2 * first[row] <= other_middle <= 2 * (last[row] + 1)
                    )
                else:
                    common = min(last[row], last[other]) - max(first[row], first[other]) + 1
                    shorter = min(last[row] - first[row], last[other] - first[other]) + 1
                    meets = common > share * shorter
                if meets:
                    owner[j] = i
                    seen[system[other]] = True
                    left -= 1
