"""Phrases at places by OpenFst, in the log semiring of doubles: timed factor transducers, and the paths through a place.

A timed factor transducer has a path for every chain of arcs of a lattice: it reads the arcs' words, and writes the time
where the chain starts and the one where it ends. Composed with a phrase it gives the expected count at each place. The
posterior is that of the paths that have the phrase there: the lattice composed with a deterministic acceptor of such paths.

pynini takes and gives weights with 9 digits, so posteriors agree to about 1e-7.

Source: Can and Saraclar 2011, "Lattice indexing for spoken term detection".
"""

import math
from collections.abc import Sequence

import pynini
import pywrapfst

from swsdist.lattices.lattice import Lattice
from tests.oracles.phrases import Place, costs

_ARCS, _SILENCE = "log64", 1  # label k is the symbol k + 1: 0 is epsilon
_DELTA = 1e-15  # sums smaller than it are left out


def phrase_counts(lattice: Lattice, phrase: Sequence[str], **scales: float) -> dict[Place, float]:
    """Expected count of a phrase at each place where it occurs."""
    words = _labels(lattice, phrase)
    pushed = _pushed(lattice, [label + 1 for label in lattice.label.tolist()], **scales)
    if words is None or pushed.start() < 0:
        return {}
    forward, backward = (
        dict(enumerate(map(_cost, pynini.shortestdistance(pushed, delta=_DELTA, reverse=reverse))))
        for reverse in (False, True)
    )
    factors = pynini.Fst(arc_type=_ARCS)
    factors.add_states(lattice.states)
    for state in pushed.states():
        for arc in pushed.arcs(state):
            if backward.get(arc.nextstate, math.inf) < math.inf:
                factors.add_arc(state, pywrapfst.Arc(arc.ilabel, 0, arc.weight, arc.nextstate))
    first, last = factors.add_state(), factors.add_state()
    factors.set_start(first)
    factors.set_final(last)
    for state, time in enumerate(lattice.times.tolist()):
        if forward.get(state, math.inf) < math.inf:
            factors.add_arc(first, pywrapfst.Arc(0, time + 1, _weight(forward[state]), state))
            factors.add_arc(state, pywrapfst.Arc(0, time + 1, _weight(0.0), last))

    spoken = pynini.Fst(arc_type=_ARCS)
    spoken.add_states(len(words) + 1)
    spoken.set_start(0)
    spoken.set_final(len(words))
    for k, label in enumerate(words):
        spoken.add_arc(k, pywrapfst.Arc(label + 1, label + 1, _weight(0.0), k + 1))
        if k:
            spoken.add_arc(k, pywrapfst.Arc(_SILENCE, _SILENCE, _weight(0.0), k))
    places = pynini.compose(spoken, factors.arcsort("ilabel")).project("output").rmepsilon(delta=_DELTA)
    places = pynini.determinize(places, delta=_DELTA)
    return {
        (begin.ilabel - 1, end.ilabel - 1): math.exp(
            -sum(map(_cost, (begin.weight, end.weight, places.final(end.nextstate))))
        )
        for begin in (places.arcs(places.start()) if places.num_states() else ())
        for end in places.arcs(begin.nextstate)
    }


def phrase_posteriors(lattice: Lattice, phrase: Sequence[str], **scales: float) -> dict[Place, float]:
    """Posterior of the paths that have a phrase at each place where it occurs."""
    pushed = _pushed(lattice, range(1, len(lattice.label) + 1), **scales)
    result = {}
    for place in phrase_counts(lattice, phrase, **scales):
        through = pynini.compose(pushed, _through(lattice, phrase, place))
        result[place] = math.exp(-_cost(pynini.shortestdistance(through, reverse=True, delta=_DELTA)[through.start()]))
    return result


def _pushed(lattice: Lattice, symbols: Sequence[int], acoustic_scale: float = 1.0, lm_scale: float = 1.0) -> pynini.Fst:
    """The lattice as an acceptor, its states the same, pushed to the start: of total weight one."""
    fst = pynini.Fst(arc_type=_ARCS)
    fst.add_states(lattice.states)
    if lattice.start >= 0:
        fst.set_start(lattice.start)
    arcs, finals = costs(lattice, acoustic_scale, lm_scale)
    for source, target, symbol, cost in zip(
        lattice.source.tolist(), lattice.target.tolist(), symbols, arcs, strict=True
    ):
        if cost < math.inf:
            fst.add_arc(source, pywrapfst.Arc(symbol, symbol, _weight(cost), target))
    for state, cost in enumerate(finals):
        if cost < math.inf:
            fst.set_final(state, _weight(cost))
    return pynini.push(fst, push_weights=True, remove_total_weight=True, reweight_type="to_initial", delta=_DELTA)


def _through(lattice: Lattice, phrase: Sequence[str], place: Place) -> pynini.Fst:
    """Accepts the sequences of arcs, each a symbol, that have a phrase at a place."""
    words = _labels(lattice, phrase) or []
    fst = pynini.Fst()
    fst.add_states(len(words) + 1)
    fst.set_start(0)
    fst.set_final(len(words))
    for symbol, (label, source, target) in enumerate(
        zip(lattice.label.tolist(), lattice.source.tolist(), lattice.target.tolist(), strict=True), 1
    ):
        for k, word in enumerate(words):
            if (
                label == word
                and (k > 0 or lattice.times[source] == place[0])
                and (k < len(words) - 1 or lattice.times[target] == place[1])
            ):
                fst.add_arc(k, pywrapfst.Arc(symbol, symbol, 0, k + 1))
            if k > 0 and label == 0:
                fst.add_arc(k, pywrapfst.Arc(symbol, symbol, 0, k))
        for k in (0, len(words)):
            fst.add_arc(k, pywrapfst.Arc(symbol, symbol, 0, k))
    accepted: pynini.Fst = pynini.arcmap(pynini.determinize(fst), map_type="to_log64").arcsort("ilabel")
    return accepted


def _labels(lattice: Lattice, phrase: Sequence[str]) -> list[int] | None:
    """None: the lattice lacks a word."""
    known = {text: label for label, text in enumerate(lattice.labels) if label}
    return [known[word] for word in phrase] if known.keys() >= set(phrase) else None


def _weight(cost: float) -> pywrapfst.Weight:
    return pywrapfst.Weight(_ARCS, cost)


def _cost(weight: pywrapfst.Weight) -> float:
    return float(str(weight))
