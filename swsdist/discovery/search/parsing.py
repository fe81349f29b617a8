"""Parses: a document's speech as a row of tokens.

Of the members of classes those with the greatest sum of scores are chosen that do not overlap (weighted interval scheduling);
speech between them, cut where syllables may begin, stands as tokens of its own.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.audio.speech import stretches


class Token(NamedTuple):
    """A stretch of a document: first frame, last + 1; its class, -1: none; and its score."""

    first: int
    stop: int
    group: int
    score: float


def choose(tokens: Sequence[Token]) -> list[Token]:
    """Tokens that do not overlap, with the greatest sum of scores; of equal sums the one with the later tokens left out."""
    order = sorted(tokens, key=lambda token: (token.stop, token.first, token.group))
    stops = [token.stop for token in order]
    best = [0.0]
    before: list[int] = []
    for k, token in enumerate(order):
        before.append(bisect_right(stops, token.first, 0, k))
        best.append(max(best[-1], best[before[-1]] + token.score))
    result, k = [], len(order)
    while k:
        if best[k] > best[k - 1]:
            result.append(order[k - 1])
            k = before[k - 1]
        else:
            k -= 1
    return result[::-1]


def with_rest(tokens: Sequence[Token], spoken: NDArray[np.bool_], boundaries: Sequence[int], least: int) -> list[Token]:
    """The tokens, and speech that none covers, cut at boundaries; no piece has fewer than `least` frames.

    Args:
        tokens: none overlap.
        spoken: bool (frames,).
        boundaries: ascending.
    """
    free = spoken.copy()
    for token in tokens:
        free[token.first : token.stop] = False
    rest = []
    for first, stop in stretches(free):
        for frame in boundaries[bisect_left(boundaries, first + least) : bisect_right(boundaries, stop - least)]:
            if frame - first >= least:
                rest.append(Token(first, frame, -1, 0.0))
                first = frame
        if stop - first >= least:
            rest.append(Token(first, stop, -1, 0.0))
    return sorted([*tokens, *rest])
