"""The memory of a node, second by second: the sum over its processes.

In a second with samples a process counts with the highest of them, in the seconds after it with the last. Processes are added
one after the other, and only the sums are kept: 24 bytes for each second of a node, whatever the number of processes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

#: Most seconds for which a sample counts if the next is late; the last sample of a process counts for its own second.
_HOLDS = 5


class NodeMemory:
    """Bytes by second of one node: the sum over processes of memory, the maximum over processes of GPU memory."""

    def __init__(self) -> None:
        none = np.zeros(0, np.int64)
        self._at, self._pss, self._gpu = none, none, none

    def add(self, t: NDArray[np.float64], pss: Ints, gpu: Ints) -> None:
        """Add a process.

        Args:
            t: float64 (N,), times of its samples, s, ascending.
            pss: int64 (N,), bytes.
            gpu: int64 (N,), bytes on all GPUs of the node; 0: unknown.
        """
        if not len(t):
            return
        second, first = np.unique(np.floor(t).astype(np.int64), return_index=True)
        most, seen = np.maximum.reduceat(pss, first), np.maximum.reduceat(gpu, first)
        last = pss[np.append(first[1:], len(t)) - 1]
        duration = np.minimum(np.append(np.diff(second), 1), _HOLDS)
        offset = np.arange(duration.sum()) - np.repeat(np.cumsum(duration) - duration, duration)
        at = np.repeat(second, duration) + offset
        self._merge(
            at, np.where(offset == 0, np.repeat(most, duration), np.repeat(last, duration)), np.repeat(seen, duration)
        )

    def _merge(self, at: Ints, pss: Ints, gpu: Ints) -> None:
        self._at, inverse = np.unique(np.concatenate([self._at, at]), return_inverse=True)
        sums, most = np.zeros(len(self._at), np.int64), np.zeros(len(self._at), np.int64)
        np.add.at(sums, inverse, np.concatenate([self._pss, pss]))
        np.maximum.at(most, inverse, np.concatenate([self._gpu, gpu]))
        self._pss, self._gpu = sums, most

    def peak(self, during: Sequence[tuple[float, float]]) -> int | None:
        """Highest sum in the seconds that overlap these intervals (s, s); None: no samples."""
        sums = self._pss[self._touched(during)]
        return int(sums.max()) if len(sums) else None

    def gpu_peak(self, during: Sequence[tuple[float, float]]) -> int | None:
        """The same for GPU memory; None: no GPU."""
        sums = self._gpu[self._touched(during)]
        return int(sums.max()) or None if len(sums) else None

    @property
    def overall(self) -> list[tuple[float, float]]:
        """The interval of all samples, as a list of one; empty: no samples."""
        return [(float(self._at[0]), float(self._at[-1]))] if len(self._at) else []

    def _touched(self, during: Sequence[tuple[float, float]]) -> NDArray[np.bool_]:
        if not during:
            return np.zeros(len(self._at), np.bool_)
        bounds = np.floor(np.array(during)).astype(np.int64)
        steps = np.zeros(len(self._at) + 1, np.int64)
        np.add.at(steps, np.searchsorted(self._at, bounds[:, 0], "left"), 1)
        np.add.at(steps, np.searchsorted(self._at, bounds[:, 1], "right"), -1)
        sums: NDArray[np.bool_] = np.cumsum(steps[:-1]) > 0
        return sums

    def drawn(self, most: int) -> list[tuple[float, int]]:
        """Times and bytes for a plot, at most `most`: the highest sum of intervals of equal length."""
        if not len(self._at):
            return []
        width = max(1, -(-int(self._at[-1] - self._at[0] + 1) // most))
        place, first = np.unique((self._at - self._at[0]) // width, return_index=True)
        high = np.maximum.reduceat(self._pss, first)
        return [(float(self._at[0] + k * width), int(v)) for k, v in zip(place.tolist(), high.tolist(), strict=True)]
