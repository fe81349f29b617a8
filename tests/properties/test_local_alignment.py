"""The local alignment against its definition, on tables of few values, so that many paths are equal."""

from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from swsdist.kernels.alignment import align_locally
from tests.oracles import local_alignment as oracle


def aligned(distances: np.ndarray, diagonal: int, band: int, level: int, gap: int) -> tuple[int, ...]:
    place = np.full(5, -7, np.int64)
    align_locally(np.ascontiguousarray(distances, np.int16), diagonal, band, level, gap, place)
    return tuple(place.tolist())


@st.composite
def cases(draw: Any, longest: int = 5) -> tuple[np.ndarray, int, int, int, int]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape, most = rng.integers(1, longest + 1, 2), int(rng.choice([1, 2, 4]))
    diagonal, band = rng.integers(-shape[0] - 1, shape[1] + 2), rng.integers(0, 4)
    level, gap = rng.integers(1, most + 1), rng.integers(0, 3)
    return rng.integers(0, most + 1, shape), int(diagonal), int(band), int(level), int(gap)


@given(cases())
@example((np.array([[1, 2, 1], [1, 1, 1], [2, 0, 1]]), 0, 2, 2, 0))
@example(
    (np.array([[4, 1, 0, 1, 0], [2, 2, 3, 2, 0], [1, 4, 2, 3, 0], [4, 2, 1, 3, 0]]), 1, 0, 2, 0)
)  # a cell beside the band is no neighbour
@settings(max_examples=400)
def test_score_and_places_are_those_of_all_paths(case: tuple[np.ndarray, int, int, int, int]) -> None:
    distances, *rest = case
    assert aligned(distances, *rest) == oracle.best(distances.tolist(), *rest)


@given(cases(longest=30))
@settings(max_examples=200)
def test_a_match_lies_in_the_band_and_begins_and_ends_with_a_gain(case) -> None:
    distances, diagonal, band, level, gap = case
    score, first_i, stop_i, first_j, stop_j = aligned(distances, diagonal, band, level, gap)
    # Swapped, it scores the same; a wider band and a cheaper gap lose nothing.
    assert aligned(distances.T, -diagonal, band, level, gap)[0] == score
    assert aligned(distances, diagonal, band + 1, level, gap)[0] >= score
    assert aligned(distances, diagonal, band, level, gap + 1)[0] <= score
    assert aligned(distances, diagonal, band, level + 1, gap)[0] >= score
    if not score:
        assert (first_i, stop_i, first_j, stop_j) == (0, 0, 0, 0)
        return
    for i, j in ((first_i, first_j), (stop_i - 1, stop_j - 1)):
        assert abs(j - i - diagonal) <= band
        assert distances[i, j] < level
    # From the first frames to the last alone, it is the same match.
    part = distances[first_i:stop_i, first_j:stop_j]
    alone = aligned(part, diagonal - (first_j - first_i), band, level, gap)
    assert alone == (score, 0, stop_i - first_i, 0, stop_j - first_j)


def test_edges() -> None:
    alike, nothing = np.where(np.eye(4, 6, 1, dtype=bool), 0, 9), (0, 0, 0, 0, 0)
    assert aligned(alike, 1, 0, 5, 1) == aligned(alike, 0, 1, 5, 1) == (20, 0, 4, 1, 5)
    assert aligned(alike, 0, 0, 5, 1) == aligned(alike, -9, 2, 5, 1) == nothing  # out of the band, or no cell in it
    assert aligned(np.full((3, 3), 5), 0, 3, 5, 0) == nothing  # at the level nothing gains
    assert aligned(np.empty((0, 4)), 0, 3, 2, 1) == aligned(np.empty((4, 0)), 0, 3, 2, 1) == nothing
    assert aligned(np.zeros((2000, 2000)), 0, 10, 4095, 0) == (2000 * 4095, 0, 2000, 0, 2000)
