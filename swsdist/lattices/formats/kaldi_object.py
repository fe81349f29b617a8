"""A lattice of Kaldi as its file has it, and the lattice that it is.

A CompactLattice has a word and the ids of its frames on each arc. A Lattice has an arc a frame (an id that is not 0) and each
word on the first of its arcs; chains of its arcs become one, as Kaldi's own conversion to CompactLattice does: through states
with one arc in, one arc out without a word, that are neither the start nor final.

States have no times. The time of a state is the number of frames read on the way to it, which is the same on all ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from swsdist.core.codes import lattices as codes
from swsdist.kernels.lattices import chained, grouped, state_times
from swsdist.lattices.formats.parts import demand_costs, text_of
from swsdist.lattices.lattice import Floats, Ints, Lattice

#: Numbers of words for which a table is made.
_SMALL = 1 << 16


class Raw(NamedTuple):
    """A lattice as its file has it; costs and frames are of each arc or, of the finals, of each state.

    Attributes:
        start: state, -1 if there are no states.
        numbers: of the states in the file.
        source, target, word, frames: of each arc.
        graph, acoustic, final_graph, final_acoustic: costs.
        final_frames: read after the state.
        frame_by_frame: it is a Lattice, not a CompactLattice.
    """

    start: int
    numbers: Ints
    source: Ints
    target: Ints
    word: Ints
    frames: Ints
    graph: Floats
    acoustic: Floats
    final_graph: Floats
    final_acoustic: Floats
    final_frames: Ints
    frame_by_frame: bool


def lattice_of(raw: Raw, key: str, words: Mapping[int, str] | None, frame: float, where: str) -> Lattice:
    """The lattice.

    Args:
        raw: as in the file.
        key: of the lattice.
        words: texts of the words; None: their numbers.
        frame: seconds.
        where: place of the lattice.

    Raises:
        DataError: a cost is impossible, a word unknown, or a state has two times.
    """
    demand_costs(where, raw.graph, raw.acoustic, raw.final_graph, raw.final_acoustic)
    times, length = _times(raw, where)
    if raw.frame_by_frame:
        raw, times = _compact(raw, times)
    numbers, label = _labels(raw.word)
    return Lattice(
        key,
        frame,
        times,
        raw.source,
        raw.target,
        label,
        raw.graph,
        raw.acoustic,
        raw.final_graph,
        raw.final_acoustic,
        tuple(text_of(number, words, where) for number in numbers.tolist()),
        raw.start,
        length,
    )


def _labels(words: Ints) -> tuple[Ints, Ints]:
    """The numbers of words that occur, ascending, and 0; and the place of each word among them."""
    greatest = int(words.max(initial=0))
    if greatest > len(words) + _SMALL:
        numbers = np.union1d(words, 0)
        return numbers, np.searchsorted(numbers, words)
    present = np.zeros(greatest + 1, np.bool_)
    present[words] = present[0] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[words]


def _times(raw: Raw, where: str) -> tuple[Ints, int]:
    """Times of the states, and the length of the utterance."""
    states = len(raw.numbers)
    if not states:
        return np.empty(0, np.int64), 0
    times, wrong, second = state_times(raw.start, raw.target, raw.frames, *grouped(raw.source, states))
    if wrong >= 0:
        first = int(times[wrong])
        raise codes.STATE_AT_TWO_TIMES(where=where, state=int(raw.numbers[wrong]), first=first, second=second)
    ends = (times >= 0) & np.isfinite(raw.final_graph)
    length = max(int(times.max()), int((times + raw.final_frames)[ends].max(initial=0)))
    return np.maximum(times, 0), length


def _compact(raw: Raw, times: Ints) -> tuple[Raw, Ints]:
    """A Lattice with chains of arcs made one, and the times of its states."""
    states = len(raw.numbers)
    offsets, items = grouped(raw.source, states)
    inner = (np.bincount(raw.target, minlength=states) == 1) & (np.diff(offsets) == 1)
    inner &= np.isinf(raw.final_graph) | np.isinf(raw.final_acoustic)
    inner[raw.start :][:1] = False
    leaving = np.flatnonzero(inner)
    inner[leaving[raw.word[items[offsets[leaving]]] != 0]] = False
    arcs, target, graph, acoustic = chained(inner, raw.source, raw.target, raw.graph, raw.acoustic, offsets, items)
    number = np.cumsum(~inner) - 1
    kept = ~inner
    compact = raw._replace(
        start=int(number[raw.start]) if states else -1,
        numbers=raw.numbers[kept],
        source=number[raw.source[arcs]],
        target=number[target],
        word=raw.word[arcs],
        graph=graph,
        acoustic=acoustic,
        final_graph=raw.final_graph[kept],
        final_acoustic=raw.final_acoustic[kept],
    )
    return compact, times[kept]
