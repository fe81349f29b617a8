"""Lattices in plain Python: their paths, and phrases by enumeration of every path.

A path is a sequence of arcs from the start to a final state. A phrase occurs on a path where its words follow each other,
silence (label 0) aside: from the start of the arc of its first word to the end of the arc of its last, in ticks.

Source: the definitions of `swsdist.lattices.lattice`.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from swsdist.lattices.lattice import Lattice
from tests.oracles import lattices

#: Start and end, ticks.
Place = tuple[int, int]


class Path(NamedTuple):
    """Arcs of a path, by their places in the lattice, and its posterior."""

    arcs: tuple[int, ...]
    posterior: float


class Occurrences(NamedTuple):
    """Of a phrase at a place: posterior of the paths that have it there, and their mean number of it; words of no length
    can make that larger. `near` is the posterior of those with no gap between words longer than the limit.
    """

    posterior: float
    expected: float
    near: float


def costs(lattice: Lattice, acoustic_scale: float, lm_scale: float) -> tuple[list[float], list[float]]:
    """Of arcs and of ending in states."""
    arcs = lattice.graph * lm_scale + lattice.acoustic * acoustic_scale
    finals = lattice.final_graph * lm_scale + lattice.final_acoustic * acoustic_scale
    return arcs.tolist(), finals.tolist()


def paths(lattice: Lattice, *, acoustic_scale: float = 1.0, lm_scale: float = 1.0) -> list[Path]:
    """Every path of a cost that is not infinite."""
    every = lattices.paths(lattice, acoustic_scale, lm_scale)
    best = min((path.cost for path in every), default=0.0)
    total = math.fsum(math.exp(best - path.cost) for path in every)
    return [Path(path.arcs, math.exp(best - path.cost) / total) for path in every]


def phrases(
    lattice: Lattice, phrase: Sequence[str], *, longest_gap: int = 50, **scales: float
) -> dict[Place, Occurrences]:
    """The places of a phrase; `longest_gap` in ticks, of all silence between two words together."""
    sums: dict[Place, list[list[float]]] = defaultdict(lambda: [[], [], []])
    for path in paths(lattice, **scales):
        words = [arc for arc in path.arcs if lattice.label[arc]]
        here = defaultdict(list)
        for first in range(len(words) - len(phrase) + 1):
            chain = words[first : first + len(phrase)]
            if [lattice.labels[lattice.label[arc]] for arc in chain] == list(phrase):
                begins = [int(lattice.times[lattice.source[arc]]) for arc in chain]
                ends = [int(lattice.times[lattice.target[arc]]) for arc in chain]
                gaps = [begin - end for begin, end in zip(begins[1:], ends, strict=False)]
                here[begins[0], ends[-1]].append(all(gap <= longest_gap for gap in gaps))
        for place, near in here.items():
            for values, times in zip(sums[place], (1, len(near), any(near)), strict=True):
                values.append(times * path.posterior)
    return {place: Occurrences(*map(math.fsum, values)) for place, values in sums.items()}


def places(
    lattice: Lattice, weight: Callable[[tuple[str, ...]], float], longest: int, longest_gap: float = math.inf
) -> dict[Place, float]:
    """Sum over paths, by place, of posterior times the largest weight of the word sequences that the path has there.

    A sequence of weight 0 is not searched; none is longer than `longest`; `longest_gap`, ticks, is of silence between words.
    """
    sums: dict[Place, list[float]] = defaultdict(list)
    for path in paths(lattice):
        words = [arc for arc in path.arcs if lattice.label[arc]]
        here: dict[Place, float] = {}
        for first in range(len(words)):
            for stop in range(first + 1, min(first + longest, len(words)) + 1):
                chain = words[first:stop]
                begins = [int(lattice.times[lattice.source[arc]]) for arc in chain]
                ends = [int(lattice.times[lattice.target[arc]]) for arc in chain]
                if all(begin - end <= longest_gap for begin, end in zip(begins[1:], ends, strict=False)):
                    value = weight(tuple(lattice.labels[lattice.label[arc]] for arc in chain))
                    if value:
                        place = begins[0], ends[-1]
                        here[place] = max(value, here.get(place, 0.0))
        for place, value in here.items():
            sums[place].append(value * path.posterior)
    return {place: math.fsum(values) for place, values in sums.items()}


def pattern(term: str) -> re.Pattern[str]:
    """What matches the words of a pattern, each with a blank after it."""
    parts = []
    for token in re.findall(r"[()|]|[^()|\s]+", term):
        if token in "()|":
            parts.append("(?:" if token == "(" else token)
        elif token == "*":
            parts.append(r"(?:\S+ ){0,3}")
        elif token == "?":
            parts.append(r"\S+ ")
        else:
            signs = {"?": r"\S", "*": r"\S*"}
            parts.append("".join(signs.get(sign, re.escape(sign)) for sign in token) + " ")
    return re.compile("".join(parts))
