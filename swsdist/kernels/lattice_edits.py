"""Alignment of a query's lattice with a document's, every path with every path, edits allowed.

The cost of a path r of the query and a path u of the document, from any state to any other, is

    -ln P(r) - ln visits(first state of u) - ln P(u given that state) + the edits between their labels,

a substitution, an insertion (a label of the document alone) and a deletion (a label of the query alone) costing `edit` each, but
for cheaper substitutions that are listed. Label 0, no word, costs no edit on either side. Insertions stand between labels of the
query only.

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
