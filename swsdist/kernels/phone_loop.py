"""Exact lattices of phones from posteriors of their states: a free loop, or one with weights of pairs.

A phone has states from left to right: it is entered in the first, left from the last, and spends a frame or more in
each. In a free loop any phone follows any other, and the only memory between phones is the frame. With weights of
pairs (a bigram) it is the last phone, too.

A path's weight is the product over frames of exp(scale x log posterior), and of `entry` for each phone, times the
weight of each pair. Frames are divided by a factor each, so that all sums stay near 1 and no logarithm is taken:
`forward` chooses the factors. A *border* t is between frames t - 1 and t.

A segment (first border, phone, last border) has the posterior entered[first, phone] x (sum over its inner alignments)
x after[last, phone] / total. While a phone goes on from a border, the posterior that it has begun there and still
lasts only falls, so it is dropped, exactly, when that is less than a segment's least.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Floats
from swsdist.kernels.compiled import compiled


@compiled("void(float64[:,:,::1], float64, float64[:,::1], float64[:,::1], float64[:,::1], float64[::1])")
def forward(
    weights: Floats,
    entry: float,
    pairs: Floats,
    mass: Floats,
    ended: Floats,
    factors: Floats,
) -> None:
    """Sums over paths to each border of a block of frames, and the factor of each frame.

    Args:
        weights: float64 (frames, phones, states), overwritten by the same divided by the factors.
        entry: weight of a phone.
        pairs: float64 (phones + 1, phones), of a phone after another, the last row at the start; no rows: a free loop.
        mass: float64 (phones, states), of paths in a state after the frame before the block; overwritten by that after it.
        ended: float64 (frames + 1, columns), of paths that end a phone at each border: by phone and, in the last column, of
            none yet; in a free loop one column, of all. The first row is given, the others are written.
        factors: float64 (frames,), written.
    """
    frames, phones, states = weights.shape
    entered = np.empty(phones)
    for t in range(frames):
        total = 0.0
        for p in range(phones):
            entered[p] = ended[t, 0] * entry
        if len(pairs):
            entered[:] = 0.0
            for q in range(phones + 1):
                if ended[t, q] > 0.0:
                    for p in range(phones):
                        entered[p] += ended[t, q] * pairs[q, p] * entry
        for p in range(phones):
            for j in range(states - 1, 0, -1):
                mass[p, j] = weights[t, p, j] * (mass[p, j - 1] + mass[p, j])
                total += mass[p, j]
            mass[p, 0] = weights[t, p, 0] * (entered[p] + mass[p, 0])
            total += mass[p, 0]
        factor = total if total > 0.0 else 1.0
        factors[t] = factor
        ended[t + 1, :] = 0.0
        for p in range(phones):
            for j in range(states):
                mass[p, j] /= factor
                weights[t, p, j] /= factor
            ended[t + 1, p if len(pairs) else 0] += mass[p, states - 1]


@compiled("void(float64[:,:,::1], float64, float64[:,::1], float64[:,::1], float64[:,::1], float64[:,:,::1])")
def backward(
    weights: Floats,
    entry: float,
    pairs: Floats,
    after: Floats,
    onward: Floats,
    inside: Floats,
) -> None:
    """Sums over paths from each border, and from each state of a phone, to the end.

    Args:
        weights: float64 (frames, phones, states), divided by the factors.
        entry: weight of a phone.
        pairs: as for `forward`.
        after: float64 (frames + 1, columns), by the phone that ended, as `ended` of `forward`. The last row is given, the
            others are written.
        onward: float64 (phones, states), from the states of the frame after the last, times their weights there; 0 at the
            end of the recording. Overwritten by that of the first frame.
        inside: float64 (frames, phones, states), written: from a state, after its frame.
    """
    frames, phones, states = weights.shape
    for t in range(frames - 1, -1, -1):
        total = 0.0
        for p in range(phones):
            for j in range(states):
                left = after[t + 1, p if len(pairs) else 0]
                inside[t, p, j] = onward[p, j] + (onward[p, j + 1] if j + 1 < states else left)
            for j in range(states):
                onward[p, j] = weights[t, p, j] * inside[t, p, j]
            total += onward[p, 0]
        if len(pairs):
            for q in range(phones + 1):
                total = 0.0
                for p in range(phones):
                    total += pairs[q, p] * onward[p, 0]
                after[t, q] = entry * total
        else:
            after[t, 0] = entry * total


@compiled(
    "Tuple((int32[::1], int32[::1], int32[::1], float64[::1], int32[::1], int32[::1], float64[:,::1]))"
    "(float64[:,:,::1], float64[:,:,::1], float64[:,::1], float64[:,::1], float64, int64, float64,"
    " int32[::1], int32[::1], float64[:,::1])"
)
def segments(
    weights: Floats,
    inside: Floats,
    entered: Floats,
    after: Floats,
    total: float,
    first: int,
    least: float,
    open_first: NDArray[np.int32],
    open_phone: NDArray[np.int32],
    open_sums: Floats,
) -> tuple[
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int32],
    Floats,
    NDArray[np.int32],
    NDArray[np.int32],
    Floats,
]:
    """Segments of at least a posterior that end in a block of frames.

    Args:
        weights, inside: float64 (frames, phones, states), of the block; from `forward` and `backward`.
        entered: float64 (frames + 1, phones or 1), sums over paths that enter a phone at a border, or any.
        after: float64 (frames + 1, columns), from `backward`.
        total: sum over all paths.
        first: number of the block's first frame.
        least: posterior.
        open_first, open_phone: int32, border and phone of phones that go on into the block.
        open_sums: float64 (open phones, states), their sums over inner alignments, times `entered`.

    Returns:
        First and last border, phone and posterior of each segment; and the phones that go on after the block, as above.
    """
    frames, phones, states = weights.shape
    size = 1024
    starts, ends, labels = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
    posteriors = np.empty(size, np.float64)
    count = 0
    room = max(1024, 2 * (len(open_first) + phones))
    begun, phone = np.empty(room, np.int32), np.empty(room, np.int32)
    sums = np.empty((room, states), np.float64)
    active = len(open_first)
    begun[:active], phone[:active], sums[:active] = open_first, open_phone, open_sums
    by_phone = entered.shape[1] > 1
    for t in range(frames):
        if active + phones > room:
            more = 2 * (active + phones)
            begun = np.concatenate((begun[:active], np.empty(more - active, np.int32)))
            phone = np.concatenate((phone[:active], np.empty(more - active, np.int32)))
            longer = np.empty((more, states), np.float64)
            longer[:active] = sums[:active]
            sums, room = longer, more
        for p in range(phones):
            begun[active], phone[active] = first + t, p
            for j in range(states):
                sums[active, j] = 0.0
            active += 1
        kept = 0
        for k in range(active):
            p = phone[k]
            stayed = 0.0
            fresh = 0.0
            if begun[k] == first + t:
                fresh = entered[t, p if by_phone else 0]
            for j in range(states - 1, -1, -1):
                value = weights[t, p, j] * (sums[k, j] + (sums[k, j - 1] if j > 0 else fresh))
                sums[k, j] = value
                stayed += value * inside[t, p, j]
            if stayed < least * total:
                continue
            posterior = sums[k, states - 1] * after[t + 1, p if by_phone else 0] / total
            if posterior >= least:
                if count == size:
                    starts = np.concatenate((starts, np.empty(size, np.int32)))
                    ends = np.concatenate((ends, np.empty(size, np.int32)))
                    labels = np.concatenate((labels, np.empty(size, np.int32)))
                    posteriors = np.concatenate((posteriors, np.empty(size, np.float64)))
                    size *= 2
                starts[count], ends[count], labels[count] = begun[k], first + t + 1, p
                posteriors[count] = posterior
                count += 1
            begun[kept], phone[kept] = begun[k], p
            for j in range(states):
                sums[kept, j] = sums[k, j]
            kept += 1
        active = kept
    return (
        starts[:count].copy(),
        ends[:count].copy(),
        labels[:count].copy(),
        posteriors[:count].copy(),
        begun[:active].copy(),
        phone[:active].copy(),
        sums[:active].copy(),
    )


@compiled(
    "void(float64[:,:,::1], float64, float64[:,::1], int64, float64[:,::1], int32[:,::1], int32[:,::1],"
    " float64[:,::1], int32[:,:,::1])"
)
def best_paths(
    costs: Floats,
    entry: float,
    pairs: Floats,
    first: int,
    score: Floats,
    start: NDArray[np.int32],
    source: NDArray[np.int32],
    ended: Floats,
    back: NDArray[np.int32],
) -> None:
    """The paths of least cost to each border of a block of frames.

    Of equal paths that wins which entered or moved on later, and among phones the first.

    Args:
        costs: float64 (frames, phones, states), of a frame in a state.
        entry: cost of a phone.
        pairs: float64 (phones + 1, phones), costs of a phone after another, the last row at the start; no rows: none.
        first: number of the block's first frame.
        score, start, source: float64, int32, int32 (phones, states), after the frame before: cost of the best path in a
            state, the border at which its phone began, and the phone before that; overwritten by those after the block.
        ended: float64 (frames + 1, columns), cost of the best path that ends a phone at each border: by phone and, in the
            last column, of none yet; without pairs one column, of all. The first row is given, the others are written.
        back: int32 (frames, columns, 3), written: border at which that phone began, phone, and the phone before it.
    """
    frames, phones, states = costs.shape
    columns = ended.shape[1]
    for t in range(frames):
        for c in range(columns):
            ended[t + 1, c] = np.inf
        for p in range(phones):
            entered, before = ended[t, 0] + entry, 0
            if len(pairs):
                entered = np.inf
                for q in range(columns):
                    value = ended[t, q] + pairs[q, p] + entry
                    if value < entered:
                        entered, before = value, q
            for j in range(states - 1, -1, -1):
                moved = score[p, j - 1] if j > 0 else entered
                if moved <= score[p, j]:
                    score[p, j] = moved
                    start[p, j] = start[p, j - 1] if j > 0 else first + t
                    source[p, j] = source[p, j - 1] if j > 0 else before
                score[p, j] += costs[t, p, j]
            column = p if len(pairs) else 0
            if score[p, states - 1] < ended[t + 1, column]:
                ended[t + 1, column] = score[p, states - 1]
                back[t, column, 0], back[t, column, 1] = start[p, states - 1], p
                back[t, column, 2] = source[p, states - 1]


class Segment(NamedTuple):
    """A phone of a string: first frame, the one after its last, number of the phone, and its cost."""

    first: int
    stop: int
    phone: int
    cost: float


def best_string(
    costs: Iterable[Floats],
    shape: tuple[int, int],
    entry: float,
    pairs: Floats | None = None,
) -> list[Segment]:
    """The string of least cost; empty if there are fewer frames than states.

    Args:
        costs: blocks of (frames, phones, states), of a frame in a state.
        shape: phones and states.
        entry: cost of a phone.
        pairs: float64 (phones + 1, phones), costs of a phone after another, the last row at the start.
    """
    phones, _ = shape
    weights = np.empty((0, 0)) if pairs is None else np.ascontiguousarray(pairs, np.float64)
    columns = 1 if pairs is None else phones + 1
    score = np.full(shape, np.inf)
    start, source = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    last = np.full((1, columns), np.inf)
    last[0, -1] = 0.0
    borders, backs, frames = [last], [np.empty((0, columns, 3), np.int32)], 0
    for block in costs:
        ended = np.empty((len(block) + 1, columns))
        ended[0] = last[-1]
        back = np.zeros((len(block), columns, 3), np.int32)
        best_paths(np.ascontiguousarray(block), entry, weights, frames, score, start, source, ended, back)
        last = ended[-1:]
        borders.append(ended[1:])
        backs.append(back)
        frames += len(block)
    if not np.isfinite(last.min()):
        return []
    ended, back = np.concatenate(borders), np.concatenate(backs)
    result, border, column = [], frames, int(ended[frames].argmin())
    while border:
        first, phone, before = back[border - 1, column].tolist()
        earlier = before if pairs is not None else 0
        result.append(Segment(first, border, phone, float(ended[border, column] - ended[first, earlier])))
        border, column = first, earlier
    return result[::-1]
