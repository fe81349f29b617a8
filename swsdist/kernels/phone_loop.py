"""Exact lattices of a free loop of phones, from posteriors of their states.

A phone has states from left to right: it is entered in the first, left from the last, and spends a frame or more in each;
any phone follows any other. The only memory between phones is the frame, so the lattice's states are the borders between
frames, and its arcs phones from one border to another.

A path's weight is the product over frames of exp(scale x log posterior), and of `entry` for each phone. Frames are divided by a
factor each, so that all sums stay near 1 and no logarithm is taken: `forward` chooses the factors.

The arc (first border, phone, last border) has the posterior before[first] x entry x (sum over its inner alignments) x
after[last] / before[end]. While a phone goes on from a border, the posterior that it has begun there and still lasts only
falls, so it is dropped, exactly, when that is less than an arc's least.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.compiled import compiled


@compiled("void(float64[:,:,::1], float64, float64[::1], float64[::1])")
def forward(
    weights: NDArray[np.float64], entry: float, before: NDArray[np.float64], factors: NDArray[np.float64]
) -> None:
    """Sums over paths to each border, and the factor of each frame.

    Args:
        weights: float64 (frames, phones, states), overwritten by the same divided by the factors.
        entry: weight of a phone.
        before: float64 (frames + 1,), written.
        factors: float64 (frames,), written.
    """
    frames, phones, states = weights.shape
    mass = np.zeros((phones, states))
    before[0] = 1.0
    for t in range(frames):
        total = 0.0
        for p in range(phones):
            for j in range(states - 1, 0, -1):
                mass[p, j] = weights[t, p, j] * (mass[p, j - 1] + mass[p, j])
                total += mass[p, j]
            mass[p, 0] = weights[t, p, 0] * (before[t] * entry + mass[p, 0])
            total += mass[p, 0]
        factor = total if total > 0.0 else 1.0
        factors[t] = factor
        after = 0.0
        for p in range(phones):
            for j in range(states):
                mass[p, j] /= factor
                weights[t, p, j] /= factor
            after += mass[p, states - 1]
        before[t + 1] = after


@compiled("void(float64[:,:,::1], float64, float64[::1], float64[:,::1], float64[:,:,::1])")
def backward(
    weights: NDArray[np.float64],
    entry: float,
    after: NDArray[np.float64],
    onward: NDArray[np.float64],
    inside: NDArray[np.float64],
) -> None:
    """Sums over paths from each border, and from each state of a phone, to the end.

    Args:
        weights: float64 (frames, phones, states), from `forward`.
        entry: weight of a phone.
        after: float64 (frames + 1,), of which the last is given; written.
        onward: float64 (phones, states), from the states of the frame after the last, times their weights there; 0 at the
            end of the recording. Overwritten by that of the first frame.
        inside: float64 (frames, phones, states), written: from a state, after its frame.
    """
    frames, phones, states = weights.shape
    for t in range(frames - 1, -1, -1):
        total = 0.0
        for p in range(phones):
            for j in range(states):
                inside[t, p, j] = onward[p, j] + (onward[p, j + 1] if j + 1 < states else after[t + 1])
            for j in range(states):
                onward[p, j] = weights[t, p, j] * inside[t, p, j]
            total += onward[p, 0]
        after[t] = entry * total


@compiled(
    "Tuple((int32[::1], int32[::1], int32[::1], float64[::1], int32[::1], int32[::1], float64[:,::1]))"
    "(float64[:,:,::1], float64[:,:,::1], float64, float64[::1], float64[::1], float64, int64, float64,"
    " int32[::1], int32[::1], float64[:,::1])"
)
def arcs(
    weights: NDArray[np.float64],
    inside: NDArray[np.float64],
    entry: float,
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    total: float,
    first: int,
    least: float,
    open_first: NDArray[np.int32],
    open_phone: NDArray[np.int32],
    open_sums: NDArray[np.float64],
) -> tuple[
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.float64],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.float64],
]:
    """Arcs of at least a posterior that end in a block of frames.

    Args:
        weights, inside: float64 (frames, phones, states), of the block; from `forward` and `backward`.
        entry: weight of a phone.
        before, after: float64 (frames + 1,), of the block's borders.
        total: `before` at the end of the recording.
        first: number of the block's first frame.
        least: posterior.
        open_first, open_phone: int32, border and phone of phones that go on into the block.
        open_sums: float64 (open phones, states), their sums over inner alignments, times `before` and `entry`.

    Returns:
        First and last border, phone and posterior of each arc; and the phones that go on after the block, as above.
    """
    frames, phones, states = weights.shape
    size = 1024
    starts, ends, labels = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
    posteriors = np.empty(size, np.float64)
    count = 0
    room = max(1024, len(open_first) + phones)
    begun, phone = np.empty(room, np.int32), np.empty(room, np.int32)
    sums = np.empty((room, states), np.float64)
    active = len(open_first)
    begun[:active], phone[:active], sums[:active] = open_first, open_phone, open_sums
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
            still = 0.0
            fresh = before[t] * entry if begun[k] == first + t else 0.0
            for j in range(states - 1, -1, -1):
                value = weights[t, p, j] * (sums[k, j] + (sums[k, j - 1] if j > 0 else fresh))
                sums[k, j] = value
                still += value * inside[t, p, j]
            if still < least * total:
                continue
            posterior = sums[k, states - 1] * after[t + 1] / total
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
