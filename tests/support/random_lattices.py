"""Random small lattices for properties, and where the golden ones are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from swsdist.lattices.lattice import Lattice

GOLDEN = Path(__file__).resolve().parents[2].parent / "shared" / "golden" / "lattices"

#: Multiples of 1/8, which float32, text and doubles hold exactly.
_COSTS = st.integers(-32, 64).map(lambda eighths: eighths / 8)


@st.composite
def lattices(draw: st.DrawFn, *, most_states: int = 6, most_arcs: int = 10, words: Sequence[str] = "abc") -> Lattice:
    """A lattice with silences, parallel arcs, words of no length, negative costs and several final states.

    States that no path reaches or leaves, arcs and finals of infinite cost, and lattices without a path occur too. States are
    numbered in any order, arcs stand in any order, and gaps are around 50 ticks.

    Args:
        draw: of hypothesis.
        most_states: at least 1.
        most_arcs: at least 0.
        words: a label each.
    """
    states = draw(st.integers(1, most_states))
    steps = draw(st.lists(st.sampled_from([0, 1, 2, 7, 25, 50, 51]), min_size=states, max_size=states))
    times = np.cumsum([0, *steps[1:]])
    # A chain keeps most states in reach; where it has no arc, states hang.
    pairs = [(state - 1, state) for state in range(1, states) if draw(st.integers(0, 9))]
    if states > 1:
        ends = st.lists(st.integers(0, states - 1), min_size=2, max_size=2, unique=True)
        more = draw(st.lists(ends, max_size=max(0, most_arcs - len(pairs))))
        pairs += [(min(two), max(two)) for two in more]
    numbers = np.array(draw(st.permutations(range(states))), np.int64)
    arcs = draw(st.permutations(pairs))
    count = len(arcs)

    def values(strategy: st.SearchStrategy[float], size: int) -> np.ndarray:
        return np.array(draw(st.lists(strategy, min_size=size, max_size=size)), np.float64)

    endless = st.integers(0, 19).flatmap(lambda k: _COSTS if k else st.just(math.inf))
    final = values(st.one_of(_COSTS, st.just(math.inf)), states)
    final[-1] = draw(endless)
    by_number = np.empty(states, np.int64)
    by_number[numbers] = np.arange(states)
    labels = draw(st.lists(st.integers(0, len(words)), min_size=count, max_size=count))
    return Lattice(
        "random",
        0.01,
        times[by_number].astype(np.int64),
        numbers[[arc[0] for arc in arcs]] if count else np.empty(0, np.int64),
        numbers[[arc[1] for arc in arcs]] if count else np.empty(0, np.int64),
        np.array(labels, np.int64),
        values(endless, count),
        values(_COSTS, count),
        final[by_number],
        np.where(np.isinf(final), math.inf, values(_COSTS, states))[by_number],
        ("", *words),
        int(numbers[0]),
        int(times[-1]) + draw(st.integers(0, 3)),
    )
