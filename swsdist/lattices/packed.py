"""Lattices as they are searched: scaled, connected, pushed and pruned; their posteriors and best paths.

Costs: that of an arc is lm_scale * graph + acoustic_scale * acoustic; of a lattice of `probabilities`, without the
scales. alpha of a state is the log of the sum of exp(-cost) over the paths from the start to it, beta that from it to
the end, with final costs. A path's posterior is exp(-its cost - total), total being beta of the start; an arc's the sum
of those of its paths. Everything is in doubles and logs, since costs reach 1e5.

A packed lattice has arrays by state and by arc. A chain of arcs from a state has the posterior visits[state] x product
of the chances of its arcs. These are shares of the whole lattice, also where arcs are pruned: the rest keeps its
posterior.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeFloat, PositiveFloat

from swsdist.config.section import Section
from swsdist.core.arrays import Bools, Floats, Ints
from swsdist.core.codes import families
from swsdist.core.errors import DataError
from swsdist.kernels.lattices import accumulate, grouped, reachable, topological
from swsdist.lattices.lattice import BREAK, MILLISECOND, Lattice, LeftOut, Word
from swsdist.lattices.words import Spelling, spelled


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
    arcs: Bools
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
        raise families.DAMAGED_LATTICE(
            "the lattice has a cycle: a path can return to a state that it left",
            "write a lattice without cycles; programs that prune or determinise lattices do",
            where=lattice.key,
        )
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


#: Seconds per tick of a store of lattices.
TICK = MILLISECOND
#: Labels that are no words in what common recognisers write.
FILLERS = (
    *("<s>", "</s>", "<eps>", "!NULL", "!SIL", "!ENTER", "!EXIT", "!SENT_START", "!SENT_END"),
    *(
        f"{mark[0]}{name}{mark[1]}"
        for name in ("sil", "silence", "noise", "laughter", "breath", "cough")
        for mark in ("<>", "[]")
    ),
)
#: Words that a recogniser does not know, folded: spoken, so no phrase spans them, and none has such a word.
_UNKNOWN = ("<unk>", "[unk]", "<oov>", "[oov]", "<spoken_noise>", "[inaudible]")


class Recipe(Section):
    """Settings of packing a lattice."""

    acoustic_scale: PositiveFloat = Field(
        1.0,
        description="factor of acoustic costs: 1 / language model weight; 0.1 for Kaldi's chain models; transcripts: 1",
    )
    lm_scale: NonNegativeFloat = Field(1.0, description="factor of graph costs")
    beam: PositiveFloat | None = Field(
        None, description="leave out arcs whose best path costs more than the best path's by more than this"
    )
    least: float = Field(0.0, ge=0, lt=1, description="leave out arcs of a smaller posterior; 1e-3 for phones")
    fillers: tuple[str, ...] = Field(
        FILLERS,
        description="labels that are no words: silence, noise, sentence marks; in any case, where case is folded",
    )
    spelling: Spelling = Field(
        "folded", description="labels and terms are compared without case and outer punctuation, or exact (phones)"
    )

    def is_filler(self, label: str) -> bool:
        """Whether a label is no word."""
        return label in self.fillers or (self.spelling == "folded" and label.casefold() in _casefolded(self.fillers))

    def label_of(self, text: str) -> str:
        """A text as it is compared; empty: it is no word."""
        if self.is_filler(text):
            return ""
        unknown = self.spelling == "folded" and text.casefold() in _UNKNOWN
        return BREAK if unknown else spelled(text, self.spelling)


@lru_cache
def _casefolded(fillers: tuple[str, ...]) -> frozenset[str]:
    return frozenset(filler.casefold() for filler in fillers)


class Packed(NamedTuple):
    """A lattice, ready to be searched.

    Attributes:
        times: int32 (states,), ticks of a store.
        visits: float64 (states,), probability to pass each state.
        arcs: int32 (states,), number of arcs that leave each state.
        steps: int32 (arcs,), target less source, at least 1.
        labels: int32 (arcs,), places in `texts`.
        chances: float64 (arcs,), probability to take each arc from its source.
        texts: of the labels; the first is empty, no word.
        ticks: length of the utterance.
        words: the best ones as they are written, by their starts; of no lattice of phones.
        language, speech_seconds, left_out: as of a `Lattice`.
    """

    times: NDArray[np.int32]
    visits: Floats
    arcs: NDArray[np.int32]
    steps: NDArray[np.int32]
    labels: NDArray[np.int32]
    chances: Floats
    texts: tuple[str, ...]
    ticks: int
    words: Sequence[Word] = ()
    language: str | None = None
    speech_seconds: float | None = None
    left_out: LeftOut | None = None

    def expected(self) -> Floats:
        """Posterior of each arc, float64 (arcs,)."""
        return np.repeat(self.visits, self.arcs) * self.chances


def pack(lattice: Lattice, recipe: Recipe) -> Packed:
    """Prepare a lattice for search.

    Raises:
        DataError: it has a cycle, is too long, or `spelling` makes different labels equal in a lattice of no transcript.
    """
    connected = connect(lattice)
    sums = forward_backward(connected, recipe.acoustic_scale, recipe.lm_scale)
    kept = sums.arcs >= recipe.least
    if recipe.beam is not None:
        kept &= best_through(connected, recipe.acoustic_scale, recipe.lm_scale) <= recipe.beam
    states = np.zeros(connected.states, bool)
    states[connected.source[kept]] = True
    states[connected.target[kept]] = True
    number = np.cumsum(states) - 1
    source, target = number[connected.source[kept]], number[connected.target[kept]]
    count = int(states.sum())
    texts, labels = _spelled(lattice, recipe)
    factor = lattice.tick / TICK
    times = np.rint(connected.times[states] * factor)
    ticks = round(max(lattice.length, 0) * factor)
    if ticks >= 1 << 31:
        raise families.TOO_LARGE.of(DataError)(
            "the lattice lasts {seconds:.0f} s",
            "give its frame shift (options.lattices.frame_shift)",
            where=lattice.key,
            seconds=ticks * TICK,
        )
    return Packed(
        times.astype(np.int32),
        np.minimum(np.exp(sums.alpha + sums.beta - sums.total)[states], 1.0),
        np.bincount(source, minlength=count).astype(np.int32),
        (target - source).astype(np.int32),
        labels[connected.label[kept]],
        np.minimum(sums.pushed[kept], 1.0),
        texts,
        ticks,
        sorted(
            _words(connected, sums, recipe) if lattice.words is None else lattice.words, key=lambda word: word.start
        ),
        lattice.language,
        lattice.speech_seconds,
        lattice.left_out,
    )


def _words(connected: Lattice, sums: Posteriors, recipe: Recipe) -> Iterator[Word]:
    """The words of a best path, each with the posterior of its arc."""
    arcs = best(connected, recipe.acoustic_scale, recipe.lm_scale).arcs
    arcs = arcs[connected.label[arcs] > 0]
    starts, ends = (connected.times[states[arcs]] * connected.tick for states in (connected.source, connected.target))
    for label, *place in zip(
        connected.label[arcs], starts.tolist(), ends.tolist(), sums.arcs[arcs].tolist(), strict=True
    ):
        if (text := connected.labels[label]) != BREAK and not recipe.is_filler(text):
            yield Word(text, *place)


def _spelled(lattice: Lattice, recipe: Recipe) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Texts of labels as they are compared, each once, and the place of each label of the lattice."""
    number: dict[str, int] = {"": 0}
    written: dict[int, str] = {}
    places = np.empty(len(lattice.labels), np.int32)
    for k, label in enumerate(lattice.labels):
        text = recipe.label_of(label) if k else ""
        places[k] = number.setdefault(text, len(number))
        if text not in ("", BREAK) and written.setdefault(int(places[k]), label) != label and not lattice.probabilities:
            raise families.DUPLICATE_NAME(
                "the labels {first} and {second} are both {text} without case and outer punctuation",
                "keep labels as they are (options.recipe.spelling: exact), as for phones",
                where=lattice.key,
                first=written[int(places[k])],
                second=label,
                text=text,
            )
    return tuple(number), places
