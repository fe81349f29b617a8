"""Input of the measures of mode seed: phones, and the distinct spans of fragments and words, in one set of numbers.

A phone belongs to a fragment, by the rule of the seed, if more than 30 ms of it, or more than half of it, lie in the
fragment.

Source: Versteegh et al. 2015, as the ZeroSpeech 2017 description of the track's measures has it: T of a fragment.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from swsdist.core.arrays import Bools, Ints
from swsdist.core.types import columns
from swsdist.discovery.files import ticks_of
from swsdist.discovery.units import (
    SILENCES,
    Corpus,
    Fragments,
    Gold,
    Intervals,
    Units,
    document_name,
    string_ids,
    touched,
)

#: Ticks of which a part of a phone must have more, or less than which a boundary may be off.
EDGE = 30_000


def spans(gold: Gold, stretches: Intervals) -> tuple[Ints, Ints]:
    """First phone of each stretch, and the one after the last; equal where it has no phone.

    Only the first and the last of the phones that it touches can be there in part, for phones are disjoint.
    """
    first, last = touched(gold.phones, stretches)
    some = first < last
    starts = first + (some & ~_belongs(gold, first, stretches))
    ends = last - (some & ~_belongs(gold, last - 1, stretches))
    return starts, np.maximum(starts, ends)


def _belongs(gold: Gold, phone: Ints, stretches: Intervals) -> Bools:
    """Whether a phone belongs to its stretch; of an index beyond the phones anything."""
    if not len(gold):
        return np.zeros(len(phone), bool)
    at = np.clip(phone, 0, len(gold) - 1)
    onset, offset = gold.phones.onset[at], gold.phones.offset[at]
    common = np.minimum(stretches.offset, offset) - np.maximum(stretches.onset, onset)
    result: Bools = (common > EDGE) | (2 * common > offset - onset)
    return result


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
        """The scene of the right answers and the results; silences are dropped."""
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


#: A row a class: occurrences, known speakers, mean duration (s), mean of how sure its members are.
WORDS = columns("class int32, occurrences int32, speakers int32, seconds float64, sure float64")

#: How often as sure as the least that makes a class (docs/how-to/discover-words.md).
_ALIKE = ((1.4, "very alike"), (1.15, "alike"))


def alike(sure: float, least: float) -> str:
    """How sure a class or a member is, in words.

    Args:
        sure: of it.
        least: that makes a class.
    """
    return next((words for times, words in _ALIKE if sure >= times * least), "somewhat alike")


class Stretch(NamedTuple):
    """A member of a class, or a token of a parse.

    Attributes:
        group: number of the class; None: of no class.
        doc_id, channel: of the recording.
        start, end: s, in the recording.
        sure: score of its best match in the class, per square root of its frames, in units of the distance; None: of no class.
        speaker: empty: not known.
        path: of the recording, local or a url; empty: none.
    """

    group: int | None
    doc_id: str
    channel: int
    start: float
    end: float
    sure: float | None
    speaker: str = ""
    path: str = ""

    @property
    def document(self) -> str:
        """The name of the recording's channel."""
        return document_name(self.doc_id, self.channel)


class Word(NamedTuple):
    """A class, its members surest first."""

    group: int
    members: tuple[Stretch, ...]

    @property
    def speakers(self) -> int:
        """The number of known speakers."""
        return len({member.speaker for member in self.members} - {""})

    @property
    def seconds(self) -> float:
        """Mean duration, s."""
        return math.fsum(member.end - member.start for member in self.members) / len(self.members)

    @property
    def sure(self) -> float:
        """Mean of how sure the members are."""
        return math.fsum(member.sure or 0.0 for member in self.members) / len(self.members)

    def row(self) -> dict[str, float]:
        """The row of WORDS."""
        values = (self.group, len(self.members), self.speakers, round(self.seconds, 6), round(self.sure, 6))
        return dict(zip(WORDS.names, values, strict=True))

    def in_turns(self) -> Iterator[Stretch]:
        """The members by turns: the surest of each speaker, then the second of each, and so on."""
        by_speaker: dict[str, list[Stretch]] = defaultdict(list)
        for member in self.members:
            by_speaker[member.speaker].append(member)
        for turn in zip_longest(*by_speaker.values()):
            yield from (member for member in turn if member is not None)


def fragments_of(stretches: Sequence[Stretch], numbers: Mapping[str, int]) -> Fragments:
    """Members of classes as fragments, in their order; `numbers` of documents by name."""
    times = np.array([(stretch.start, stretch.end) for stretch in stretches], np.float64).reshape(-1, 2)
    onset, offset = ticks_of(times).T
    group = np.array([stretch.group for stretch in stretches], np.int64)
    document = np.array([numbers[stretch.document] for stretch in stretches], np.int64)
    names = tuple(str(number) for number in range(int(group.max(initial=-1)) + 1))
    return Fragments(document, onset, offset, group, names)


def word_list(stretches: Iterable[Stretch]) -> list[Word]:
    """Classes by number of speakers, then by how sure, then their own number; tokens of no class are left out."""
    members: dict[int, list[Stretch]] = defaultdict(list)
    for stretch in stretches:
        if stretch.group is not None:
            members[stretch.group].append(stretch)
    words = [
        Word(group, tuple(sorted(group_members, key=lambda member: (-(member.sure or 0.0), member[1:5]))))
        for group, group_members in members.items()
    ]
    return sorted(words, key=lambda word: (-word.speakers, -word.sure, word.group))
