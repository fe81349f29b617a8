"""What readers of several formats do: check costs, and number labels."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from swsdist.core.codes import lattices as codes
from swsdist.lattices.lattice import Floats, Ints

#: Greatest magnitude of a finite cost: sums of these are finite.
GREATEST_COST = 1e30


def demand_costs(where: str, *costs: Floats) -> None:
    """Demand that costs are possible.

    Raises:
        DataError: a cost is no number, too large, or -inf.
    """
    for array in costs:
        wrong = ~((np.abs(array) <= GREATEST_COST) | (array == np.inf))
        if wrong.any():
            raise codes.IMPOSSIBLE_COST(where=where, value=float(array[wrong][0]))


def numbered(words: Iterable[str]) -> tuple[Ints, tuple[str, ...]]:
    """The label of each word, and the labels' texts; the empty word is label 0."""
    labels = {"": 0}
    numbers = np.array([labels.setdefault(word, len(labels)) for word in words], np.int64)
    return numbers, tuple(labels)
