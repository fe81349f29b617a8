"""States and arcs of a binary lattice of Kaldi, from its bytes.

A state is its final weight, the number of its arcs (64 bits), and the arcs: input label, output label (32 bits), weight, next
state (32 bits). A weight is two floats and, in a CompactLattice, the number of ids (32 bits) and the ids (32 bits each).
Little-endian.

Source: OpenFst's and Kaldi's files, by their documentation.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.compiled import compiled

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Bits = NDArray[np.uint64]

#: What `walk` returns instead of an end: the bytes do not suffice; they are no lattice.
SHORT, WRONG = -1, -2


# Loops of a fixed number of steps become single loads.
@numba.extending.register_jitable
def _four(data: Bytes, at: int) -> np.uint64:
    value = np.uint64(0)
    for k in range(4):
        value |= np.uint64(data[at + k]) << np.uint64(8 * k)
    return value


@numba.extending.register_jitable
def _eight(data: Bytes, at: int) -> np.uint64:
    value = np.uint64(0)
    for k in range(8):
        value |= np.uint64(data[at + k]) << np.uint64(8 * k)
    return value


@numba.extending.register_jitable
def _float_bits(data: Bytes, at: int, size: int) -> np.uint64:
    bits: np.uint64 = _four(data, at) if size == 4 else _eight(data, at)
    return bits


@compiled(
    "Tuple((int64, int64))"
    "(uint8[::1], int64, int64, int64, boolean, boolean, int64[:,::1], uint64[:,::1], int64[::1], uint64[:,::1])"
)
def walk(
    data: Bytes,
    at: int,
    states: int,
    size: int,
    strings: bool,
    fill: bool,
    arcs: Ints,
    weights: Bits,
    final_frames: Ints,
    final_weights: Bits,
) -> tuple[int, int]:
    """Check the states of a lattice, and count its arcs or fill arrays with them.

    Args:
        data: bytes.
        at: where the first state begins.
        states: number of them.
        size: bytes of a float, 4 or 8.
        strings: weights have ids: a CompactLattice, whose two labels are the same.
        fill: whether to write the arrays.
        arcs: (4, arcs), written: source, target, output label, frames.
        weights: (2, arcs), written: bits of the floats.
        final_frames, final_weights: (states,), (2, states), written.

    Returns:
        Where the lattice ends, `SHORT` or `WRONG`; and the number of arcs, or where it goes wrong.
    """
    limit = np.uint64(1) << np.uint64(31)
    end = len(data)
    count = 0
    fixed = 2 * size + (4 if strings else 0)  # of a weight, without ids
    for state in range(states):
        if at + fixed + 8 > end:
            return SHORT, count
        ids = np.uint64(0)
        if strings:
            ids = _four(data, at + 2 * size)
            if ids >= limit:
                return WRONG, at
        if fill:
            final_frames[state] = np.int64(ids)
            final_weights[0, state] = _float_bits(data, at, size)
            final_weights[1, state] = _float_bits(data, at + size, size)
        at += fixed + 4 * int(np.int64(ids))
        if at + 8 > end:
            return SHORT, count
        left = np.int64(_eight(data, at))
        if left < 0:
            return WRONG, at
        at += 8
        for _ in range(left):
            if at + 8 + fixed + 4 > end:
                return SHORT, count
            ilabel, label = _four(data, at), _four(data, at + 4)
            if ilabel >= limit or label >= limit or (strings and ilabel != label):
                return WRONG, at
            weight = at + 8
            frames = np.uint64(1) if ilabel else np.uint64(0)
            at = weight + fixed
            if strings:
                frames = _four(data, weight + 2 * size)
                if frames >= limit:
                    return WRONG, weight
                at += 4 * int(np.int64(frames))
            if at + 4 > end:
                return SHORT, count
            target = _four(data, at)
            if target >= np.uint64(states):
                return WRONG, at
            at += 4
            if fill:
                arcs[0, count], arcs[1, count] = state, np.int64(target)
                arcs[2, count], arcs[3, count] = np.int64(label), np.int64(frames)
                weights[0, count] = _float_bits(data, weight, size)
                weights[1, count] = _float_bits(data, weight + size, size)
            count += 1
    return at, count
