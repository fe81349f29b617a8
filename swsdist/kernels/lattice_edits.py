"""Alignment of a query's lattice with a document's, every path with every path, edits allowed.

The cost of a path r of the query and a stretch u of a path of the document, from any state to any other, is

    -ln P(r) - ln visits(first state of u) - ln P(u given that state) + the edits between their labels,

a substitution, an insertion (a label of the document alone) and a deletion (a label of the query alone) costing
`edit` each, but for cheaper substitutions that are listed. Label 0, no word, costs no edit on either side. u begins
and ends with a label that stands for one of the query's: silence at the edges is no part of a term, and what deletes
all labels is no match.

So a match has three phases. Before its first pair of labels and after its last one only the query goes on, by
deletions: their least costs depend on the query's state alone. A cell (query state i, document state s) has the least
cost of what has come there in between, as one integer: the cost in units of 1/1024 in the high bits, then the labels
of r, then the state at which u began, so ties go to the shorter r and to the earlier start. For each query state one
pass over the document's arcs gives the best way into each of its states by any arc; labels of the query differ from
that only at arcs of their own label.
"""

from __future__ import annotations

import numpy as np

from swsdist.core.arrays import Ints
from swsdist.kernels.compiled import compiled

#: Units of a cost of 1.
UNIT = 1024
#: Bits of the start state, and of it and the labels of r (`swsdist.methods.lattice.places.MOST_LABELS`).
START_BITS, LOW_BITS = 28, 38
#: States of a document that the method aligns at once.
PIECE = 1 << 14
#: More than any cost.
FAR = np.int64(1) << 61


@compiled("UniTuple(int64[::1], 2)(int64[::1], int64[::1], int64[::1], int64[::1])")
def _deletions(first: Ints, target: Ints, deleted: Ints, final: Ints) -> tuple[Ints, Ints]:
    """The least costs of deleting all labels of a query before each of its states, and after it.

    Args:
        deleted: int64 (query arcs,), cost of each and of deleting its label.
    """
    states = len(final)
    before, after = np.full(states, FAR), np.full(states, FAR)
    before[0] = 0
    for i in range(states):
        for a in range(first[i], first[i + 1]):
            before[target[a]] = min(before[target[a]], before[i] + deleted[a])
    for i in range(states - 1, -1, -1):
        if final[i] < FAR:
            after[i] = final[i] << LOW_BITS
        for a in range(first[i], first[i + 1]):
            after[i] = min(after[i], after[target[a]] + deleted[a])
    return before, after


@compiled("UniTuple(int64[::1], 2)(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def _openings(
    first: Ints,
    target: Ints,
    label: Ints,
    cost: Ints,
    begin: Ints,
) -> tuple[Ints, Ints]:
    """Beginnings at each state of a document, and the best way from any of them over one label into each state."""
    opening, opened = np.full(len(begin), FAR), np.full(len(begin), FAR)
    for s in range(len(begin)):
        if begin[s] < FAR:
            opening[s] = (begin[s] << LOW_BITS) | s
            for a in range(first[s], first[s + 1]):
                if label[a] != 0:
                    opened[target[a]] = min(opened[target[a]], opening[s] + (cost[a] << LOW_BITS))
    return opening, opened


@compiled(
    "int64[::1](int64[::1], int64[::1], int64[::1], int64[::1], int64[::1],"
    " int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1],"
    " int64, int64[:,::1])"
)
def align(
    query_first: Ints,
    query_target: Ints,
    query_label: Ints,
    query_cost: Ints,
    final: Ints,
    first: Ints,
    source: Ints,
    target: Ints,
    label: Ints,
    cost: Ints,
    begin: Ints,
    of_label: Ints,
    by_label: Ints,
    edit: int,
    cheaper: Ints,
) -> Ints:
    """The least cell of a match that ends in each document state; FAR or more: none ends there.

    Args:
        query_first: int64 (query states + 1,), first arc of each state; states in topological order, the first is the start.
        query_target, query_label, query_cost: int64 (query arcs,), those of a state by label; costs in units.
        final: int64 (query states,), cost of ending in each; FAR: none ends there.
        first: int64 (states + 1,), first arc of each state of the document; states in topological order.
        source, target, label, cost: int64 (arcs,).
        begin: int64 (states,), cost of beginning at each; FAR: none begins there.
        of_label: int64 (labels + 1,), first entry of each label in `by_label`.
        by_label: int64 (arcs,), arcs by label.
        edit: cost of an edit, in units.
        cheaper: int64 (n, 3), label of the query, label of the document, cost of that substitution, below `edit`; equal
            labels of cost 0 are among them.
    """
    query_states, states = len(query_first) - 1, len(first) - 1
    longer = np.int64(1) << START_BITS
    edit_cost = np.int64(edit) << LOW_BITS
    deleted = np.empty(len(query_label), np.int64)
    for a in range(len(query_label)):
        deleted[a] = (query_cost[a] << LOW_BITS) + (edit_cost + longer if query_label[a] > 0 else 0)
    before, after = _deletions(query_first, query_target, deleted, final)
    opening, opened = _openings(first, target, label, cost, begin)
    cells, best = np.full((query_states, states), FAR), np.full(states, FAR)
    ready, any_arc, paired = np.empty(states, np.int64), np.empty(states, np.int64), np.empty(states, np.int64)
    for i in range(query_states):
        row, begun = cells[i], before[i]
        for s in range(states):
            any_arc[s] = FAR
        for s in range(states):
            row[s] = min(row[s], any_arc[s] + edit_cost)
            cost_here = row[s]
            if cost_here >= FAR:
                continue
            for a in range(first[s], first[s + 1]):
                value = cost_here + (cost[a] << LOW_BITS)
                t = target[a]
                if label[a] != 0:
                    any_arc[t] = min(any_arc[t], value)
                else:
                    row[t] = min(row[t], value)
        for s in range(states):
            ready[s] = min(row[s], opening[s] + begun)
            any_arc[s] = min(any_arc[s], opened[s] + begun)
        a = query_first[i]
        while a < query_first[i + 1]:
            of, ending = query_label[a], FAR
            if of > 0:
                for s in range(states):
                    paired[s] = any_arc[s] + edit_cost
                for k in range(len(cheaper)):
                    if cheaper[k, 0] == of:
                        less = cheaper[k, 2] << LOW_BITS
                        for e in range(of_label[cheaper[k, 1]], of_label[cheaper[k, 1] + 1]):
                            arc = by_label[e]
                            value = ready[source[arc]] + (cost[arc] << LOW_BITS) + less
                            paired[target[arc]] = min(paired[target[arc]], value)
            while a < query_first[i + 1] and query_label[a] == of:
                taken = query_cost[a] << LOW_BITS
                into = cells[query_target[a]]
                if of == 0:
                    for s in range(states):
                        into[s] = min(into[s], row[s] + taken)
                else:
                    taken += longer
                    for s in range(states):
                        into[s] = min(into[s], min(paired[s], row[s] + edit_cost) + taken)
                    ending = min(ending, taken + after[query_target[a]])
                a += 1
            if ending < FAR:
                for s in range(states):
                    best[s] = min(best[s], paired[s] + ending)
    return best


