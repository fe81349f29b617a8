"""Times of words by the attention of a recogniser, moved to where the words sound.

Attention comes early. An edge of a word near a pause moves to it; the others are those of the least squares of what they move
and of how lengths differ from those by letters: attention errs about as much at an edge as letters in a length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from swsdist.audio.speech import HOP, WINDOW, levels, quiet_and_loud, stretches
from swsdist.lattices.lattice import Word
from swsdist.lattices.spelling import spelled

#: Seconds by which attention comes before what it attends to, and in which an edge of a word moves to a pause: the best of the
#: development part of the English corpus.
_EARLY, _NEAR = 0.08, 0.2
#: Frames of the shortest pause.
_PAUSE = 12


def settled(words: Sequence[Word], samples: NDArray[np.float32], rate: int) -> list[Word]:
    """Words with their times moved.

    Args:
        words: in order, times in the samples.
        samples: float32, full scale 1.
        rate: Hz.
    """
    if not words:
        return []
    starts, ends = (np.array(column) + _EARLY for column in list(zip(*words, strict=True))[1:3])
    before, after = np.concatenate([starts[:1], ends]), np.concatenate([starts, ends[-1:]])
    edges = (before + after) / 2
    pause, weight = np.zeros(len(edges)), np.ones(len(edges))
    for first, last in _pauses(samples, rate):
        away = np.maximum(np.maximum(first - after, before - last), 0) + np.abs(edges - (first + last) / 2) / 1000
        if away[k := int(np.argmin(away))] <= _NEAR and weight[k] == 1:
            edges[k], pause[k], weight[k] = first, last - first, 1e6
    letters = np.array([max(len(spelled(word.text, "folded")) - 1, 1) for word in words])
    lengths = letters / letters.sum() * (np.diff(edges) - pause[:-1]).clip(0).sum()
    change = np.diff(np.eye(len(edges)), axis=0)
    edges = np.linalg.solve(np.diag(weight) + change.T @ change, weight * edges + change.T @ (lengths + pause[:-1]))
    edges = np.maximum.accumulate(edges.clip(0, len(samples) / rate))
    last_ends = np.maximum(edges[1:], (edges + pause)[:-1])
    return [
        word._replace(start=start, end=end)
        for word, start, end in zip(words, (edges + pause)[:-1].tolist(), last_ends.tolist(), strict=True)
    ]


def _pauses(samples: NDArray[np.float32], rate: int) -> Iterator[tuple[float, float]]:
    """First and last second of each stretch of quiet frames, of the lowest fifth between quiet and loud ones."""
    power = levels(samples, rate).power
    if len(power):
        quiet, loud = quiet_and_loud(power)
        for first, last in stretches(power < quiet + (loud - quiet) / 5):
            if last - first >= _PAUSE:
                yield first * HOP + WINDOW / 2, last * HOP + WINDOW / 2
