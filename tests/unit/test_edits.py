"""Edit distances against their definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from swsdist.kernels.edits import edits_to_all, pairs_of_least_edits
from tests.oracles.edits import edits

SEQUENCES = st.lists(st.integers(0, 2), max_size=6)


@given(SEQUENCES, st.lists(SEQUENCES, max_size=5))
def test_edits(pattern: list[int], others: list[list[int]]) -> None:
    flat = np.array([symbol for other in others for symbol in other], np.int32)
    starts = np.cumsum([0, *map(len, others)]).astype(np.int64)
    ours = edits_to_all(np.array(pattern, np.int32), flat, starts)
    assert ours.tolist() == [edits(pattern, other) for other in others]


@given(SEQUENCES, SEQUENCES)
def test_pairs_are_those_of_the_fewest_edits(pattern: list[int], other: list[int]) -> None:
    pairs = pairs_of_least_edits(np.array(pattern, np.int32), np.array(other, np.int32)).tolist()
    both = [(pattern[k], other[place]) for k, place in enumerate(pairs) if place >= 0]
    places = [place for place in pairs if place >= 0]
    assert places == sorted({*places})
    assert sum(a != b for a, b in both) + len(pattern) + len(other) - 2 * len(both) == edits(pattern, other)
