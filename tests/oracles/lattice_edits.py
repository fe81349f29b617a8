"""Alignment of two lattices by listing every path of the one and every stretch of a path of the other."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

#: More than any cost.
FAR = 10**15


class Arcs(NamedTuple):
    """A lattice whose states are in topological order, the last one final: (target, label, cost) of the arcs by source."""

    leaving: Sequence[Sequence[tuple[int, int, int]]]

    def from_state(self, state: int) -> Iterator[tuple[int, tuple[int, ...], int]]:
        """End, labels and cost of every stretch from a state, the empty one too."""
        yield state, (), 0
        for target, label, cost in self.leaving[state]:
            for end, labels, more in self.from_state(target):
                yield end, (label, *labels), cost + more


def edits(query: tuple[int, ...], document: tuple[int, ...], edit: int, cheaper: Mapping[tuple[int, int], int]) -> int:
    """Least cost of edits; label 0 is free on either side; the document's first and last are substitutes of the query's."""

    @cache
    def cost(i: int, j: int) -> int:
        if i == len(query):
            return 0 if j == len(document) else FAR
        best = cost(i + 1, j) + (edit if query[i] else 0)
        if j < len(document):
            if query[i] and document[j]:
                best = min(best, cost(i + 1, j + 1) + min(edit, cheaper.get((query[i], document[j]), edit)))
            if 0 < j < len(document) - 1:
                best = min(best, cost(i, j + 1) + (edit if document[j] else 0))
        return best

    return cost(0, 0) if document else FAR


def alignments(
    query: Arcs, document: Arcs, begin: Sequence[int], edit: int, cheaper: Mapping[tuple[int, int], int]
) -> dict[int, tuple[int, int, int]]:
    """By end state of the document: cost, labels of the query's path, and start state of the best; ties by these."""
    final = len(query.leaving) - 1
    best: dict[int, tuple[int, int, int]] = {}
    for end, labels, cost in query.from_state(0):
        if end != final:
            continue
        for start in range(len(document.leaving)):
            for stop, heard, more in document.from_state(start):
                total = begin[start] + cost + more + edits(labels, heard, edit, cheaper)
                if total < FAR:
                    value = total, sum(label > 0 for label in labels), start
                    best[stop] = min(best.get(stop, value), value)
    return best
