"""Kaldi's keyword search: the hits of `lattice-to-kws-index --max-states-scale=-1 | kws-index-union | kws-search`.

A hit is not a place but a sequence of clusters. The arcs of a word are clustered: the heads are arcs that follow each
other without overlap, from the first on, and an arc belongs to the head that it overlaps most. All chains of arcs
through the same clusters are one hit: the posteriors add, the start is the earliest, the end (exclusive) the latest. So
a hit's times can be those of no single path, and its score can be more than 1. Silence (label 0) stands between words
only, and no arc of it is longer than a limit. Hits do not depend on other lattices, so those of parts of a collection
can be concatenated.

Of the sequences of clusters that end alike only the best is reported. The program's disambiguation symbols, which
replace the clusters, name states of the determinised index, and two sequences that end in the same states of the
lattice, with the same shares of their posteriors and the same differences of start among them, end in the same state
of the index. That loses hits; it is reproduced here.

Differences: the program rounds weights to 1/1024, so its costs differ by up to 0.0015. It aborts at lattices with
states that no path reaches or leaves; here such states have no hits.

Sources: Can and Saraclar 2011, "Lattice indexing for spoken term detection"; Kaldi (lattice-to-kws-index.cc,
kws-search.cc, kws-functions.cc, by reading them).
"""

from __future__ import annotations

import bisect
import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from swsdist.core.arrays import Bools
from swsdist.methods.lattice.automaton import Written
from swsdist.methods.lattice.places import Places
from swsdist.store.lattice_shards import Lattices

#: Costs that differ by no more are equal to the program.
_DELTA = 1 / 1024


class Alternative(NamedTuple):
    """Words that stand for a keyword (a proxy), and a cost that is added to the costs of their hits."""

    cost: float
    words: Sequence[str]


#: States that chains end in; ln of the posterior of all chains to each, and the earliest start.
_Ends = dict[int, tuple[float, int]]

#: Cost, start and end in ticks.
Best = tuple[float, int, int]

#: By the states where chains end and how much later than the earliest they start: ln of the states' shares, and the best hit.
_Kept = dict[tuple[tuple[int, int], ...], list[tuple[list[float], Best]]]


class _Arc(NamedTuple):
    target: int
    cluster: int
    log_chance: float


class Factors:
    """The factors of a lattice, followed word by word.

    Args:
        times: int (states,), of states in topological order.
        source, target, label: int (arcs,).
        numbers: labels by text.
        log_chances: ln of the probability of each arc, given its source.
        log_visits: ln of the probability to pass each state.
        longest_silence: of an arc of label 0 within a keyword, in the unit of `times`.
    """

    def __init__(
        self,
        times: Sequence[int],
        source: Sequence[int],
        target: Sequence[int],
        label: Sequence[int],
        numbers: Mapping[str, int],
        log_chances: Sequence[float],
        log_visits: Sequence[float],
        longest_silence: int,
    ) -> None:
        self._times, self._labels = times, numbers
        by_label: dict[int, list[int]] = defaultdict(list)
        for arc, number in enumerate(label):
            by_label[number].append(arc)
        self._silences: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for arc in by_label.pop(0, ()):
            if times[target[arc]] - times[source[arc]] <= longest_silence:
                self._silences[source[arc]].append((target[arc], log_chances[arc]))
        #: By label and state.
        self._words: dict[int, dict[int, list[_Arc]]] = defaultdict(lambda: defaultdict(list))
        for number, arcs in by_label.items():
            clusters = _clusters([(times[source[arc]], times[target[arc]]) for arc in arcs])
            for arc, cluster in zip(arcs, clusters, strict=True):
                self._words[number][source[arc]].append(_Arc(target[arc], cluster, log_chances[arc]))
        anywhere = dict(enumerate(zip(log_visits, times, strict=True)))
        #: By the labels of a sequence: where the chains of each of its sequences of clusters end.
        self._reached: dict[tuple[int, ...], list[_Ends]] = {(): [anywhere]}

    def hits(self, alternatives: Iterable[Alternative]) -> list[Best]:
        """Cost (-ln), start and end of the best of all sequences of clusters that end alike."""
        kept: _Kept = defaultdict(list)
        for cost, words in alternatives:
            if all(word in self._labels for word in words):
                for ends in self._ends(tuple(self._labels[word] for word in words)):
                    self._keep(kept, cost, ends)
        return [hit for alike in kept.values() for _, hit in alike]

    def _keep(self, kept: _Kept, cost: float, ends: _Ends) -> None:
        states = sorted(ends)
        total = float(np.logaddexp.reduce([ends[state][0] for state in states]))
        start = min(begin for _, begin in ends.values())
        shares = [ends[state][0] - total for state in states]
        hit = cost - total, start, max(self._times[state] for state in states)
        alike = kept[tuple((state, ends[state][1] - start) for state in states)]
        for place, (first, best) in enumerate(alike):
            if all(abs(left - right) <= _DELTA for left, right in zip(shares, first, strict=True)):
                alike[place] = first, min(best, hit)
                return
        alike.append((shares, hit))

    def _ends(self, labels: tuple[int, ...]) -> list[_Ends]:
        if labels not in self._reached:
            shorter = self._ends(labels[:-1])
            if len(labels) > 1:
                shorter = [self._through_silence(ends) for ends in shorter]
            self._reached[labels] = [longer for ends in shorter for longer in self._extended(ends, labels[-1])]
        return self._reached[labels]

    def _extended(self, ends: _Ends, label: int) -> list[_Ends]:
        """Where chains end after one more word, by its cluster."""
        leaving = self._words[label]
        result: dict[int, _Ends] = defaultdict(dict)
        for state in sorted(ends.keys() & leaving.keys()):
            log_chance, start = ends[state]
            for arc in leaving[state]:
                _add(result[arc.cluster], arc.target, log_chance + arc.log_chance, start)
        return [result[cluster] for cluster in sorted(result)]

    def _through_silence(self, ends: _Ends) -> _Ends:
        """The states from which the next word can start."""
        closed = dict(ends)
        waiting = sorted(closed)
        while waiting:  # in topological order: what comes into a state is complete when it is left
            state = heapq.heappop(waiting)
            for target, log_chance in self._silences.get(state, ()):
                if target not in closed:
                    heapq.heappush(waiting, target)
                _add(closed, target, closed[state][0] + log_chance, closed[state][1])
        return closed


