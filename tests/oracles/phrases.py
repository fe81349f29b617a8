"""Lattices in plain Python: their text, their paths, and phrases by enumeration of every path.

A path is a sequence of arcs from the start to a final state. A phrase occurs on a path where its words follow each other,
silence (label 0) aside: from the start of the arc of its first word to the end of the arc of its last, in ticks.

Source: the definitions of `swsdist.lattices.lattice`; Kaldi's documentation of its lattices (compact lattices as text).
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

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


def read_compact(text: str, words: Mapping[int, str] | None = None, tick: float = 0.01) -> list[Lattice]:
    """Lattices of an archive of compact lattices as text; a label without a name in `words` is its integer."""
    result, lines = [], iter(text.splitlines())
    for line in lines:
        if line.strip():
            rows = []
            for row in lines:
                if not row.strip():
                    break
                rows.append(row.split())
            result.append(_lattice(line.strip(), rows, words or {}, tick))
    return result


def _lattice(key: str, rows: list[list[str]], words: Mapping[int, str], tick: float) -> Lattice:
    arcs, finals = [], {}
    for row in rows:
        graph, acoustic, ids = (row[-1] if len(row) in (2, 4) else "0,0,").split(",")
        frames = len(ids.split("_")) if ids else 0
        if len(row) <= 2:
            finals[int(row[0])] = (float(graph), float(acoustic), frames)
        else:
            source, target, word = map(int, row[:3])
            arcs.append((source, target, word, float(graph), float(acoustic), frames))
    states = 1 + max((state for row in rows for state in map(int, row[: 1 if len(row) <= 2 else 2])), default=-1)
    start = int(rows[0][0]) if rows else -1
    known = {start: 0}
    for _ in range(states):
        known |= {target: known[source] + frames for source, target, *_, frames in arcs if source in known}
    numbers = sorted({arc[2] for arc in arcs} - {0})
    place = {0: 0, **{number: k for k, number in enumerate(numbers, 1)}}
    final = np.full((2, states), math.inf)
    for state, costs in finals.items():
        final[:, state] = costs[:2]
    ends = [known[state] + frames for state, (*_, frames) in finals.items() if state in known]
    times = np.array([known.get(state, 0) for state in range(states)], np.int64)
    sources, targets = (np.array([arc[k] for arc in arcs], np.int64) for k in (0, 1))
    labels = np.array([place[arc[2]] for arc in arcs], np.int64)
    graphs, acoustics = (np.array([arc[k] for arc in arcs], np.float64) for k in (3, 4))
    texts = ("", *(words.get(number, str(number)) for number in numbers))
    length = max([*known.values(), *ends])
    arrays = sources, targets, labels, graphs, acoustics, final[0], final[1]
    return Lattice(key, tick, times, *arrays, texts, start, length)


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
