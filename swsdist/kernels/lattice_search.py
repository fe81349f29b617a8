"""Search of label sequences in lattices: exact posteriors of all places of many terms at once.

A lattice is packed: states in topological order, arcs by source. `chance` of an arc is the probability to take it
from its source, `visits` of a state the probability to pass it, so a chain of arcs from a state has the posterior
visits x product of chances. Label 0 is no word: arcs of that label may stand between two words of a term, never at
its ends.

Terms are one deterministic automaton over labels. A *pair* is a state of the lattice and a node of the automaton;
arcs between pairs are made when they are met first, and serve all starts (lazy composition). A *token* is a pair that
is reached from a start; tokens of as many words that meet are added, so the work is bounded by pairs, not by paths.

Source: D. Can and M. Saraclar, "Lattice indexing for spoken term detection", IEEE TASLP 19(8), 2011, section III (the
sum over chains of a factor, here computed when a term is searched instead of when the index is made).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from swsdist.core.arrays import Bools, Floats, Ints
from swsdist.kernels.compiled import compiled

#: Bits of a mask of labels; a label's bit is its number modulo this.
BITS = 64
#: Length of the lists of tokens, pairs, arcs and places at first; they grow.
_ROOM = 1 << 10


@compiled("boolean(int32[::1], int64[::1], int32[::1], int32[::1], uint64[::1], boolean[::1])")
def label_masks(
    label: NDArray[np.int32],
    first: Ints,
    target: NDArray[np.int32],
    time: NDArray[np.int32],
    mask: NDArray[np.uint64],
    silent: Bools,
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
    "int64(int32[::1], int64[::1], int32[::1], float64[::1], int32[::1], boolean[::1], boolean[::1], int64,"
    " int64[::1], int32[::1], float64[::1], float64[::1], int64[::1])"
)
def _closures(
    label: NDArray[np.int32],
    first: Ints,
    target: NDArray[np.int32],
    chance: Floats,
    time: NDArray[np.int32],
    silent: Bools,
    entered: Bools,
    gap: int,
    begin: Ints,
    reached: NDArray[np.int32],
    passed: Floats,
    sums: Floats,
    order: Ints,
) -> int:
    """Writes `begin`, `reached` and `passed` of `closures`; the number of entries, or -1: the last two are too short.

    Nothing is bound anew here, as in `_search_lattice`.

    Args:
        entered: states whose closures are used.
        sums: float64 (states,), chance to reach each state from the present one; zeros.
        order: int64 (states,), written.
    """
    used = 0
    for s in range(len(time) - 1, -1, -1):
        if not (silent[s] and entered[s]):
            continue
        count = 0
        for a in range(first[s], first[s + 1]):
            d = s + target[a]
            if label[a] != 0 or time[d] - time[s] > gap or chance[a] == 0.0:
                continue
            if sums[d] == 0.0:
                order[count] = d
                count += 1
            sums[d] += chance[a]
            if begin[d] >= 0:
                for e in range(begin[d] + 1, begin[d] + 1 + reached[begin[d]]):
                    u, through = d + reached[e], chance[a] * passed[e]
                    if time[u] - time[s] > gap or through == 0.0:
                        continue
                    if sums[u] == 0.0:
                        order[count] = u
                        count += 1
                    sums[u] += through
        fits = used + count < len(reached)
        if fits:
            begin[s] = used
            reached[used], passed[used] = count, 0.0
            used += 1
        for k in range(count):
            if fits:
                reached[used], passed[used] = order[k] - s, sums[order[k]]
                used += 1
            sums[order[k]] = 0.0
        if not fits:
            return -1
    return used


@compiled(
    "Tuple((int64[::1], int32[::1], float64[::1]))"
    "(int32[::1], int64[::1], int32[::1], float64[::1], int32[::1], float64[::1], boolean[::1], boolean[::1], int64)"
)
def closures(
    label: NDArray[np.int32],
    first: Ints,
    target: NDArray[np.int32],
    chance: Floats,
    time: NDArray[np.int32],
    visits: Floats,
    silent: Bools,
    inner: Bools,
    gap: int,
) -> tuple[Ints, NDArray[np.int32], Floats]:
    """States reached through arcs of label 0, with their chances: of states within a term that such an arc leaves.

    Args:
        label, first, target, chance: of the arcs; see `search`.
        time: int32 (states,).
        visits: float64 (states,), 0: no term is followed there.
        silent: from `label_masks`.
        inner: bool (columns,), labels after which a term may go on.
        gap: greatest time between the state and the reached one, ticks.

    Returns:
        begin, int64 (states,), the first entry of each state, or -1; distance (int32) and chance (float64) of each
        entry. The first entry of a state is the number of the others.
    """
    states = len(time)
    begin = np.full(states, -1, np.int64)
    entered = np.zeros(states, np.bool_)
    if inner.any():
        for s in range(states):
            if visits[s] == 0.0:
                continue
            for a in range(first[s], first[s + 1]):
                if inner[label[a]] or (label[a] == 0 and entered[s]):
                    entered[s + target[a]] = True
    sums, order = np.zeros(states, np.float64), np.empty(states, np.int64)
    room = _ROOM + 8 * states
    while True:
        reached, passed = np.empty(room, np.int32), np.empty(room, np.float64)
        used = _closures(
            label, first, target, chance, time, silent, entered, gap, begin, reached, passed, sums, order
        )  # fmt: skip
        if used >= 0:
            return begin, reached[:used].copy(), passed[:used].copy()
        begin[:] = -1
        room = 4 * room


@compiled("int64(int64, int64, int64)")
def _slot(state: np.int64, node: np.int64, slots: int) -> np.int64:
    mixed = np.uint64(state) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(node) * np.uint64(0xC2B2AE3D27D4EB4F)
    return np.int64((mixed >> np.uint64(20)) & np.uint64(slots - 1))


@compiled(
    "int64(int64, int64, int64, int32[::1], int64[::1], int32[::1], float64[::1], int32[::1], float64[::1],"
    " uint64[::1], int64[::1], int32[::1], float64[::1],"
    " int32[:,::1], uint64[::1], int64[::1], int32[::1], float64[::1], float64,"
    " int32[:,::1], int64[:,::1], int32[::1], int32[::1], float64[::1], int32[:,::1], float64[:,::1],"
    " int32[:,::1], float64[::1], int64, int64[::1])"
)
def _search_lattice(  # noqa: C901
    document: int,
    first_state: int,
    last_state: int,
    label: NDArray[np.int32],
    first: Ints,
    target: NDArray[np.int32],
    chance: Floats,
    time: NDArray[np.int32],
    visits: Floats,
    mask: NDArray[np.uint64],
    closure: Ints,
    closure_reached: NDArray[np.int32],
    closure_chance: Floats,
    child: NDArray[np.int32],
    node_mask: NDArray[np.uint64],
    accepts: Ints,
    accepted: NDArray[np.int32],
    weight: Floats,
    least: float,
    pairs: NDArray[np.int32],
    spans: Ints,
    table: NDArray[np.int32],
    onward: NDArray[np.int32],
    factor: Floats,
    token_pair: NDArray[np.int32],
    token_sum: Floats,
    places: NDArray[np.int32],
    posterior: Floats,
    rows: int,
    tokens: Ints,
) -> int:
    """Places in one lattice, written from a row on; the number of rows after it, or -1: an array is too short.

    Nothing is allocated here, nor any array bound anew: each would cost a count of references in the inner loops.

    Args:
        pairs: int32 (room, 3): state (from the lattice's first), node, and place among the tokens of a step.
        spans: int64 (room, 3): first arc and the one after the last, -1 until they are made; and the step of that place.
        table: int32 (a power of 2 of at least twice the room,), numbers of pairs by hash.
        onward, factor: int32, float64 (arcs,), pair and factor of each arc between pairs.
        token_pair, token_sum: int32, float64 (2, room), tokens of this step and of the next one.
        places: int32 (places, 4), term, lattice, start, end; written. `posterior` likewise.
        rows: places before.
        tokens: int64 (2,), number of tokens so far, and of steps.
    """
    room, slots = len(pairs), len(table)
    made_pairs, used = 0, 0
    table[:] = -1
    now, counted = tokens[1], tokens[0]
    root = node_mask[0]
    for s0 in range(first_state, last_state):
        mass = visits[s0]
        if mask[s0] & root == 0 or mass < least:
            continue
        current, count, step = 0, 1, 0
        while count > 0:
            now += 1
            following, made = 1 - current, 0
            for k in range(count):
                # The pair that is extended: in the first step the root at s0, which needs no number.
                if step == 0:
                    pair, value, state, node = np.int64(-1), mass, np.int64(s0), np.int64(0)
                else:
                    pair, value = np.int64(token_pair[current, k]), token_sum[current, k]
                    state, node = first_state + pairs[pair, 0], np.int64(pairs[pair, 1])
                if pair < 0 or spans[pair, 0] < 0:
                    follows = node_mask[node]
                    from_arc = used
                    entry, entries = np.int64(-1), 0
                    if pair >= 0 and closure[state] >= 0:
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
                            local = d - first_state
                            at = _slot(local, np.int64(after), slots)
                            other = table[at]
                            while other >= 0 and (pairs[other, 0] != local or pairs[other, 1] != after):
                                at = (at + 1) & (slots - 1)
                                other = table[at]
                            if other < 0:
                                if made_pairs == room:
                                    return -1
                                other = made_pairs
                                table[at] = other
                                pairs[other, 0], pairs[other, 1] = local, after
                                spans[other, 0], spans[other, 2] = -1, 0
                                made_pairs += 1
                            if used == len(onward):
                                return -1
                            onward[used], factor[used] = other, q * chance[a]
                            used += 1
                    to_arc = used
                    if pair < 0:
                        used = from_arc
                    else:
                        spans[pair, 0], spans[pair, 1] = from_arc, to_arc
                else:
                    from_arc, to_arc = spans[pair, 0], spans[pair, 1]
                for a in range(from_arc, to_arc):
                    product = value * factor[a]
                    if product < least:
                        continue
                    other = onward[a]
                    if spans[other, 2] == now:
                        token_sum[following, pairs[other, 2]] += product
                        continue
                    token_pair[following, made], token_sum[following, made] = other, product
                    spans[other, 2], pairs[other, 2] = now, made
                    made += 1
            current, count = following, made
            step += 1
            counted += count
            for k in range(count):
                other = token_pair[current, k]
                node = np.int64(pairs[other, 1])
                for e in range(accepts[node], accepts[node + 1]):
                    if rows == len(posterior):
                        return -1
                    places[rows, 0], places[rows, 1] = accepted[e], document
                    places[rows, 2], places[rows, 3] = time[s0], time[first_state + pairs[other, 0]]
                    posterior[rows] = token_sum[current, k] * weight[e]
                    rows += 1
    tokens[0], tokens[1] = counted, now
    return rows


@compiled(
    "Tuple((int32[:,::1], float64[::1], int64))"
    "(int32[::1], int64[::1], int32[::1], float64[::1], int32[::1], float64[::1], int64[::1],"
    " uint64[::1], int64[::1], int32[::1], float64[::1],"
    " int32[:,::1], uint64[::1], int64[::1], int32[::1], float64[::1], float64)"
)
def search(
    label: NDArray[np.int32],
    first: Ints,
    target: NDArray[np.int32],
    chance: Floats,
    time: NDArray[np.int32],
    visits: Floats,
    documents: Ints,
    mask: NDArray[np.uint64],
    closure: Ints,
    closure_reached: NDArray[np.int32],
    closure_chance: Floats,
    child: NDArray[np.int32],
    node_mask: NDArray[np.uint64],
    accepts: Ints,
    accepted: NDArray[np.int32],
    weight: Floats,
    least: float,
) -> tuple[NDArray[np.int32], Floats, int]:
    """Places of all terms in some lattices.

    Args:
        label: int32 (arcs,), 0 no word, else a column of `child`.
        first: int64 (states + 1,), the first arc of each state.
        target: int32 (arcs,), target less source, 1 or more.
        chance: float64 (arcs,).
        time: int32 (states,), ticks.
        visits: float64 (states,).
        documents: int64 (lattices + 1,), the first state of each lattice.
        mask: from `label_masks`.
        closure, closure_reached, closure_chance: from `closures`.
        child: int32 (nodes, columns), the next node by label, -1: none, as for label 0; node 0 is the root.
        node_mask: uint64 (nodes,), bits of the labels that have a next node.
        accepts: int64 (nodes + 1,), the first entry in `accepted` of each node.
        accepted: int32, terms that end at a node; `weight` float64, what their posterior is multiplied by.
        least: tokens of a smaller posterior are left out.

    Returns:
        int32 (places, 4): term, lattice, first tick, and tick after the last; float64 (places,): posterior. A place may
        stand in several rows, to be added. And the number of tokens.
    """
    room, arcs, most = _ROOM, 8 * _ROOM, _ROOM
    pairs, spans = np.empty((room, 3), np.int32), np.empty((room, 3), np.int64)
    table = np.empty(4 * room, np.int32)
    onward, factor = np.empty(arcs, np.int32), np.empty(arcs, np.float64)
    token_pair, token_sum = np.empty((2, room), np.int32), np.empty((2, room), np.float64)
    places, posterior = np.empty((most, 4), np.int32), np.empty(most, np.float64)
    tokens = np.zeros(2, np.int64)
    rows = 0
    for k in range(len(documents) - 1):
        while True:
            after = _search_lattice(
                k, documents[k], documents[k + 1], label, first, target, chance, time, visits, mask, closure,
                closure_reached, closure_chance, child, node_mask, accepts, accepted, weight, least, pairs, spans, table,
                onward, factor, token_pair, token_sum, places, posterior, rows, tokens,
            )  # fmt: skip
            if after >= 0:
                break
            room, arcs, most = 2 * room, 2 * arcs, 2 * most
            pairs, spans = np.empty((room, 3), np.int32), np.empty((room, 3), np.int64)
            table = np.empty(4 * room, np.int32)
            onward, factor = np.empty(arcs, np.int32), np.empty(arcs, np.float64)
            token_pair, token_sum = np.empty((2, room), np.int32), np.empty((2, room), np.float64)
            more_places, more_posteriors = np.empty((most, 4), np.int32), np.empty(most, np.float64)
            more_places[:rows], more_posteriors[:rows] = places[:rows], posterior[:rows]
            places, posterior = more_places, more_posteriors
        rows = after
    return places[:rows].copy(), posterior[:rows].copy(), tokens[0]
