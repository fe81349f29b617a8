"""What readers of several formats do: check costs, number labels, and name a lattice by its file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath

import numpy as np

from swsdist.core.codes import lattices as codes
from swsdist.core.errors import DataError
from swsdist.lattices.lattice import Broken, Floats, Ints, Lattice, Lattices, Origin

#: Greatest magnitude of a finite cost: of larger ones doubles keep too little for posteriors.
GREATEST_COST = 1e9


def demand_costs(where: str, *costs: Floats) -> None:
    """Demand that costs are possible.

    Raises:
        DataError: a cost is no number, too large, or -inf.
    """
    for array in costs:
        wrong = ~((np.abs(array) <= GREATEST_COST) | (array == np.inf))
        if wrong.any():
            raise codes.IMPOSSIBLE_COST(where=where, value=float(array[wrong][0]))


def demand_forward(where: str, times: Ints, source: Ints, target: Ints) -> None:
    """Demand that no arc ends before it starts: phrases would go back in time.

    Raises:
        DataError: one does.
    """
    back = np.flatnonzero(times[target] < times[source])
    if len(back):
        raise codes.LINK_BACK_IN_TIME(where=where, source=int(source[back[0]]), target=int(target[back[0]]))


def text_of(label: int, words: Mapping[int, str] | None, where: str) -> str:
    """Text of a label: from the list of words, or its number; empty of 0.

    Raises:
        DataError: the list has no such number.
    """
    if label == 0:
        return ""
    if words is None:
        return str(label)
    if label not in words:
        raise codes.UNKNOWN_LABEL(where=where, label=label)
    return words[label]


def numbered(words: Iterable[str]) -> tuple[Ints, tuple[str, ...]]:
    """The label of each word, and the labels' texts; the empty word is label 0."""
    labels = {"": 0}
    numbers = np.array([labels.setdefault(word, len(labels)) for word in words], np.int64)
    return numbers, tuple(labels)


def stem(path: str) -> str:
    """Name of a file without its folder, ending, and the ending of packing."""
    name = PurePosixPath(path).name
    return PurePosixPath(name.removesuffix(".gz").removesuffix(".xz")).stem


def single(origin: Origin, parse: Callable[[Origin], Lattice]) -> Lattices:
    """The only lattice of a file."""
    try:
        yield parse(origin)
    except DataError as error:
        yield Broken(stem(origin.path), error)


def log_cost(chances: Floats) -> Floats:
    """-ln of probabilities; infinite of 0."""
    with np.errstate(divide="ignore"):
        return -np.log(chances) + 0.0
