"""The kernel that finds which span takes the place of which, against its definition: few spans and many, short and long."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from swsdist.kernels.suppression import claim


def plain(score, first, last, example, overlap: float) -> tuple[list[int], list[int]]:
    """The definition, of one group."""
    order = sorted(range(len(score)), key=lambda k: (-score[k], first[k], last[k], example[k]))
    owner: list[int] = []
    for i, one in enumerate(order):
        owner.append(i)
        for j in range(i):
            common = min(last[one], last[order[j]]) - max(first[one], first[order[j]]) + 1
            shorter = min(last[one] - first[one], last[order[j]] - first[order[j]]) + 1
            if owner[j] == j and common > overlap * shorter:
                owner[i] = j
                break
    return order, owner


@pytest.mark.parametrize("seed", range(40))
def test_it_is_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 2, 31, 32, 33, 150], size=4)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    count = int(bounds[-1])
    length = rng.integers(1, rng.choice([2, 40, 4000]), size=count)
    first = rng.integers(-5, rng.choice([10, 1000, 10**7]), size=count)
    last = first + length - 1
    score = rng.choice([-0.5, 0.0, 0.25], size=count) if seed % 2 else rng.normal(size=count)
    example = rng.integers(1, 4, size=count)
    overlap = float(rng.choice([0.0, 0.5, 1.0]))
    order, owner = np.empty(count, np.int64), np.empty(count, np.int64)
    claim(bounds, score, first, last, example, overlap, order, owner)
    for a, b in pairwise(bounds):
        expected = plain(score[a:b], first[a:b], last[a:b], example[a:b], overlap)
        assert (owner[a:b] - a).tolist() == expected[1]
        for k in range(a, b):  # spans that are equal in all may change places
            other = a + expected[0][k - a]
            assert all(column[order[k]] == column[other] for column in (score, first, last, example))
