"""Lattices: order of states, times, chains of arcs, and sums over paths.

A lattice is arrays: `source` and `target` (states) of each arc. Arcs grouped by a state are `offsets` (states + 1)
and `items` (arcs): those of state s are items[offsets[s]:offsets[s + 1]], in the order of their numbers. All is
linear in the arcs, but for the order of states, which has a logarithm of the states.

**Bytes.** States and arcs of a binary lattice of Kaldi, from its bytes.

A state is its final weight, the number of its arcs (64 bits), and the arcs: input label, output label (32 bits),
weight, next state (32 bits). A weight is two floats and, in a CompactLattice, the number of ids (32 bits) and the ids
(32 bits each). Little-endian.

Source: OpenFst's and Kaldi's files, by their documentation.
"""

from __future__ import annotations

import heapq

import numba
import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Bools, Floats, Ints
from swsdist.kernels.compiled import compiled


@compiled("Tuple((int64[::1], int64[::1]))(int64[::1], int64)")
def grouped(states_of_arcs: Ints, states: int) -> tuple[Ints, Ints]:
    """Arcs by state: offsets and items."""
    offsets = np.zeros(states + 1, np.int64)
    for arc in range(len(states_of_arcs)):
        offsets[states_of_arcs[arc] + 1] += 1
    for state in range(states):
        offsets[state + 1] += offsets[state]
    places = offsets.copy()
    items = np.empty(len(states_of_arcs), np.int64)
    for arc in range(len(states_of_arcs)):
        state = states_of_arcs[arc]
        items[places[state]] = arc
        places[state] += 1
    return offsets, items


@compiled("boolean[::1](boolean[::1], int64[::1], boolean[::1], int64[::1], int64[::1])")
def reachable(beginnings: Bools, others: Ints, usable: Bools, offsets: Ints, items: Ints) -> Bools:
    """The states that paths of usable arcs reach from some states.

    Args:
        beginnings: (states,).
        others: of each arc, the state that it leads to.
        usable: of each arc.
        offsets, items: arcs by the state that they lead from.
    """
    reached = beginnings.copy()
    stack = np.empty(len(reached), np.int64)
    height = 0
    for state in range(len(reached)):
        if reached[state]:
            stack[height] = state
            height += 1
    while height:
        height -= 1
        state = stack[height]
        for place in range(offsets[state], offsets[state + 1]):
            arc = items[place]
            if usable[arc] and not reached[others[arc]]:
                reached[others[arc]] = True
                stack[height] = others[arc]
                height += 1
    return reached


@compiled("int64[::1](int64[::1], boolean[::1], boolean[::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def topological(
    target: Ints, kept_arcs: Bools, kept_states: Bools, by_rank: Ints, rank: Ints, offsets: Ints, items: Ints
) -> Ints:
    """Kept states, sources before targets, and of those that may come next the lowest in rank.

    Args:
        target: (arcs,).
        kept_arcs: arcs between kept states that count.
        kept_states: (states,).
        by_rank: states in order of rank.
        rank: (states,), the inverse.
        offsets, items: arcs by source.

    Returns:
        Fewer than the kept states if arcs make a cycle.
    """
    incoming = np.zeros(len(rank), np.int64)
    for arc in range(len(target)):
        if kept_arcs[arc]:
            incoming[target[arc]] += 1
    ready = [np.int64(0) for _ in range(0)]
    for place in range(len(by_rank)):
        if kept_states[by_rank[place]] and incoming[by_rank[place]] == 0:
            ready.append(np.int64(place))  # ascending: a heap
    order = np.empty(len(rank), np.int64)
    count = 0
    while len(ready) > 0:
        state = by_rank[heapq.heappop(ready)]
        order[count] = state
        count += 1
        for place in range(offsets[state], offsets[state + 1]):
            arc = items[place]
            if kept_arcs[arc]:
                incoming[target[arc]] -= 1
                if incoming[target[arc]] == 0:
                    heapq.heappush(ready, rank[target[arc]])
    return order[:count].copy()


@compiled("void(int64[::1], int64[::1], int64[::1], int64[::1], float64[::1], boolean, float64[::1])")
def accumulate(order: Ints, others: Ints, offsets: Ints, items: Ints, costs: Floats, best: bool, sums: Floats) -> None:
    """Log of the sum over paths (or the best path's), state by state.

    Args:
        order: states; the others of a state's arcs come before it.
        others: of each arc, the state whose sum it continues.
        offsets, items: arcs by the state whose sum they add to.
        costs: of each arc; infinite: it does not count.
        best: the maximum instead of the sum.
        sums: (states,), at first the log of what begins in each state, -inf: nothing; written.
    """
    for index in range(len(order)):
        state = order[index]
        first = sums[state]
        most = first
        for place in range(offsets[state], offsets[state + 1]):
            arc = items[place]
            most = max(most, sums[others[arc]] - costs[arc])
        if best or most == -np.inf:
            sums[state] = most
            continue
        total = np.exp(first - most)
        for place in range(offsets[state], offsets[state + 1]):
            arc = items[place]
            total += np.exp(sums[others[arc]] - costs[arc] - most)
        sums[state] = most + np.log(total)


@compiled("Tuple((int64[::1], int64, int64))(int64, int64[::1], int64[::1], int64[::1], int64[::1])")
def state_times(start: int, target: Ints, durations: Ints, offsets: Ints, items: Ints) -> tuple[Ints, int, int]:
    """Time of each state: the sum of durations on the way there.

    Args:
        start: state.
        target, durations: of each arc.
        offsets, items: arcs by source.

    Returns:
        Times, -1 for a state that is not reached; a state that two ways reach at different times, or -1; and its second time.
    """
    states = len(offsets) - 1
    times = np.full(states, -1, np.int64)
    stack = np.empty(states, np.int64)
    times[start], stack[0] = 0, start
    height = 1
    while height:
        height -= 1
        state = stack[height]
        for place in range(offsets[state], offsets[state + 1]):
            arc = items[place]
            time = times[state] + durations[arc]
            if times[target[arc]] < 0:
                times[target[arc]] = time
                stack[height] = target[arc]
                height += 1
            elif times[target[arc]] != time:
                return times, target[arc], time
    return times, -1, -1


@compiled(
    "Tuple((int64[::1], int64[::1], float64[::1], float64[::1]))"
    "(boolean[::1], int64[::1], int64[::1], float64[::1], float64[::1], int64[::1], int64[::1])"
)
def chained(
    inner: Bools, source: Ints, target: Ints, graph: Floats, acoustic: Floats, offsets: Ints, items: Ints
) -> tuple[Ints, Ints, Floats, Floats]:
    """Chains of arcs through inner states, each as one arc.

    Args:
        inner: states that have one arc in and one arc out.
        source, target, graph, acoustic: of each arc.
        offsets, items: arcs by source.

    Returns:
        Of each chain its first arc, the state it leads to, and the sums of its costs.
    """
    firsts = np.empty(len(source), np.int64)
    ends = np.empty(len(source), np.int64)
    graphs, acoustics = np.empty(len(source)), np.empty(len(source))
    count = 0
    for first in range(len(source)):
        if inner[source[first]]:
            continue
        arc = first
        firsts[count], graphs[count], acoustics[count] = first, graph[arc], acoustic[arc]
        while inner[target[arc]]:
            arc = items[offsets[target[arc]]]
            graphs[count] += graph[arc]
            acoustics[count] += acoustic[arc]
        ends[count] = target[arc]
        count += 1
    return firsts[:count].copy(), ends[:count].copy(), graphs[:count].copy(), acoustics[:count].copy()


Bytes = NDArray[np.uint8]
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
