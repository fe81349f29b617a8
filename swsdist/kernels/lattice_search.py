"""Search of label sequences in lattices: exact posteriors of all places of many terms at once.

A lattice is packed: states in topological order, arcs by source. `chance` of an arc is the probability to take it from its
source, `visits` of a state the probability to pass it, so a chain of arcs from a state has the posterior visits x product of
chances. Label 0 is no word: arcs of that label may stand between two words of a term, never at its ends.

Terms are one deterministic automaton over labels. A *pair* is a state of the lattice and a node of the automaton; arcs between
pairs are made when they are met first, and serve all starts (lazy composition). A *token* is a pair that is reached from a start;
tokens of as many words that meet are added, so the work is bounded by pairs, not by paths.

Source: D. Can and M. Saraclar, "Lattice indexing for spoken term detection", IEEE TASLP 19(8), 2011, section III (the sum over
chains of a factor, here computed when a term is searched instead of when the index is made).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.compiled import compiled

#: Bits of a mask of labels; a label's bit is its number modulo this.
BITS = 64
#: Length of the lists of tokens, pairs, arcs and places at first; they grow.
_ROOM = 1 << 10


@compiled("boolean(int32[::1], int64[::1], int32[::1], int32[::1], uint64[::1], boolean[::1])")
def label_masks(
    label: NDArray[np.int32],
    first: NDArray[np.int64],
    target: NDArray[np.int32],
    time: NDArray[np.int32],
    mask: NDArray[np.uint64],
    silent: NDArray[np.bool_],
) -> bool:
    """Labels that can follow each state, through arcs of label 0 too, as bits; and whether such an arc leaves it.

    Args:
        label: int32 (arcs,).
        first: int64 (states + 1,), the first arc of each state.
        target: int32 (arcs,), target less source, 1 or more.
        time: int32 (states,), ticks.
        mask: uint64 (states,), written.
        silent: bool (states,), written.

    Returns:
        Whether an arc of a word has no length.
    """
    empty = False
    for s in range(len(mask) - 1, -1, -1):
        bits = np.uint64(0)
        passes = False
        for a in range(first[s], first[s + 1]):
            if label[a] == 0:
                passes = True
                bits |= mask[s + target[a]]
            else:
                bits |= np.uint64(1) << np.uint64(label[a] % BITS)
                empty |= time[s] == time[s + target[a]]
        mask[s] = bits
        silent[s] = passes
    return empty


@compiled(
    "Tuple((int64[::1], int32[::1], float64[::1]))"
    "(int32[::1], int64[::1], int32[::1], float64[::1], int32[::1], boolean[::1], int64)"
)
def closures(
    label: NDArray[np.int32],
    first: NDArray[np.int64],
    target: NDArray[np.int32],
    chance: NDArray[np.float64],
    time: NDArray[np.int32],
    silent: NDArray[np.bool_],
    gap: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """States reached through arcs of label 0, with their chances; only of states that such an arc leaves.

    Args:
        label, first, target, chance: of the arcs; see `search`.
        time: int32 (states,).
        silent: from `label_masks`.
        gap: greatest time between the state and the reached one, ticks.

    Returns:
        begin, int64 (states + 1,), places of each state's entries, backwards: state s has those from begin[s] to
        begin[s] + count, where begin[-1] is not used and count is kept in its first entry; distance (int32) and chance
        (float64) of each.
    """
    states = len(time)
    begin = np.full(states + 1, -1, np.int64)
    reached = np.empty(1024, np.int32)
    passed = np.empty(1024, np.float64)
    used = 0
    # Chance to reach each state from the present one, by distance; zero between uses.
    sums = np.zeros(states + 1, np.float64)
    order = np.empty(states + 1, np.int64)
    for s in range(states - 1, -1, -1):
        if not silent[s]:
            continue
        count = 0
        for a in range(first[s], first[s + 1]):
            if label[a] != 0:
                continue
            d = s + target[a]
            if sums[d] == 0.0 and chance[a] > 0.0 and time[d] - time[s] <= gap:
                order[count] = d
                count += 1
            if time[d] - time[s] <= gap:
                sums[d] += chance[a]
            if begin[d] >= 0:
                for e in range(begin[d] + 1, begin[d] + 1 + reached[begin[d]]):
                    u = d + reached[e]
                    if time[u] - time[s] <= gap:
                        if sums[u] == 0.0 and chance[a] * passed[e] > 0.0:
                            order[count] = u
                            count += 1
                        sums[u] += chance[a] * passed[e]
        if used + count + 1 > len(reached):
            size = max(2 * len(reached), used + count + 1)
            more_reached = np.empty(size, np.int32)
            more_reached[:used] = reached[:used]
            more_passed = np.empty(size, np.float64)
            more_passed[:used] = passed[:used]
            reached, passed = more_reached, more_passed
        begin[s] = used
        reached[used] = count
        passed[used] = 0.0
        used += 1
        for k in range(count):
            reached[used] = order[k] - s
            passed[used] = sums[order[k]]
            sums[order[k]] = 0.0
            used += 1
    return begin, reached[:used].copy(), passed[:used].copy()


@compiled("int64(int64, int64, int64)")
def _slot(state: int, node: int, slots: int) -> int:
    mixed = np.uint64(state) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(node) * np.uint64(0xC2B2AE3D27D4EB4F)
    return np.int64((mixed >> np.uint64(20)) & np.uint64(slots - 1))


@compiled("int64(int64, int64, int64, int32[::1], int64[::1], int32[::1])")
def _find(
    state: int, node: int, pairs: int, table: NDArray[np.int32], states: NDArray[np.int64], nodes: NDArray[np.int32]
) -> int:
    """The slot of a pair in a table of pairs by number, or the free slot where it belongs."""
    at = _slot(state, node, len(table))
    while table[at] < pairs and table[at] >= 0 and (states[table[at]] != state or nodes[table[at]] != node):
        at = (at + 1) & (len(table) - 1)
    return at


@compiled("int32[::1](int64, int64, int64[::1], int32[::1])")
def _rehashed(pairs: int, slots: int, states: NDArray[np.int64], nodes: NDArray[np.int32]) -> NDArray[np.int32]:
    """A larger table of the same pairs."""
    table = np.full(slots, -1, np.int32)
    for k in range(pairs):
        at = _slot(states[k], nodes[k], slots)
        while table[at] >= 0:
            at = (at + 1) & (slots - 1)
        table[at] = k
    return table


@compiled(
    "Tuple((int32[::1], int32[::1], int32[::1], int32[::1], float64[::1], int64))"
    "(int32[::1], int64[::1], int32[::1], float64[::1], int32[::1], float64[::1], int64[::1],"
    " uint64[::1], boolean[::1], int64[::1], int32[::1], float64[::1],"
    " int32[:,::1], uint64[::1], int64[::1], int32[::1], float64[::1], float64)"
)
def search(
    label: NDArray[np.int32],
    first: NDArray[np.int64],
    target: NDArray[np.int32],
    chance: NDArray[np.float64],
    time: NDArray[np.int32],
    visits: NDArray[np.float64],
    documents: NDArray[np.int64],
    mask: NDArray[np.uint64],
    silent: NDArray[np.bool_],
    closure: NDArray[np.int64],
    closure_reached: NDArray[np.int32],
    closure_chance: NDArray[np.float64],
    child: NDArray[np.int32],
    node_mask: NDArray[np.uint64],
    accepts: NDArray[np.int64],
    accepted: NDArray[np.int32],
    weight: NDArray[np.float64],
    least: float,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.float64], int]:
    """Places of all terms in some lattices.

    Args:
        label: int32 (arcs,), 0 no word, else a column of `child`.
        first: int64 (states + 1,), the first arc of each state.
        target: int32 (arcs,), target less source, 1 or more.
        chance: float64 (arcs,).
        time: int32 (states,), ticks.
        visits: float64 (states,).
        documents: int64 (lattices + 1,), the first state of each lattice.
        mask, silent: from `label_masks`.
        closure, closure_reached, closure_chance: from `closures`.
        child: int32 (nodes, columns), the next node by label, -1: none, as for label 0; node 0 is the root.
        node_mask: uint64 (nodes,), bits of the labels that have a next node.
        accepts: int64 (nodes + 1,), the first entry in `accepted` of each node.
        accepted: int32, terms that end at a node; `weight` float64, what their posterior is multiplied by.
        least: tokens and places of a smaller posterior are left out.

    Returns:
        term, lattice, first tick, tick after the last, posterior of each place; a place may stand in several rows, to be
        added. And the number of tokens.
    """
    rows = 0
    term = np.empty(_ROOM, np.int32)
    lattice = np.empty(_ROOM, np.int32)
    start = np.empty(_ROOM, np.int32)
    end = np.empty(_ROOM, np.int32)
    posterior = np.empty(_ROOM, np.float64)
    # Pairs of a state and a node, by number, of the present lattice; the arcs from a pair to others are made when it is met.
    room = _ROOM
    states, nodes = np.empty(room, np.int64), np.empty(room, np.int32)
    begin, stop = np.empty(room, np.int64), np.empty(room, np.int64)
    # Where a pair stands among the tokens of a step, if its stamp is that step's.
    stamp, place = np.zeros(room, np.int64), np.empty(room, np.int32)
    table = np.full(4 * room, -1, np.int32)
    arcs, used = _ROOM, 0
    onward, factor = np.empty(arcs, np.int32), np.empty(arcs, np.float64)
    # Tokens of this step and of the next one: rows `here` and `1 - here`.
    size = _ROOM
    pair_of, sums = np.empty((2, size), np.int32), np.empty((2, size), np.float64)
    now, tokens = np.int64(0), np.int64(0)
    root = node_mask[0]
    for document in range(len(documents) - 1):
        pairs, used = 0, 0
        table[:] = -1
        for s0 in range(documents[document], documents[document + 1]):
            mass = visits[s0]
            if mask[s0] & root == 0 or mass < least:
                continue
            here, count, step = 0, 0, 0
            now += 1
            while step == 0 or count > 0:
                there, made = 1 - here, 0
                for k in range(max(count, 1)):
                    # The pair that is extended: in the first step the root at s0, which needs no number.
                    pair = -1 if step == 0 else np.int64(pair_of[here, k])
                    value = mass if step == 0 else sums[here, k]
                    if pair < 0 or begin[pair] < 0:
                        state = s0 if pair < 0 else states[pair]
                        node = 0 if pair < 0 else np.int64(nodes[pair])
                        follows = node_mask[node]
                        from_arc = used
                        entry, entries = np.int64(-1), 0
                        if pair >= 0 and silent[state]:
                            entry = closure[state]
                            entries = closure_reached[entry]
                        for e in range(entries + 1):
                            s, q = state, 1.0
                            if e > 0:
                                s = state + closure_reached[entry + e]
                                q = closure_chance[entry + e]
                            if mask[s] & follows == 0:
                                continue
                            for a in range(first[s], first[s + 1]):
                                after = child[node, label[a]]
                                if after < 0:
                                    continue
                                d = s + target[a]
                                if mask[d] & node_mask[after] == 0 and accepts[after] == accepts[after + 1]:
                                    continue
                                at = _find(d, after, pairs, table, states, nodes)
                                if table[at] < 0:
                                    if pairs == room:
                                        states = np.concatenate((states, np.empty(room, np.int64)))
                                        nodes = np.concatenate((nodes, np.empty(room, np.int32)))
                                        begin = np.concatenate((begin, np.empty(room, np.int64)))
                                        stop = np.concatenate((stop, np.empty(room, np.int64)))
                                        stamp = np.concatenate((stamp, np.zeros(room, np.int64)))
                                        place = np.concatenate((place, np.empty(room, np.int32)))
                                        room *= 2
                                        table = _rehashed(pairs, 4 * room, states, nodes)
                                        at = _find(d, after, pairs, table, states, nodes)
                                    table[at] = pairs
                                    states[pairs], nodes[pairs], begin[pairs] = d, after, -1
                                    pairs += 1
                                if used == arcs:
                                    onward = np.concatenate((onward, np.empty(arcs, np.int32)))
                                    factor = np.concatenate((factor, np.empty(arcs, np.float64)))
                                    arcs *= 2
                                onward[used], factor[used] = table[at], q * chance[a]
                                used += 1
                        to_arc = used
                        if pair < 0:
                            used = from_arc
                        else:
                            begin[pair], stop[pair] = from_arc, to_arc
                    else:
                        from_arc, to_arc = begin[pair], stop[pair]
                    for a in range(from_arc, to_arc):
                        after_value = value * factor[a]
                        if after_value < least:
                            continue
                        next_pair = onward[a]
                        if stamp[next_pair] == now:
                            sums[there, place[next_pair]] += after_value
                            continue
                        if made == size:
                            more_pairs, more_sums = (
                                np.empty((2, 2 * size), np.int32),
                                np.empty((2, 2 * size), np.float64),
                            )
                            more_pairs[:, :size], more_sums[:, :size] = pair_of, sums
                            pair_of, sums, size = more_pairs, more_sums, 2 * size
                        pair_of[there, made], sums[there, made] = next_pair, after_value
                        stamp[next_pair], place[next_pair] = now, made
                        made += 1
                here, count = there, made
                step += 1
                now += 1
                tokens += count
                for k in range(count):
                    node = np.int64(nodes[pair_of[here, k]])
                    for e in range(accepts[node], accepts[node + 1]):
                        if rows == len(term):
                            term = np.concatenate((term, np.empty(rows, np.int32)))
                            lattice = np.concatenate((lattice, np.empty(rows, np.int32)))
                            start = np.concatenate((start, np.empty(rows, np.int32)))
                            end = np.concatenate((end, np.empty(rows, np.int32)))
                            posterior = np.concatenate((posterior, np.empty(rows, np.float64)))
                        term[rows], lattice[rows] = accepted[e], document
                        start[rows], end[rows] = time[s0], time[states[pair_of[here, k]]]
                        posterior[rows] = sums[here, k] * weight[e]
                        rows += 1
    return (
        term[:rows].copy(),
        lattice[:rows].copy(),
        start[:rows].copy(),
        end[:rows].copy(),
        posterior[:rows].copy(),
        tokens,
    )
