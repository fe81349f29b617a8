"""A free loop of phones by enumeration of every path of states.

A path gives each frame a phone and a state of it. A phone begins in its first state, stays or goes to the next one from frame
to frame, and ends in its last; then any phone begins. A path's weight is exp of scale x (sum of log posteriors + insertion
for each phone).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

#: First and last border, phone.
Arc = tuple[int, int, int]


def phone_lattice(log_posteriors: np.ndarray, scale: float, insertion: float) -> tuple[float, dict[Arc, float]]:
    """Log of the sum over all paths, and the posterior of each phone at each place."""
    frames, phones, states = log_posteriors.shape

    def walk(frame: int, arcs: tuple[Arc, ...], begun: int, phone: int, state: int) -> Iterator[tuple[Arc, ...]]:
        """Ends of a path that is in a state after a frame, with the path's weight in front of its arcs."""
        if frame == frames:
            if state == states - 1:
                yield (*arcs, (begun, frame, phone))
            return
        yield from step(frame, arcs, begun, phone, state)
        if state + 1 < states:
            yield from step(frame, arcs, begun, phone, state + 1)
        else:
            for other in range(phones):
                yield from step(frame, (*arcs, (begun, frame, phone)), frame, other, 0)

    logs: list[float] = []
    weight = 0.0

    def step(frame: int, arcs: tuple[Arc, ...], begun: int, phone: int, state: int) -> Iterator[tuple[Arc, ...]]:
        nonlocal weight
        before = weight
        weight += scale * (float(log_posteriors[frame, phone, state]) + insertion * (begun == frame))
        for ended in walk(frame + 1, arcs, begun, phone, state):
            logs.append(weight) if frame + 1 == frames else None
            yield ended
        weight = before

    every = [arcs for phone in range(phones) for arcs in step(0, (), 0, phone, 0)] if frames else []
    finite = [value for value in logs if value > -math.inf]
    if not finite:
        return -math.inf, {}
    best = max(finite)
    total = best + math.log(math.fsum(math.exp(value - best) for value in finite))
    sums: dict[Arc, list[float]] = defaultdict(list)
    for arcs, value in zip(every, logs, strict=True):
        for arc in arcs:
            sums[arc].append(math.exp(value - total))
    return total, {arc: math.fsum(values) for arc, values in sums.items() if math.fsum(values) > 0}
