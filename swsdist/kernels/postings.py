"""Posting lists of quantised frames: nearest codewords, and votes for the beginnings of queries.

Codewords are frames. A document frame is represented by its nearest codeword (`nearest`), and a *posting* is the place
of a
frame in its codeword's list. Query frame i that resembles codeword v votes, at each place t of v's list, for a
beginning at t - i
(`vote`). Summed over a few neighbouring beginnings, because the speed of speech varies, votes have peaks where much of
the query
occurs in order (`peaks`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.compiled import compiled
from swsdist.kernels.vectors import WIDTH

#: Neighbouring beginnings on either side whose votes are added.
SLACK = 2


@compiled("void(int16[::1], int64, int64, int32[::1])")
def nearest(distances: NDArray[np.int16], height: int, n: int, out: NDArray[np.int32]) -> None:
    """The nearest of n codewords for each frame; the first one wins ties.

    Args:
        distances: int16 (groups, height, 16), flat.
        out: int32 (groups * 16,), written.
    """
    for g in range(len(out) // WIDTH):
        for lane in range(WIDTH):
            out[g * WIDTH + lane] = 0
        for i in range(1, n):
            for lane in range(WIDTH):
                best = distances[(g * height + out[g * WIDTH + lane]) * WIDTH + lane]
                if distances[(g * height + i) * WIDTH + lane] < best:
                    out[g * WIDTH + lane] = i


@compiled("int64(int32[:,::1], int32[:,::1], int64[::1], int32[::1], int32[::1])")
def vote(
    codes: NDArray[np.int32],
    weights: NDArray[np.int32],
    starts: NDArray[np.int64],
    places: NDArray[np.int32],
    votes: NDArray[np.int32],
) -> int:
    """Add the votes of a query.

    Args:
        codes, weights: int32 (query frames, some), the codewords that a frame looks up, and the weights of their votes.
        starts: int64 (codewords + 1,), the first place of each codeword's list in `places`.
        places: int32 (postings,), each at least the query's frames.
        votes: int32 (places,), zeros; written.

    Returns:
        Number of postings read.
    """
    looked = 0
    for i in range(codes.shape[0]):
        for k in range(codes.shape[1]):
            weight = weights[i, k]
            first, stop = starts[codes[i, k]], starts[codes[i, k] + 1]
            looked += stop - first
            for p in range(first, stop):
                votes[places[p] - i] += weight
    return looked


@compiled("int64(int32[::1], int64, int64[:,::1])")
def peaks(votes: NDArray[np.int32], apart: int, matches: NDArray[np.int64]) -> int:
    """Beginnings with many votes, including votes of neighbours within `SLACK`.

    Beginnings are processed in order; one within `apart` of the last peak replaces it if it has more votes.

    Args:
        votes: int32, from `vote`.
        apart: at least 1.
        found: int64 (room for len(votes) // (apart + 1) + 1, 2), written: place, votes.

    Returns:
        Number of peaks with any votes.
    """
    count = 0
    last_place, last_sum = -apart - 1, 0
    total = 0
    for t in range(min(SLACK, len(votes))):
        total += votes[t]
    for t in range(len(votes)):
        if t + SLACK < len(votes):
            total += votes[t + SLACK]
        if t - SLACK - 1 >= 0:
            total -= votes[t - SLACK - 1]
        if total == 0:
            continue
        if t - last_place > apart:
            matches[count, 0], matches[count, 1] = t, total
            count += 1
            last_place, last_sum = t, total
        elif total > last_sum:  # a better neighbour replaces the last peak
            matches[count - 1, 0], matches[count - 1, 1] = t, total
            last_place, last_sum = t, total
    return count
