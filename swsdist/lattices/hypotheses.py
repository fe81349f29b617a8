"""From a recogniser's hypotheses to words, to their times, and to what is said where hypotheses differ.

Times of attention come early. An edge of a word near a pause moves to it; the others are those of the least squares of what
they move and of how lengths differ from those by letters: attention errs about as much at an edge as letters in a length.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from swsdist.audio.speech import HOP, WINDOW, levels, quiet_and_loud, stretches
from swsdist.lattices.lattice import Variant, Word
from swsdist.lattices.spelling import pieces, spelled


def joined_words(parts: Iterable[Word], sizes: Iterable[int]) -> Iterator[Word]:
    """Words of parts that a tokenizer makes: a blank begins a word, and a character in scripts without blanks.

    Args:
        parts: text with the blank before it, times, and probability.
        sizes: tokens of each.

    Yields:
        Words without blanks. Punctuation belongs to the word beside it, whose times and probability stay.
    """
    held, count = Word("", 0.0, 0.0, 0.0), 0
    for part, size in zip(parts, sizes, strict=False):
        text, bare = held.text + part.text.strip(), not spelled(part.text.strip(), "folded")
        core = spelled(held.text, "folded")
        begins = part.text.startswith(" ") or (not bare and len(pieces(core + part.text)) > max(len(pieces(core)), 1))
        if held.text and begins:
            yield held
            held, count = part._replace(text=part.text.strip()), size
        elif bare and held.text:
            held = held._replace(text=text)
        elif not core:
            held, count = part._replace(text=text), size
        else:
            mean = (held.confidence * count + part.confidence * size) / (count + size)
            held, count = Word(text, held.start, part.end, mean), count + size
    if held.text:
        yield held


def variants(best: Sequence[Word], others: Sequence[tuple[float, Sequence[str]]]) -> Iterator[list[Variant]]:
    """Places of a hypothesis where others differ, and those between, each word one.

    Args:
        best: its words.
        others: of each other hypothesis, the ratio of its likelihood to the best's, and its words.

    Yields:
        Variants, of the best first: where others differ, each with its probability, the greatest of all hypotheses that have
        it. Their words last as long together as the best's.
    """
    if not best:
        return
    folded = [spelled(word.text, "folded") for word in best]
    spans: list[tuple[int, int]] = []
    changes: list[list[tuple[int, int, int, int]]] = []
    for _, words in others:
        matched = SequenceMatcher(None, folded, [spelled(word, "folded") for word in words], autojunk=False)
        # An insertion takes the word after it (the last: before it), so that it has a time.
        differing = [(i, k, j, m) for tag, i, k, j, m in matched.get_opcodes() if tag != "equal"]
        changes.append([_with_time(change, len(best), len(words)) for change in differing])
        spans += [(i, k) for i, k, _, _ in changes[-1]]
    at = 0
    for first, end in [*_merged(spans), (len(best), len(best))]:
        yield from ([Variant(1.0, (word,))] for word in best[at:first])
        if first < end:
            yield _region(best[first:end], list(_said(first, end, others, changes)))
        at = end


def _with_time(change: tuple[int, int, int, int], count: int, words: int) -> tuple[int, int, int, int]:
    i, k, j, m = change
    if i < k:
        return change
    return (i, k + 1, j, m + 1) if k < count and m < words else (i - 1, k, j - 1, m)


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans, those that overlap as one."""
    result: list[tuple[int, int]] = []
    for first, end in sorted(spans):
        if result and first < result[-1][1]:
            result[-1] = result[-1][0], max(end, result[-1][1])
        else:
            result.append((first, end))
    return result


def _said(
    first: int,
    end: int,
    others: Sequence[tuple[float, Sequence[str]]],
    changes: Sequence[Sequence[tuple[int, int, int, int]]],
) -> Iterator[tuple[float, list[str]]]:
    """What other hypotheses have in a span of words of the best, where it differs, and the ratios of their likelihoods."""
    for (ratio, words), changed in zip(others, changes, strict=True):
        begin, stop, moved = first, end, False
        for i, k, _, m in changed:
            if k <= first:
                begin = first + (m - k)
            if i < end:
                stop = end + (m - k)
            moved |= i < end and k > first
        if moved:
            yield ratio, list(words[max(begin, 0) : stop])


def _region(best: Sequence[Word], said: list[tuple[float, list[str]]]) -> list[Variant]:
    chance = math.prod(word.confidence for word in best)
    ratios: dict[tuple[str, ...], tuple[float, list[str]]] = {}
    for ratio, words in said:
        key = tuple(text for word in words if (text := spelled(word, "folded")))
        if ratio > ratios.get(key, (0.0, words))[0]:
            ratios[key] = ratio, words
    total = chance * sum(ratio for ratio, _ in ratios.values())
    share = min(1.0, (1 - chance) / total) if total else 0.0
    start, end = best[0].start, best[-1].end
    rest = 1 - total * share
    held = (word._replace(confidence=min(word.confidence / max(rest, 1e-9), 1.0)) for word in best)
    result = [Variant(rest, tuple(held))]
    for ratio, words in ratios.values():
        sizes = np.cumsum([0, *(len(word) for word in words)])
        edges = (start + (end - start) * sizes / max(sizes[-1], 1)).tolist()
        spread = tuple(Word(word, edges[k], edges[k + 1]) for k, word in enumerate(words))
        result.append(Variant(chance * ratio * share, spread))
    return result


def repeated(words: list[str], copies: int) -> tuple[str, ...]:
    """What is repeated in the words of copies, once too few or too many times perhaps; nothing: no part is."""
    for times in (1,) if copies == 1 else (copies, copies + 1, copies - 1):
        part = words[: len(words) // times]
        if part and words == part * times:
            return tuple(part)
    return ()


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
