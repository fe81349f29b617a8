"""Places at which one path may hold a term twice: only where words of no length stand at one of its ends.

There the sum over chains counts such a path twice. Its posterior is the sum over paths instead, each by the likeliest of the
sequences that it holds: a path is followed with the set of occurrences that it has begun at the place's start, until one ends
at the place's end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from swsdist.methods.lattice.automaton import Automaton
from swsdist.store.lattice_shards import Lattices

#: Occurrences that a path has begun: the automaton's node, and the time of the end of its last word.
_Begun = frozenset[tuple[int, int]]
#: Of a path that has held the term at the place.
_DONE: _Begun = frozenset([(-1, -1)])


class ZeroLength:
    """The words of no length in some lattices: at which ticks of a lattice they stand.

    Args:
        lattices: any.
        labels: int32 (arcs,), columns of the automaton.
        machine: the terms.
        gap: greatest time between two words, ticks.
        any_empty: whether there are any.
    """

    def __init__(
        self, lattices: Lattices, labels: NDArray[np.int32], machine: Automaton, gap: int, any_empty: bool
    ) -> None:
        self._lattices, self._labels, self._machine, self._gap = lattices, labels, machine, gap
        self._at: set[tuple[int, int]] = set()
        if not any_empty:
            return
        source = np.repeat(np.arange(len(lattices.times)), np.diff(lattices.first))
        empty = np.flatnonzero((labels > 0) & (lattices.times[source] == lattices.times[source + lattices.steps]))
        document = np.searchsorted(lattices.documents, source[empty], side="right") - 1
        ticks = lattices.times[source[empty]].tolist()
        self._at = set(zip(document.tolist(), ticks, strict=True))

    def __bool__(self) -> bool:
        return bool(self._at)

    def repeats(self, document: int, start: int, end: int) -> bool:
        """Whether a path may hold a term twice at a place."""
        return (document, start) in self._at or (document, end) in self._at

    def posterior(self, term: int, document: int, start: int, end: int) -> float:
        """Sum over the paths that hold a term at a place, by the greatest of its weights there."""
        accepts = self._machine.accepts
        entries = np.flatnonzero(self._machine.terms == term)
        nodes, weights = np.searchsorted(accepts, entries, side="right") - 1, self._machine.weights[entries]
        total, greater = 0.0, np.inf
        for weight in (*np.unique(weights)[::-1].tolist(), 0.0):
            if greater < np.inf:
                paths = self._paths(frozenset(nodes[weights >= greater].tolist()), document, start, end)
                total += (greater - weight) * paths
            greater = weight
        return total

    def _paths(self, accepting: frozenset[int], document: int, start: int, end: int) -> float:
        """Probability of the paths that reach one of some nodes at a place."""
        lattices, machine = self._lattices, self._machine
        first, stop = lattices.documents[document : document + 2].tolist()
        # Where words overlap, time goes back.
        ahead = np.minimum.accumulate(lattices.times[first:stop][::-1])[::-1]
        reached: dict[int, dict[_Begun, float]] = {}
        total = 0.0
        for state in range(first, stop):
            time = int(lattices.times[state])
            paths = reached.pop(state, {})
            # Paths that did not pass a state of the start's time before this one.
            if time == start:
                fresh = lattices.visits[state] - sum(paths.values())
                paths[frozenset()] = paths.get(frozenset(), 0.0) + max(0.0, fresh)
            for begun, chance in paths.items():
                active = begun | ({(0, time)} if time == start else frozenset())
                for arc in range(lattices.first[state], lattices.first[state + 1]):
                    target = state + int(lattices.steps[arc])
                    then = int(lattices.times[target])
                    if ahead[target - first] > end:
                        continue
                    label, part = int(self._labels[arc]), chance * float(lattices.chances[arc])
                    into = reached.setdefault(target, {})
                    if begun == _DONE:
                        into[_DONE] = into.get(_DONE, 0.0) + part
                        continue
                    after = frozenset(
                        (int(machine.child[node, label]), then) if label else (node, last)
                        for node, last in active
                        if (machine.child[node, label] >= 0 and (node == 0 or time - last <= self._gap))
                        or (not label and node)
                    )
                    if label and then == end and any(node in accepting for node, _ in after):
                        total += part
                        after = _DONE
                    into[after] = into.get(after, 0.0) + part
        return min(total, 1.0)
