"""The memory of a node second by second: what its processes said, added up.

A process counts in every second of its life with what it last said. Processes are added one after the other, and only the sums
stay: 16 bytes a second of a node, however many processes it has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

#: Seconds for which a process counts after it last said something: one that was killed says no more.
_HOLDS = 5


class NodeMemory:
    """Bytes by second of one node: of memory the sum over processes, of its GPUs what any process saw."""

    def __init__(self) -> None:
        none = np.zeros(0, np.int64)
        self._at, self._pss, self._gpu = none, none, none

    def add(self, t: NDArray[np.float64], pss: Ints, gpu: Ints) -> None:
        """Add a process.

        Args:
            t: float64 (N,), s, when it said something, ascending.
            pss: int64 (N,), bytes.
            gpu: int64 (N,), bytes on all GPUs of the node; 0 where it is not known.
        """
        if not len(t):
            return
        second, first = np.unique(np.floor(t).astype(np.int64), return_index=True)
        most, seen = np.maximum.reduceat(pss, first), np.maximum.reduceat(gpu, first)
        last = pss[np.append(first[1:], len(t)) - 1]
        held = np.minimum(np.append(np.diff(second), 1), _HOLDS)
        offset = np.arange(held.sum()) - np.repeat(np.cumsum(held) - held, held)
        at = np.repeat(second, held) + offset
        self._merge(at, np.where(offset == 0, np.repeat(most, held), np.repeat(last, held)), np.repeat(seen, held))

    def _merge(self, at: Ints, pss: Ints, gpu: Ints) -> None:
        self._at, which = np.unique(np.concatenate([self._at, at]), return_inverse=True)
        sums, most = np.zeros(len(self._at), np.int64), np.zeros(len(self._at), np.int64)
        np.add.at(sums, which, np.concatenate([self._pss, pss]))
        np.maximum.at(most, which, np.concatenate([self._gpu, gpu]))
        self._pss, self._gpu = sums, most

    def peak(self, during: Sequence[tuple[float, float]]) -> int | None:
        """Highest sum in seconds that any of these stretches (s, s) touches; None if nothing was said then."""
        found = self._pss[self._touched(during)]
        return int(found.max()) if len(found) else None

    def gpu_peak(self, during: Sequence[tuple[float, float]]) -> int | None:
        """The same of the GPUs; None where there is none."""
        found = self._gpu[self._touched(during)]
        return int(found.max()) or None if len(found) else None

    @property
    def whole(self) -> list[tuple[float, float]]:
        """All the time that anything is known of, as one stretch."""
        return [(float(self._at[0]), float(self._at[-1]))] if len(self._at) else []

    def _touched(self, during: Sequence[tuple[float, float]]) -> NDArray[np.bool_]:
        if not during:
            return np.zeros(len(self._at), np.bool_)
        bounds = np.floor(np.array(during)).astype(np.int64)
        steps = np.zeros(len(self._at) + 1, np.int64)
        np.add.at(steps, np.searchsorted(self._at, bounds[:, 0], "left"), 1)
        np.add.at(steps, np.searchsorted(self._at, bounds[:, 1], "right"), -1)
        found: NDArray[np.bool_] = np.cumsum(steps[:-1]) > 0
        return found

    def drawn(self, most: int) -> list[tuple[float, int]]:
        """Time and bytes at so many moments at most: of stretches of equal length the highest sum."""
        if not len(self._at):
            return []
        width = max(1, -(-int(self._at[-1] - self._at[0] + 1) // most))
        place, first = np.unique((self._at - self._at[0]) // width, return_index=True)
        high = np.maximum.reduceat(self._pss, first)
        return [(float(self._at[0] + k * width), int(v)) for k, v in zip(place.tolist(), high.tolist(), strict=True)]
