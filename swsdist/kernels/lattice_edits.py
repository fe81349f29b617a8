"""Alignment of a query's lattice with a document's, every path with every path, edits allowed.

The cost of a path r of the query and a path u of the document, from any state to any other, is

    -ln P(r) - ln visits(first state of u) - ln P(u given that state) + the edits between their labels,

a substitution, an insertion (a label of the document alone) and a deletion (a label of the query alone) costing `edit` each,
but for cheaper substitutions that are listed. Label 0, no word, costs no edit on either side. Insertions stand between labels
of the query only.

A cell (query state i, document state s) has the least cost of paths that have come there, as one integer: the cost in units of
1/1024 in the high bits, then the labels of r, then the state at which u began, so ties go to the shorter r and to the earlier
start. For each query state one pass over the document's arcs gives the best way into each of its states by any arc; labels of
the query differ from that only at arcs of their own label.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.compiled import compiled

#: Units of a cost of 1.
UNIT = 1024
#: Bits of the start state, and of it and the labels of r.
START_BITS, LOW_BITS = 28, 38
#: States of a document that are aligned at once.
PIECE = 1 << 14
#: More than any cost.
FAR = np.int64(1) << 61


@compiled(
    "void(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1],"
    " int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1],"
    " int64, int64[:,::1], int64[:,::1], int64[::1], int64[::1], int64[::1])"
)
def align(
    query_first: NDArray[np.int64],
    query_target: NDArray[np.int64],
    query_label: NDArray[np.int64],
    query_cost: NDArray[np.int64],
    final: NDArray[np.int64],
    first: NDArray[np.int64],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    label: NDArray[np.int64],
    cost: NDArray[np.int64],
    begin: NDArray[np.int64],
    of_label: NDArray[np.int64],
    by_label: NDArray[np.int64],
    edit: int,
    cheaper: NDArray[np.int64],
    cells: NDArray[np.int64],
    any_arc: NDArray[np.int64],
    substituted: NDArray[np.int64],
    best: NDArray[np.int64],
) -> None:
    """The least cell of any final query state, by document state.

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
        cells: int64 (query states, states), for work.
        any_arc, substituted: int64 (states,), for work.
        best: int64 (states,), written; FAR or more: nothing ends there.
    """
    states = len(first) - 1
    longer = np.int64(1) << START_BITS
    edit_cost = np.int64(edit) << LOW_BITS
    cells[:, :] = FAR
    best[:] = FAR
    for s in range(states):
        if begin[s] < FAR:
            cells[0, s] = (begin[s] << LOW_BITS) | s
    for i in range(len(query_first) - 1):
        row = cells[i]
        inside = i > 0 and query_first[i] < query_first[i + 1]
        for s in range(states):
            any_arc[s] = FAR
        for s in range(states):
            if inside and any_arc[s] + edit_cost < row[s]:
                row[s] = any_arc[s] + edit_cost
            here = row[s]
            if here >= FAR:
                continue
            for a in range(first[s], first[s + 1]):
                value = here + (cost[a] << LOW_BITS)
                t = target[a]
                if label[a] != 0:
                    any_arc[t] = min(any_arc[t], value)
                elif inside:
                    row[t] = min(row[t], value)
        if final[i] < FAR:
            ending = final[i] << LOW_BITS
            for s in range(states):
                best[s] = min(best[s], row[s] + ending)
        a = query_first[i]
        while a < query_first[i + 1]:
            of = query_label[a]
            if of > 0:
                for s in range(states):
                    substituted[s] = any_arc[s] + edit_cost
                for k in range(len(cheaper)):
                    if cheaper[k, 0] == of:
                        less = cheaper[k, 2] << LOW_BITS
                        for e in range(of_label[cheaper[k, 1]], of_label[cheaper[k, 1] + 1]):
                            arc = by_label[e]
                            value = row[source[arc]] + (cost[arc] << LOW_BITS) + less
                            substituted[target[arc]] = min(substituted[target[arc]], value)
            while a < query_first[i + 1] and query_label[a] == of:
                taken = query_cost[a] << LOW_BITS
                into = cells[query_target[a]]
                if of == 0:
                    for s in range(states):
                        into[s] = min(into[s], row[s] + taken)
                else:
                    taken += longer
                    for s in range(states):
                        into[s] = min(into[s], min(substituted[s], row[s] + edit_cost) + taken)
                a += 1


@compiled(
    "Tuple((int64[:,::1], int64))"
    "(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1],"
    " int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1],"
    " int64, int64[:,::1], int64, int64[::1], int64)"
)
def search(
    query_first: NDArray[np.int64],
    query_target: NDArray[np.int64],
    query_label: NDArray[np.int64],
    query_cost: NDArray[np.int64],
    final: NDArray[np.int64],
    documents: NDArray[np.int64],
    first: NDArray[np.int64],
    target: NDArray[np.int64],
    label: NDArray[np.int64],
    cost: NDArray[np.int64],
    begin: NDArray[np.int64],
    time: NDArray[np.int64],
    labels: NDArray[np.int64],
    edit: int,
    cheaper: NDArray[np.int64],
    apart: int,
    most: NDArray[np.int64],
    warm_up: int,
) -> tuple[NDArray[np.int64], int]:
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
        begun, done = documents[k], documents[k]
        end = documents[k + 1]
        kept_first = count
        while done < end:
            stop = min(end, max(done + PIECE, begun + PIECE))
            states = stop - begun
            visited += states * query_states
            arcs = slice(first[begun], first[stop])
            inner_first = first[begun : stop + 1] - first[begun]
            inner_target = target[arcs] - begun
            inner_label, inner_cost = label[arcs].copy(), cost[arcs]
            inner_source = np.empty(len(inner_target), np.int64)
            for s in range(states):
                inner_source[inner_first[s] : inner_first[s + 1]] = s
            of_label = np.zeros(labels[0] + 2, np.int64)
            inside = inner_target < states
            for a in range(len(inner_label)):
                if not inside[a]:  # it leads out of the piece
                    inner_target[a] = states - 1
                of_label[inner_label[a] + 1] += inside[a]
            of_label = np.cumsum(of_label)
            by_label = np.empty(max(1, of_label[-1]), np.int64)
            place = of_label.copy()
            for a in range(len(inner_label)):
                if inside[a]:
                    by_label[place[inner_label[a]]] = a
                    place[inner_label[a]] += 1
            costs = inner_cost.copy()
            for a in range(len(costs)):
                if not inside[a]:
                    costs[a] = FAR >> (LOW_BITS + 1)
            cells = np.empty((query_states, states), np.int64)
            any_arc, substituted, best = (
                np.empty(states, np.int64),
                np.empty(states, np.int64),
                np.empty(states, np.int64),
            )
            align(
                query_first, query_target, query_label, query_cost, final, inner_first, inner_source, inner_target,
                inner_label, costs, begin[begun:stop], of_label, by_label, edit, cheaper, cells, any_arc, substituted, best,
            )  # fmt: skip
            # The best ends, one after the other, apart from better ones.
            taken = np.zeros(states, np.bool_)
            for _ in range(most[k]):
                chosen, least = -1, np.inf
                for s in range(done - begun, states):
                    if taken[s] or best[s] >= FAR >> 1:
                        continue
                    value = (best[s] >> LOW_BITS) / max(1, (best[s] >> START_BITS) & 1023)
                    if value < least:
                        chosen, least = s, value
                if chosen < 0:
                    break
                middle = time[begun + chosen]
                for s in range(states):
                    taken[s] |= abs(time[begun + s] - middle) < apart
                if count == len(rows):
                    longer = np.empty((2 * count, 5), np.int64)
                    longer[:count] = rows
                    rows = longer
                start = best[chosen] & ((np.int64(1) << START_BITS) - 1)
                rows[count, 0], rows[count, 1], rows[count, 2] = k, time[begun + start], middle
                rows[count, 3] = best[chosen] >> LOW_BITS
                rows[count, 4] = max(1, (best[chosen] >> START_BITS) & 1023)
                count += 1
            done = stop
            begun = done
            while begun > documents[k] and time[done - 1] - time[begun] < warm_up:
                begun -= 1
        # Of several pieces the best are kept.
        if count - kept_first > most[k]:
            some = rows[kept_first:count].copy()
            order = np.argsort(some[:, 3] / some[:, 4], kind="mergesort")
            for n in range(most[k]):
                rows[kept_first + n] = some[order[n]]
            count = kept_first + most[k]
    return rows[:count].copy(), visited
