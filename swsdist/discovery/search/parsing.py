"""Parses: a document's speech as a row of tokens.

Of the members of classes those with the greatest sum of scores are chosen that do not overlap (weighted interval scheduling);
speech between them stands as tokens of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


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


def with_rest(tokens: Sequence[Token], spoken: NDArray[np.bool_], least: int) -> list[Token]:
    """The tokens, and stretches of speech of at least `least` frames that none covers.

    Args:
        tokens: none overlap.
        spoken: bool (frames,).
    """
    free = spoken.copy()
    for token in tokens:
        free[token.first : token.stop] = False
    edges = np.flatnonzero(np.diff(np.concatenate([[0], free.astype(np.int8), [0]])))
    rest = [Token(int(a), int(b), -1, 0.0) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a >= least]
    return sorted([*tokens, *rest])
