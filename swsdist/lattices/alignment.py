"""Times of the words of a given text, by the words that a recogniser hears.

Three words that follow each other once in both texts, and in one order, are an anchor; between two, letters are paired by the
fewest edits. A given word lasts as long as the letters with which its own are paired; if hardly any is paired, it lasts from
the word before to the next.

The confidence of a word is the share of the letters around it that are heard as given: what is said there is the text, or it is
not, and then a word has no place.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from swsdist.core.codes import lattices as codes
from swsdist.io.compressed import short
from swsdist.lattices.lattice import MILLISECOND, Lattice, LeftOut, Word, transcript
from swsdist.lattices.spelling import pieces, spelled, written

#: Letters around the middle of a word, and the least share of them that is heard where it has a place.
_AROUND, _LEAST = 80, 0.5
#: Pairs of letters that are compared at once, a byte each.
_MOST_PAIRS = 1 << 26
#: Seconds between two letters of a word, of which it then holds one only.
_TORN = 1.0
#: Words and characters of a text that a message shows.
_NAMED, _SHOWN = 12, 80


def aligned(text: str, heard: Lattice, words: Sequence[Word]) -> Lattice:
    """The transcript of a given text, with the times of what is heard in its recording. Words without a place are left out.

    Args:
        text: as written; in scripts without blanks its characters are words.
        heard: the recogniser's lattice.
        words: its best words, in order.

    Raises:
        DataError: less than half of the text has a place.
    """
    given = [piece for word in text.split() for piece in pieces(word)]
    found = placed(given, words)
    sizes = [max(len(spelled(word, "folded")), 1) for word in given]
    share = sum(size for size, word in zip(sizes, found, strict=True) if word) / sum(sizes)
    if share < _LEAST:
        said = _shown([word.text for word in words]) or "nothing"
        raise codes.NOT_THE_TEXT(where=heard.key, share=share, text=_shown(given), heard=said)
    left_out = LeftOut()
    for is_lost, some in groupby(zip(given, found, strict=True), key=lambda item: item[1] is None):
        lost = [word for word, _ in some] if is_lost else []
        with left_out:
            if lost:
                raise codes.WORDS_WITHOUT_PLACE(where=heard.key, count=len(lost), text=_shown(lost))
    kept = [word for word in found if word]
    result = transcript(heard.key, kept, heard.channel, left_out if left_out.count else None)
    length = max(result.length, round(heard.length * heard.tick / MILLISECOND))
    return replace(result, length=length, language=heard.language, speech_seconds=heard.speech_seconds)


def _shown(words: Sequence[str]) -> str:
    return short(written(words[:_NAMED]), _SHOWN)


def placed(given: Sequence[str], heard: Sequence[Word]) -> list[Word | None]:
    """Each given word with its times and confidence; None: it has no place.

    Args:
        given: words as written.
        heard: of the recording, in order.
    """
    texts, others = ([spelled(word, "folded") for word in some] for some in (given, [word.text for word in heard]))
    at, at_heard = (np.cumsum([0, *map(len, some)]) for some in (texts, others))
    letters, letters_heard = (np.array(list(map(ord, "".join(some))), np.int32) for some in (texts, others))
    pairs = np.full(len(letters), -1)
    for i, k, j, m in _between_anchors(texts, others):
        own, its = letters[at[i] : at[k]], letters_heard[at_heard[j] : at_heard[m]]
        found = _pairs(own, its)
        pairs[at[i] : at[k]] = np.where(found < 0, -1, found + at_heard[j])
    is_heard = pairs >= 0
    is_heard[is_heard] = letters[is_heard] == letters_heard[pairs[is_heard]]
    sums = np.concatenate([[0], np.cumsum(is_heard)])
    middle = (at[1:] + at[:-1]) // 2
    low, high = (middle - _AROUND // 2).clip(0), (middle + _AROUND // 2).clip(max=len(letters))
    share = (sums[high] - sums[low]) / np.maximum(high - low, 1)
    spans = np.array([_span(pairs[i:k], heard, at_heard) for i, k in pairwise(at)]).reshape(-1, 2)
    spans[share < _LEAST] = np.nan
    ends = np.fmax.accumulate(np.concatenate([[0.0], spans[:-1, 1]]))
    starts = np.fmin.accumulate(np.concatenate([spans[1:, 0], ends[-1:]])[::-1])[::-1]
    spans = np.where(np.isnan(spans), np.stack([ends, np.fmax(starts, ends)], axis=1), spans)
    return [
        Word(word, start, end, sure) if sure >= _LEAST else None
        for word, (start, end), sure in zip(given, spans.tolist(), share.tolist(), strict=True)
    ]


def _pairs(own: NDArray[np.int32], its: NDArray[np.int32]) -> NDArray[np.int64]:
    """As `pairs_of_least_edits`; of long sequences by halves (Hirschberg 1975), in bounded memory."""
    from swsdist.kernels.edits import pairs_of_least_edits  # loads numba

    if len(own) * len(its) <= _MOST_PAIRS or len(own) == 1:
        return pairs_of_least_edits(own, its)
    half = len(own) // 2
    edits = _edits(own[:half], its) + _edits(own[half:][::-1], its[::-1])[::-1]
    cut = int(edits.argmin())
    second = _pairs(own[half:], its[cut:])
    return np.concatenate([_pairs(own[:half], its[:cut]), np.where(second < 0, -1, second + cut)])


def _edits(own: NDArray[np.int32], its: NDArray[np.int32]) -> NDArray[np.int32]:
    """Fewest edits between a sequence and each beginning of another, int32 (len(its) + 1,)."""
    more = np.zeros(len(its) + 1, np.int32)  # edits, less the length of the beginning
    for letter in own:
        kept = np.minimum(more[:-1] - (its == letter), more[1:] + 1)
        more = np.concatenate([more[:1] + 1, kept])
        np.minimum.accumulate(more, out=more)
    more += np.arange(len(more), dtype=np.int32)
    return more


def _span(pairs: NDArray[np.int64], heard: Sequence[Word], at: NDArray[np.int64]) -> tuple[float, float]:
    """Start and end of the heard letters with which those of a word are paired; NaN where hardly any are."""
    if np.count_nonzero(pairs >= 0) * 3 < len(pairs):
        return np.nan, np.nan
    places: list[list[tuple[float, float]]] = []
    for letter in pairs[pairs >= 0].tolist():
        k = int(np.searchsorted(at, letter, side="right")) - 1
        length = (heard[k].end - heard[k].start) / (at[k + 1] - at[k])
        start = heard[k].start + (letter - int(at[k])) * length
        if not places or start - places[-1][-1][1] > _TORN:
            places.append([])
        places[-1].append((start, start + length))
    best = max(places, key=len, default=[(np.nan, np.nan)])
    return best[0][0], best[-1][1]


def _between_anchors(texts: Sequence[str], others: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """First and end words of both in turn: up to an anchor, and its first word; of the most anchors in one order."""
    threes, threes_heard = (list(zip(some, some[1:], some[2:], strict=False)) for some in (texts, others))
    once, once_heard = ({key for key, count in Counter(some).items() if count == 1} for some in (threes, threes_heard))
    place = {key: j for j, key in enumerate(threes_heard) if key in once_heard}
    found = [(i, place[key]) for i, key in enumerate(threes) if all(key) and key in once and key in place]
    lasts: list[int] = []  # the least last place of so many anchors, and which anchor that is
    which: list[int] = []
    before: list[int] = []
    for number, (_, j) in enumerate(found):
        count = bisect_left(lasts, j)
        lasts[count : count + 1], which[count : count + 1] = [j], [number]
        before.append(which[count - 1] if count else -1)
    anchors: list[tuple[int, int]] = []
    number = which[-1] if which else -1
    while number >= 0:
        anchors.append(found[number])
        number = before[number]
    i = j = 0
    for k, m in [*reversed(anchors), (len(texts), len(others))]:
        yield i, k, j, m
        if k < len(texts):
            yield k, k + 1, m, m + 1
        i, j = k + 1, m + 1
