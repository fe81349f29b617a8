"""The likeliest string of phones: a loop of phones whose states follow from left to right (`swsdist.kernels.phone_loop`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.phone_loop import best_paths


class Segment(NamedTuple):
    """A phone of a string: first frame, the one after its last, number of the phone, and its cost."""

    first: int
    stop: int
    phone: int
    cost: float


def best_string(
    costs: Iterable[NDArray[np.float64]],
    shape: tuple[int, int],
    entry: float,
    pairs: NDArray[np.float64] | None = None,
) -> list[Segment]:
    """The string of least cost; empty if there are fewer frames than states.

    Args:
        costs: blocks of (frames, phones, states), of a frame in a state.
        shape: phones and states.
        entry: cost of a phone.
        pairs: float64 (phones + 1, phones), costs of a phone after another, the last row at the start.
    """
    phones, _ = shape
    weights = np.empty((0, 0)) if pairs is None else np.ascontiguousarray(pairs, np.float64)
    columns = 1 if pairs is None else phones + 1
    score = np.full(shape, np.inf)
    start, source = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    last = np.full((1, columns), np.inf)
    last[0, -1] = 0.0
    borders, backs, frames = [last], [np.empty((0, columns, 3), np.int32)], 0
    for block in costs:
        ended = np.empty((len(block) + 1, columns))
        ended[0] = last[-1]
        back = np.zeros((len(block), columns, 3), np.int32)
        best_paths(np.ascontiguousarray(block), entry, weights, frames, score, start, source, ended, back)
        last = ended[-1:]
        borders.append(ended[1:])
        backs.append(back)
        frames += len(block)
    if not np.isfinite(last.min()):
        return []
    ended, back = np.concatenate(borders), np.concatenate(backs)
    result, border, column = [], frames, int(ended[frames].argmin())
    while border:
        first, phone, before = back[border - 1, column].tolist()
        earlier = before if pairs is not None else 0
        result.append(Segment(first, border, phone, float(ended[border, column] - ended[first, earlier])))
        border, column = first, earlier
    return result[::-1]
