"""Paths of a loop of phones by listing them all: segments of frames, with alignments of states inside, and weights of pairs."""

import math
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

#: First border, last border, phone.
Segment = tuple[int, int, int]


def segment_weights(log_posteriors: NDArray[np.float64], scale: float, *, best: bool = False) -> dict[Segment, float]:
    """ln of the sum over inner alignments of each segment (or of the best one), without the weight of the phone."""
    frames, phones, states = log_posteriors.shape

    @cache
    def walk(first: int, stop: int, phone: int, state: int) -> float:
        """Of frames first..stop-1, the last of them in a state."""
        if stop <= first or state < 0:
            return -math.inf
        here = scale * float(log_posteriors[stop - 1, phone, state])
        if stop == first + 1:
            return here if state == 0 else -math.inf
        before = [walk(first, stop - 1, phone, state), walk(first, stop - 1, phone, state - 1)]
        joined = max(before) if best else float(np.logaddexp.reduce(before))
        return here + joined

    spans = (
        (first, stop, phone)
        for first in range(frames)
        for stop in range(first + 1, frames + 1)
        for phone in range(phones)
    )
    return {span: weight for span in spans if (weight := walk(*span, states - 1)) > -math.inf}


def paths(
    log_posteriors: NDArray[np.float64],
    scale: float,
    insertion: float,
    pairs: NDArray[np.float64] | None,
    *,
    best: bool = False,
) -> Iterator[tuple[tuple[Segment, ...], float]]:
    """All sequences of segments, with the ln of their weights."""
    frames, phones, _ = log_posteriors.shape
    weights = segment_weights(log_posteriors, scale, best=best)

    def walk(border: int, last: int) -> Iterator[tuple[tuple[Segment, ...], float]]:
        if border == frames:
            yield (), 0.0
            return
        for (first, stop, phone), weight in weights.items():
            if first == border:
                more = weight + scale * insertion + (0.0 if pairs is None else float(pairs[last, phone]))
                if more > -math.inf:
                    for rest, total in walk(stop, phone):
                        yield ((first, stop, phone), *rest), more + total

    return walk(0, phones)


def arc_posteriors(
    log_posteriors: NDArray[np.float64], scale: float, insertion: float, pairs: NDArray[np.float64] | None
) -> tuple[float, dict[tuple[int, int, int, int], float]]:
    """ln of the sum over all paths; and by (first, last, phone before or their number, phone) the posterior of each arc."""
    phones = log_posteriors.shape[1]
    every = list(paths(log_posteriors, scale, insertion, pairs))
    total = float(np.logaddexp.reduce([weight for _, weight in every])) if every else -math.inf
    result: dict[tuple[int, int, int, int], float] = defaultdict(float)
    for segments, weight in every:
        before = phones
        for first, stop, phone in segments:
            result[first, stop, before, phone] += math.exp(weight - total)
            before = phone
    return total, dict(result)
