"""The local alignment against its definition, on tables of few values, so that many paths are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdist.kernels.alignment import align_locally
from tests.oracles import local_alignment as oracle


def aligned(distances: np.ndarray, diagonal: int, band: int, level: int, gap: int) -> tuple[int, ...]:
    place = np.full(5, -7, np.int64)
    align_locally(np.ascontiguousarray(distances, np.int16), diagonal, band, level, gap, place)
    return tuple(place.tolist())


@st.composite
def cases(draw: Any, longest: int = 5) -> tuple[np.ndarray, int, int, int, int]:
    rows, columns = draw(st.integers(1, longest)), draw(st.integers(1, longest))
    values = draw(st.lists(st.integers(0, 4), min_size=rows * columns, max_size=rows * columns))
    diagonal = draw(st.integers(-rows - 1, columns + 1))
    band, level, gap = draw(st.integers(0, longest)), draw(st.integers(1, 4)), draw(st.integers(0, 2))
    return np.array(values).reshape(rows, columns), diagonal, band, level, gap


@given(cases())
@settings(max_examples=400)
def test_score_and_places_are_those_of_all_paths(case: tuple[np.ndarray, int, int, int, int]) -> None:
    distances, *rest = case
    assert aligned(distances, *rest) == oracle.best(distances.tolist(), *rest)


@given(cases(longest=30))
@settings(max_examples=200)
def test_stretches_swapped_score_the_same(case: tuple[np.ndarray, int, int, int, int]) -> None:
    distances, diagonal, *rest = case
    assert aligned(distances, diagonal, *rest)[0] == aligned(distances.T, -diagonal, *rest)[0]


@given(cases(longest=30))
@settings(max_examples=200)
def test_a_wider_band_and_a_cheaper_gap_lose_nothing(case: tuple[np.ndarray, int, int, int, int]) -> None:
    distances, diagonal, band, level, gap = case
    score = aligned(distances, diagonal, band, level, gap)[0]
    assert aligned(distances, diagonal, band + 1, level, gap)[0] >= score
    assert aligned(distances, diagonal, band, level, gap + 1)[0] <= score
    assert aligned(distances, diagonal, band, level + 1, gap)[0] >= score


@given(cases(longest=30))
@settings(max_examples=200)
def test_a_match_lies_in_the_band_and_begins_and_ends_with_a_gain(case: tuple[np.ndarray, int, int, int, int]) -> None:
    distances, diagonal, band, level, gap = case
    score, first_i, stop_i, first_j, stop_j = aligned(distances, diagonal, band, level, gap)
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
    alike = np.where(np.eye(4, 6, 1, dtype=bool), 0, 9)
    assert aligned(alike, 1, 0, 5, 1) == (20, 0, 4, 1, 5)
    assert aligned(alike, 0, 0, 5, 1) == (0, 0, 0, 0, 0)  # out of the band
    assert aligned(alike, 0, 1, 5, 1) == (20, 0, 4, 1, 5)
    assert aligned(alike, -9, 2, 5, 1) == (0, 0, 0, 0, 0)  # no cell in the band
    assert aligned(np.full((3, 3), 5), 0, 3, 5, 0) == (0, 0, 0, 0, 0)  # at the level nothing gains
    assert aligned(np.full((2, 5), 0), 0, 5, 5, 0) == (10, 0, 2, 0, 2)  # the end that comes first
    # A gap that costs what the rest gains is not worth it; one that costs less is.
    broken = np.array([[0, 9, 9], [9, 9, 0]])
    assert aligned(broken, 0, 3, 2, 2) == (2, 0, 1, 0, 1)
    assert aligned(broken, 0, 3, 2, 1) == (3, 0, 2, 0, 3)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0)])
def test_nothing_to_align(shape: tuple[int, int]) -> None:
    assert aligned(np.empty(shape), 0, 3, 2, 1) == (0, 0, 0, 0, 0)


def test_numbers_of_the_largest_tables_fit() -> None:
    frames = 2000
    score, *places = aligned(np.zeros((frames, frames)), 0, 10, 4095, 0)
    assert score == frames * 4095
    assert places == [0, frames, 0, frames]