@compiled(
    "Tuple((int64[:,::1], int64))"
    "(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1],"
    " int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1],"
    " int64, int64[:,::1], int64, int64[::1], int64, int64)"
)
def search(
    query_first: Ints,
    query_target: Ints,
    query_label: Ints,
    query_cost: Ints,
    final: Ints,
    documents: Ints,
    first: Ints,
    target: Ints,
    label: Ints,
    cost: Ints,
    begin: Ints,
    time: Ints,
    labels: Ints,
    edit: int,
    cheaper: Ints,
    apart: int,
    most: Ints,
    warm_up: int,
    piece: int,
) -> tuple[Ints, int]:
    """The best matches of a query in some lattices.

    Args:
        query_first, query_target, query_label, query_cost, final: of the query; see `align`.
        documents: int64 (lattices + 1,), first state of each.
        first: int64 (states + 1,), first arc of each state; `target` int64 (arcs,), among all states.
        label, cost, begin: as for `align`.
        time: int64 (states,), ticks.
        labels: int64 (1,), number of labels, 0 included.
        edit, cheaper: as for `align`.
        apart: ends of two matches are at least so many ticks apart.
        most: int64 (lattices,), matches kept in each; 0: the lattice is not searched.
        warm_up: longest match, ticks: longer lattices are searched piece by piece.
        piece: states of a piece that are new.

    Returns:
        int64 (matches, 5): lattice, first tick, tick after the last, cost in units, labels of the query's path; of a lattice
        the best first. And the number of cells.
    """
    query_states = len(query_first) - 1
    rows = np.empty((1024, 5), np.int64)
    count, visited = 0, 0
    for k in range(len(documents) - 1):
        if most[k] == 0:
            continue
        origin, end = documents[k], documents[k + 1]
        begun, done = origin, origin
        best = np.empty(end - origin, np.int64)
        while done < end:
            stop = min(end, done + piece)
            states = stop - begun
            visited += states * query_states
            arcs = slice(first[begun], first[stop])
            inner_first = first[begun : stop + 1] - first[begun]
            inner_label, inner_source = label[arcs].copy(), np.repeat(np.arange(states), np.diff(inner_first))
            of_label = np.zeros(labels[0] + 2, np.int64)
            inside = target[arcs] - begun < states  # others lead out of the piece
            inner_target = np.minimum(target[arcs] - begun, states - 1)
            costs = np.where(inside, cost[arcs], FAR >> (LOW_BITS + 1))
            for a in range(len(inner_label)):
                of_label[inner_label[a] + 1] += inside[a]
            of_label = np.cumsum(of_label)
            by_label = np.empty(max(1, of_label[-1]), np.int64)
            place = of_label.copy()
            for a in range(len(inner_label)):
                if inside[a]:
                    by_label[place[inner_label[a]]] = a
                    place[inner_label[a]] += 1
            of_piece = align(
                query_first, query_target, query_label, query_cost, final, inner_first, inner_source, inner_target,
                inner_label, costs, begin[begun:stop], of_label, by_label, edit, cheaper,
            )  # fmt: skip
            best[done - origin : stop - origin] = of_piece[done - begun :] + (begun - origin)
            done = stop
            begun = done
            while begun > origin and time[done - 1] - time[begun] < warm_up:
                begun -= 1
        # The best ends, one after the other, apart from better ones.
        value = np.full(len(best), np.inf)
        for s in range(len(best)):
            if best[s] < FAR >> 1:
                value[s] = (best[s] >> LOW_BITS) / ((best[s] >> START_BITS) & 1023)
        of_document = count
        for s in np.argsort(value, kind="mergesort"):
            if value[s] == np.inf or count - of_document == most[k]:
                break
            last = time[origin + s]
            close = False
            for n in range(of_document, count):
                close |= abs(rows[n, 2] - last) < apart
            if close:
                continue
            if count == len(rows):
                more = np.empty((2 * count, 5), np.int64)
                more[:count] = rows
                rows = more
            start = best[s] & ((np.int64(1) << START_BITS) - 1)
            rows[count, 0], rows[count, 1], rows[count, 2] = k, time[origin + start], last
            rows[count, 3], rows[count, 4] = best[s] >> LOW_BITS, (best[s] >> START_BITS) & 1023
            count += 1
    return rows[:count].copy(), visited
