"""Kaldi's keyword search by enumeration of every path; see `swsdist.methods.lattice.kaldi`."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from swsdist.lattices.lattice import Lattice
from tests.oracles.phrases import Path, paths


class Sequences(NamedTuple):
    """The chains of a sequence of clusters: their expected number, and the earliest and latest tick.

    `endings`, by the state that they end in: logarithm of their share, and how much later than `start` the earliest starts.
    """

    score: float
    start: int
    end: int
    endings: dict[int, tuple[float, int]]


def cluster_sequences(
    lattice: Lattice, words: Sequence[str], *, longest_silence: int, **scales: float
) -> list[Sequences]:
    """Every sequence of clusters of some words, in the order of the clusters."""
    every = paths(lattice, **scales)
    cluster = _clusters(lattice, {arc for path in every for arc in path.arcs})
    chains: dict[tuple[int, ...], list[tuple[float, int, int]]] = defaultdict(list)  # posterior, start, last state
    for path in every:
        for arcs in _chains(lattice, path, words, longest_silence):
            first, last = lattice.source[arcs[0]], int(lattice.target[arcs[-1]])
            chains[tuple(cluster[arc] for arc in arcs)].append((path.posterior, int(lattice.times[first]), last))
    result = []
    for _, members in sorted(chains.items()):
        score, start = math.fsum(chance for chance, _, _ in members), min(begin for _, begin, _ in members)
        states = {state for _, _, state in members}
        endings = {
            state: (
                math.log(math.fsum(chance for chance, _, last in members if last == state) / score),
                min(begin for _, begin, last in members if last == state) - start,
            )
            for state in states
        }
        result.append(Sequences(score, start, max(int(lattice.times[state]) for state in states), endings))
    return result


def reported(sequences: Sequence[Sequences]) -> list[Sequences]:
    """Of sequences that end alike the best: what the program reports."""
    kept: list[list[Sequences]] = []
    for sequence in sequences:
        alike = next((group for group in kept if _alike(group[0], sequence)), None)
        if alike is None:
            kept.append([sequence])
        else:
            alike.append(sequence)
    return [min(group, key=lambda sequence: (-sequence.score, sequence.start, sequence.end)) for group in kept]


def _alike(left: Sequences, right: Sequences) -> bool:
    return left.endings.keys() == right.endings.keys() and all(
        abs(share - right.endings[state][0]) <= 1 / 1024 and lag == right.endings[state][1]
        for state, (share, lag) in left.endings.items()
    )


def _chains(lattice: Lattice, path: Path, words: Sequence[str], longest_silence: int) -> list[list[int]]:
    """The words' arcs of every occurrence on a path with no longer arc of silence within."""
    spoken = [place for place, arc in enumerate(path.arcs) if lattice.label[arc]]
    result = []
    for first in range(len(spoken) - len(words) + 1):
        places = spoken[first : first + len(words)]
        arcs = [path.arcs[place] for place in places]
        silences = set(path.arcs[places[0] : places[-1]]) - set(arcs)
        lengths = [int(lattice.times[lattice.target[arc]] - lattice.times[lattice.source[arc]]) for arc in silences]
        if [lattice.labels[lattice.label[arc]] for arc in arcs] == list(words) and max(
            lengths, default=0
        ) <= longest_silence:
            result.append(arcs)
    return result


def _clusters(lattice: Lattice, arcs: set[int]) -> dict[int, int]:
    spans = {arc: (int(lattice.times[lattice.source[arc]]), int(lattice.times[lattice.target[arc]])) for arc in arcs}
    heads: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for arc in sorted(arcs, key=lambda arc: spans[arc]):
        head = heads[int(lattice.label[arc])]
        if not head or spans[arc][0] >= head[-1][1]:
            head.append(spans[arc])
    result = {}
    for arc, (start, end) in spans.items():
        overlaps = [max(0, min(end, stop) - max(start, begin)) for begin, stop in heads[int(lattice.label[arc])]]
        result[arc] = overlaps.index(max(overlaps))
    return result
