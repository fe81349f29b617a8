"""Edit distances against their definition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise, product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from swsdist.kernels.edits import ALONE, STRETCH, UNLIKE, cheapest_pairs, edits_to_all
from tests.oracles.edits import edits

SEQUENCES = st.lists(st.integers(0, 2), max_size=6)


@given(SEQUENCES, st.lists(SEQUENCES, max_size=5))
def test_edits(pattern: list[int], others: list[list[int]]) -> None:
    flat = np.array([symbol for other in others for symbol in other], np.int32)
    starts = np.cumsum([0, *map(len, others)]).astype(np.int64)
    ours = edits_to_all(np.array(pattern, np.int32), flat, starts)
    assert ours.tolist() == [edits(pattern, other) for other in others]


@given(st.lists(st.integers(0, 2), max_size=4), st.lists(st.integers(0, 2), max_size=4))
def test_pairs_are_those_of_least_cost(pattern: list[int], other: list[int]) -> None:
    def cost(ours: Sequence[int], theirs: Sequence[int]) -> int:
        both = list(zip(ours, theirs, strict=True))
        alone = len(pattern) + len(other) - 2 * len(both)
        edges = [(-1, -1), *both, (len(pattern), len(other))]
        stretches = sum((k - i > 1) + (m - j > 1) for (i, j), (k, m) in pairwise(edges))
        return UNLIKE * sum(pattern[i] != other[j] for i, j in both) + ALONE * alone + STRETCH * stretches

    def some(items: list[int], count: int) -> Iterable[tuple[int, ...]]:
        return combinations(range(len(items)), count)

    pairs = cheapest_pairs(np.array(pattern, np.int32), np.array(other, np.int32)).tolist()
    least = min(cost(*both) for n in range(5) for both in product(some(pattern, n), some(other, n)))
    assert cost([k for k, place in enumerate(pairs) if place >= 0], [place for place in pairs if place >= 0]) == least
