"""Sums over the paths of a lattice, by listing every path."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from swsdist.lattices.lattice import Lattice


class Path(NamedTuple):
    """Arcs, the state that they end in, and the cost."""

    arcs: tuple[int, ...]
    end: int
    cost: float


def paths(lattice: Lattice, acoustic_scale: float, lm_scale: float) -> list[Path]:
    """All paths of finite cost from the start to a final state."""
    leaving: dict[int, list[int]] = {}
    for arc, source in enumerate(lattice.source.tolist()):
        leaving.setdefault(source, []).append(arc)

    def cost(graph: float, acoustic: float) -> float:
        return math.inf if math.inf in (graph, acoustic) else lm_scale * graph + acoustic_scale * acoustic

    def walk(state: int, arcs: tuple[int, ...], sum_: float) -> Iterator[Path]:
        final = cost(lattice.final_graph[state], lattice.final_acoustic[state])
        if sum_ + final < math.inf:
            yield Path(arcs, state, sum_ + final)
        for arc in leaving.get(state, []):
            with_arc = sum_ + cost(lattice.graph[arc], lattice.acoustic[arc])
            if with_arc < math.inf:
                yield from walk(int(lattice.target[arc]), (*arcs, arc), with_arc)

    return list(walk(lattice.start, (), 0.0)) if lattice.start >= 0 else []
