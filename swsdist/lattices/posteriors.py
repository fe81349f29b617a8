"""Posteriors, best paths and pruning of lattices.

The cost of an arc is lm_scale * graph + acoustic_scale * acoustic; of a lattice of `probabilities`, without the scales.
alpha of a state is the log of the sum of exp(-cost) over the paths from the start to it, beta that from it to the end, with
final costs. A path's posterior is exp(-its cost - total), total being beta of the start; an arc's the sum of those of its
paths. Everything is in doubles and logs, since costs reach 1e5.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import lattices as codes
from swsdist.kernels.lattices import accumulate, grouped, reachable, topological
from swsdist.lattices.lattice import Floats, Ints, Lattice

Flags = NDArray[np.bool_]


class Posteriors(NamedTuple):
    """Sums over the paths of a lattice.

    Attributes:
        total: log of the sum over all paths; -inf: there is none.
        alpha, beta: of each state; -inf: no complete path of finite cost uses it.
        arcs: posterior of each arc, 0 to 1.
        finals: posterior of ending in each state.
        pushed: of each arc, the chance to leave its source by it, 0 if no path does.
    """

    total: float
    alpha: Floats
    beta: Floats
    arcs: Floats
    finals: Floats
    pushed: Floats


class Best(NamedTuple):
    """A path of least cost: its cost, infinite if there is no path, and its arcs in order."""

    cost: float
    arcs: Ints


class _Graph(NamedTuple):
    """The part of a lattice that complete paths use: states in order, whether each arc belongs, and arcs by state."""

    order: Ints
    arcs: Flags
    leaving: tuple[Ints, Ints]
    entering: tuple[Ints, Ints]


def connect(lattice: Lattice) -> Lattice:
    """The states and arcs that complete paths of finite cost use.

    States are numbered so that an arc leads to a higher number; of those that may come next the earliest, then the lowest
    in number, is next. Arcs are sorted by source, and of a source remain in order.

    Raises:
        DataError: there is a cycle.
    """
    graph = _graph(lattice)
    number = np.full(lattice.states, -1)
    number[graph.order] = np.arange(len(graph.order))
    arcs = np.flatnonzero(graph.arcs)
    arcs = arcs[np.argsort(number[lattice.source[arcs]], kind="stable")]
    return replace(
        lattice,
        times=lattice.times[graph.order],
        source=number[lattice.source[arcs]],
        target=number[lattice.target[arcs]],
        label=lattice.label[arcs],
        graph=lattice.graph[arcs],
        acoustic=lattice.acoustic[arcs],
        final_graph=lattice.final_graph[graph.order],
        final_acoustic=lattice.final_acoustic[graph.order],
        start=0 if len(graph.order) else -1,
    )


def costs(lattice: Lattice, acoustic_scale: float = 1.0, lm_scale: float = 1.0) -> tuple[Floats, Floats]:
    """Costs of each arc and of ending in each state."""
    if lattice.probabilities:
        acoustic_scale = lm_scale = 1.0
    return (
        _scaled(lattice.graph, lattice.acoustic, acoustic_scale, lm_scale),
        _scaled(lattice.final_graph, lattice.final_acoustic, acoustic_scale, lm_scale),
    )


def forward_backward(lattice: Lattice, acoustic_scale: float = 1.0, lm_scale: float = 1.0) -> Posteriors:
    """Posteriors of a lattice, connected or not.

    Raises:
        DataError: there is a cycle.
    """
    arc_costs, final_costs = costs(lattice, acoustic_scale, lm_scale)
    alpha, beta, _ = _sums(lattice, arc_costs, final_costs, best=False)
    total = float(beta[lattice.start]) if lattice.states else -np.inf
    arcs, pushed = np.zeros(len(arc_costs)), np.zeros(len(arc_costs))
    # Infinite sums have no difference.
    used = np.isfinite(alpha[lattice.source]) & np.isfinite(beta[lattice.target]) & np.isfinite(arc_costs)
    source, onward = lattice.source[used], beta[lattice.target[used]] - arc_costs[used]
    # At most 1: sums are rounded.
    arcs[used] = np.exp(np.minimum(alpha[source] + onward - total, 0.0))
    pushed[used] = np.exp(np.minimum(onward - beta[source], 0.0))
    finals = np.zeros(lattice.states)
    ends = np.isfinite(alpha) & np.isfinite(final_costs)
    finals[ends] = np.exp(np.minimum(alpha[ends] - final_costs[ends] - total, 0.0))
    return Posteriors(total, alpha, beta, arcs, finals, pushed)


def best(lattice: Lattice, acoustic_scale: float = 1.0, lm_scale: float = 1.0) -> Best:
    """A path of least cost; of several, it ends as soon as it can, and takes the first arcs.

    Raises:
        DataError: there is a cycle.
    """
    arc_costs, final_costs = costs(lattice, acoustic_scale, lm_scale)
    _, beta, graph = _sums(lattice, arc_costs, final_costs, best=True)
    state = lattice.start
    if not len(graph.order):
        return Best(np.inf, np.empty(0, np.int64))
    offsets, items = graph.leaving
    path = []
    while -final_costs[state] < beta[state]:
        arcs = items[offsets[state] : offsets[state + 1]]
        path.append(arcs[np.argmax(beta[lattice.target[arcs]] - arc_costs[arcs])])
        state = lattice.target[path[-1]]
    return Best(float(-beta[lattice.start]), np.array(path, np.int64))


def best_through(lattice: Lattice, acoustic_scale: float = 1.0, lm_scale: float = 1.0) -> Floats:
    """How much more than a best path the best path through each arc costs; infinite: no path uses it.

    Raises:
        DataError: there is a cycle.
    """
    arc_costs, final_costs = costs(lattice, acoustic_scale, lm_scale)
    alpha, beta, _ = _sums(lattice, arc_costs, final_costs, best=True)
    through = arc_costs - alpha[lattice.source] - beta[lattice.target]
    used = np.isfinite(through)
    through[used] += beta[lattice.start] if used.any() else 0.0
    through[~used] = np.inf
    return through


def _scaled(graph: Floats, acoustic: Floats, acoustic_scale: float, lm_scale: float) -> Floats:
    finite = np.isfinite(graph) & np.isfinite(acoustic)  # a scale of 0 must not make infinity a number
    result = np.full(len(graph), np.inf)
    result[finite] = lm_scale * graph[finite] + acoustic_scale * acoustic[finite]
    return result


def _graph(lattice: Lattice) -> _Graph:
    leaving, entering = grouped(lattice.source, lattice.states), grouped(lattice.target, lattice.states)
    usable = np.isfinite(lattice.graph) & np.isfinite(lattice.acoustic)
    beginnings = np.zeros(lattice.states, np.bool_)
    beginnings[lattice.start :][:1] = lattice.states > 0
    ends = np.isfinite(lattice.final_graph) & np.isfinite(lattice.final_acoustic)
    states = reachable(beginnings, lattice.target, usable, *leaving)
    states &= reachable(ends, lattice.source, usable, *entering)
    arcs = usable & states[lattice.source] & states[lattice.target]
    by_rank = np.argsort(lattice.times, kind="stable")
    rank = np.empty(lattice.states, np.int64)
    rank[by_rank] = np.arange(lattice.states)
    order = topological(lattice.target, arcs, states, by_rank, rank, *leaving)
    if len(order) < np.count_nonzero(states):
        raise codes.LATTICE_CYCLE(where=lattice.key)
    return _Graph(order, arcs, leaving, entering)


def _sums(lattice: Lattice, arc_costs: Floats, final_costs: Floats, *, best: bool) -> tuple[Floats, Floats, _Graph]:
    """Logs of the sums over (or the best of) the paths to and from each state, and the graph."""
    graph = _graph(lattice)
    alpha, beta = np.full((2, lattice.states), -np.inf)
    alpha[graph.order[:1]] = 0.0
    beta[graph.order] = -final_costs[graph.order]
    used = np.where(graph.arcs, arc_costs, np.inf)
    accumulate(graph.order, lattice.source, *graph.entering, used, best, alpha)
    accumulate(graph.order[::-1].copy(), lattice.target, *graph.leaving, used, best, beta)
    return alpha, beta, graph
