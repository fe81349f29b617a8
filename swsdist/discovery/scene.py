"""Input of the measures of mode seed: phones, and the distinct spans of fragments and words, in one set of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from swsdist.discovery.units import Gold
from swsdist.discovery.spans import spans
from swsdist.discovery.units import string_ids
from swsdist.discovery.units import SILENCES, Corpus, Fragments, Ints, Units


@dataclass(frozen=True)
class Spans:
    """Distinct spans of phones, in the order of (first, last).

    Attributes:
        first: phone; int64.
        last: one after the last phone; int64.
        document: of each; int64.
        string: number of its phone string, equal for equal strings of fragments and words; int64.
    """

    first: Ints
    last: Ints
    document: Ints
    string: Ints

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True)
class Scene:
    """Phones, fragments and words of a corpus, or of a fold.

    Attributes:
        gold: phones without silences.
        talker: of each document; None: not known.
        fragments: those that have a span, with their own times.
        spans: of the fragments.
        span: index of the span of each fragment.
        words: those that have a span; None: not given.
        word_spans: of the words; None: not given.
        empty: number of fragments without a span, which are left out of everything.
    """

    gold: Gold
    talker: Ints | None
    fragments: Fragments
    spans: Spans
    span: Ints
    words: Units | None
    word_spans: Spans | None
    empty: int

    @classmethod
    def of(cls, corpus: Corpus, classes: Fragments) -> Scene:
        """Of the right answers and what was found; silences are dropped."""
        gold = Gold.of(corpus.speech)
        first, last = spans(gold, classes)
        some = first < last
        fragments, first, last = classes.take(some), first[some], last[some]
        distinct = np.unique(first * (len(gold) + 1) + last, return_inverse=True)
        starts, ends = _parted(distinct[0], gold)
        words = corpus.words and corpus.words.without(SILENCES)
        word_starts = word_ends = np.zeros(0, np.int64)
        if words is not None:
            word_first, word_last = spans(gold, words)
            words = words.take(word_first < word_last)
            of_words = (word_first * (len(gold) + 1) + word_last)[word_first < word_last]
            word_starts, word_ends = _parted(np.unique(of_words), gold)
        string = string_ids(
            gold.phones.symbol, np.concatenate([starts, word_starts]), np.concatenate([ends, word_ends])
        )
        document = gold.phones.document
        return cls(
            gold,
            corpus.talker,
            fragments,
            Spans(starts, ends, document[starts], string[: len(starts)]),
            distinct[1],
            words,
            None if words is None else Spans(word_starts, word_ends, document[word_starts], string[len(starts) :]),
            int(len(classes) - some.sum()),
        )

    @cached_property
    def members(self) -> tuple[Ints, Ints]:
        """Class and span of each distinct member of a class, sorted by both."""
        key = np.unique(self.fragments.group * (len(self.spans) + 1) + self.span)
        return key // (len(self.spans) + 1), key % (len(self.spans) + 1)


def _parted(key: Ints, gold: Gold) -> tuple[Ints, Ints]:
    return key // (len(gold) + 1), key % (len(gold) + 1)