def _add(ends: _Ends, state: int, log_chance: float, start: int) -> None:
    before, earliest = ends.get(state, (-math.inf, start))
    ends[state] = float(np.logaddexp(before, log_chance)), min(earliest, start)


def _clusters(spans: Sequence[tuple[int, int]]) -> list[int]:
    """The cluster of each of a word's arcs, by their starts and ends."""
    starts: list[int] = []  # of the heads
    ends: list[int] = []
    for start, end in sorted(spans):
        if not ends or start >= ends[-1]:
            starts.append(start)
            ends.append(end)
    result = []
    for start, end in spans:
        best, most = 0, 0  # without overlap: the first
        for head in range(bisect.bisect_right(ends, start), bisect.bisect_left(starts, end)):
            overlap = min(end, ends[head]) - max(start, starts[head])
            if overlap > most:
                best, most = head, overlap
        result.append(best)
    return result


def kaldi_places(
    lattices: Lattices,
    written: Sequence[Written],
    numbers: Mapping[str, int],
    gap: int,
    least: float,
    chosen: Bools,
) -> Places:
    """Hits of terms, with their posteriors, at most 1.

    Args:
        lattices: to be searched.
        written: sequences of labels of the terms, without patterns.
        numbers: labels of the shard by text.
        gap: greatest length of a silence arc between two words, ticks.
        least: least posterior of a hit.
        chosen: bool (documents,), those to search.
    """
    alternatives: dict[int, list[Alternative]] = defaultdict(list)
    for item in written:
        alternatives[item.term].append(Alternative(-float(np.log(item.weight)), item.labels))
    rows: list[tuple[int, int, int, int, float]] = []
    for place in np.flatnonzero(chosen).tolist():
        factors = _factors(lattices, place, numbers, gap)
        for number, spoken in alternatives.items():
            for cost, first, last in factors.hits(spoken):
                if (posterior := min(1.0, float(np.exp(-cost)))) >= least:
                    rows.append((number, place, first, last, posterior))
    columns = list(zip(*rows, strict=True)) or [()] * 5
    term, document, start, end = (np.array(column, np.int64) for column in columns[:4])
    return Places(term, document, start, end, np.array(columns[4], np.float64))


def _factors(lattices: Lattices, document: int, numbers: Mapping[str, int], gap: int) -> Factors:
    first, stop = lattices.documents[document : document + 2].tolist()
    arcs = slice(lattices.first[first], lattices.first[stop])
    source = np.repeat(np.arange(stop - first), np.diff(lattices.first[first : stop + 1]))
    with np.errstate(divide="ignore"):
        log_chances, log_visits = np.log(lattices.chances[arcs]), np.log(lattices.visits[first:stop])
    return Factors(
        lattices.times[first:stop].tolist(),
        source.tolist(),
        (source + lattices.steps[arcs]).tolist(),
        lattices.labels[arcs].tolist(),
        numbers,
        log_chances.tolist(),
        log_visits.tolist(),
        gap,
    )
