"""A lattice as it is searched: scaled, connected, pushed, pruned; arrays by state and by arc.

A chain of arcs from a state has the posterior visits[state] x product of the chances of its arcs. These are shares of the whole
lattice, also where arcs are pruned: what is left keeps its posterior.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeFloat, PositiveFloat

from swsdist.config.section import Section
from swsdist.core.codes import text as codes
from swsdist.lattices.lattice import BREAK, MILLISECOND, Lattice, LeftOut, Word
from swsdist.lattices.posteriors import Posteriors, best, best_through, connect, forward_backward
from swsdist.lattices.spelling import Spelling, spelled

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
    """What is made of a lattice."""

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
    visits: NDArray[np.float64]
    arcs: NDArray[np.int32]
    steps: NDArray[np.int32]
    labels: NDArray[np.int32]
    chances: NDArray[np.float64]
    texts: tuple[str, ...]
    ticks: int
    words: Sequence[Word] = ()
    language: str | None = None
    speech_seconds: float | None = None
    left_out: LeftOut | None = None

    def expected(self) -> NDArray[np.float64]:
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
        raise codes.LATTICE_TOO_LONG(where=lattice.key, seconds=ticks * TICK)
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
            raise codes.LABELS_MEET(where=lattice.key, first=written[int(places[k])], second=label, text=text)
    return tuple(number), places
