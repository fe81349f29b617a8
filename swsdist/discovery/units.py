"""Stretches of documents as arrays: phones, words, intervals, and the fragments of classes.

Documents, symbols and classes are numbers; a tuple of names is beside them. Times are ticks of 1 us, int64.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal, Self

import numpy as np

from swsdist.core.arrays import Bools, Ints

#: Ticks a second.
TICKS = 1_000_000
#: Ticks beyond every time: the factor that joins a document and a time in one integer.
BEYOND = 1 << 44

#: What a system gives: classes; pairs, each a class of two; or the fragments of a parse, each a class of one.
Given = Literal["classes", "pairs", "parse"]

#: Symbols of phones and words that are no speech for the programs of the challenges.
SILENCES = ("SIL", "SPN")
#: Phones that are no speech, whatever their case: of Kaldi and MFA, HTK, Julius, Festival, TIMIT, MAUS.
_SILENT = re.compile(
    r"(sil|sp|spn|nsn|silence|silb|sile|pau|h?#|epi)(_[bies])?|[!\[<](sil|silence|eps)[>\]]?|<(p|p:|nib|usb)>",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Intervals:
    """Stretches of documents, in the order of their file.

    Attributes:
        document: number of the document, an index into the names of `Corpus`; int64.
        onset: ticks; int64.
        offset: ticks; int64.
    """

    document: Ints
    onset: Ints
    offset: Ints

    def __len__(self) -> int:
        return len(self.document)

    def take(self, rows: Ints | Bools) -> Self:
        """Some of them, by index or mask."""
        arrays = {item.name: getattr(self, item.name) for item in fields(self)}
        taken = {name: array[rows] for name, array in arrays.items() if isinstance(array, np.ndarray)}
        return replace(self, **taken)


@dataclass(frozen=True)
class Units(Intervals):
    """Phones or words.

    Attributes:
        symbol: index into `names`; int64.
        names: the different symbols.
    """

    symbol: Ints
    names: tuple[str, ...]

    def without(self, symbols: tuple[str, ...]) -> Units:
        """Units with other symbols."""
        dropped = [number for number, name in enumerate(self.names) if name in symbols]
        return self.take(~np.isin(self.symbol, dropped))


@dataclass(frozen=True)
class Fragments(Intervals):
    """Fragments of classes, in the order of their file.

    Attributes:
        group: number of the class of each, index into `names`; int64.
        names: of the classes, also of those without fragments.
    """

    group: Ints
    names: tuple[str, ...]


@dataclass(frozen=True)
class Corpus:
    """The right answers.

    Attributes:
        documents: all names that any file has, sorted; documents are numbered in this order.
        phones: with their silences; sorted by document and time, disjoint.
        words: likewise; None: not given.
        talker: number of the talker of each document, -1 if unknown; None: no talkers are given.
    """

    documents: tuple[str, ...]
    phones: Units
    words: Units | None = None
    talker: Ints | None = None

    @property
    def speech(self) -> Units:
        """The phones that are speech; Kaldi's may name their position in a word."""
        return self.phones.without((*SILENCES, *filter(_SILENT.fullmatch, self.phones.names)))


@dataclass(frozen=True)
class EvaluationSetup:
    """Inputs that some modes need besides the corpus.

    Attributes:
        folds: sets of folds by name; a fold is its intervals.
        split: the stretches of speech; None: not given.
        gold_classes: classes of equal phone strings; None: not given.
        given: what the fragments are.
    """

    folds: Mapping[str, tuple[Intervals, ...]] = field(default_factory=dict)
    split: Intervals | None = None
    gold_classes: Fragments | None = None
    given: Given = "classes"


def document_name(recording: str, channel: int) -> str:
    """Name of a recording's channel; a channel after the first is a document of its own, `NAME#CHANNEL`."""
    return recording if channel == 1 else f"{recording}#{channel}"


def places(document: Ints, time: Ints) -> Ints:
    """One integer for a document and a time, in their order."""
    return document * BEYOND + time


def ids(first: Ints, *more: Ints) -> Ints:
    """The rank of each row among the different rows, from 0; the arrays are columns of equal length."""
    key = np.unique(first, return_inverse=True)[1]
    for column in more:
        values, column = np.unique(column, return_inverse=True)
        key = np.unique(key * len(values) + column, return_inverse=True)[1]
    return key


def string_ids(symbol: Ints, first: Ints, last: Ints) -> Ints:
    """A number for each string ``symbol[first:last]``; equal strings have equal numbers, from 0."""
    length = last - first
    result = ids(length)
    longest = int(length.max()) if len(length) else 0
    for k in range(longest):
        # Strings of other lengths have other numbers already, so the end needs no mark of its own.
        live = np.flatnonzero(length > k)
        result[live] = _spread(result, live, symbol[first[live] + k])
    return ids(result)


def _spread(numbers: Ints, live: Ints, symbol: Ints) -> Ints:
    """Numbers of (number so far, symbol) of the live rows, beyond all numbers so far."""
    return int(numbers.max()) + 1 + ids(numbers[live], symbol)


def representatives(numbers: Ints) -> Ints:
    """The index of one row of each number, of numbers 0, 1, ..., n - 1 that all occur."""
    rows = np.zeros(int(numbers.max()) + 1 if len(numbers) else 0, np.int64)
    rows[numbers] = np.arange(len(numbers))
    return rows


@dataclass(frozen=True)
class Gold:
    """Phones, sorted by document and time, disjoint.

    A span is a pair of indices (first, last + 1) of phones of one document: equal spans are the same fragment.

    Attributes:
        phones: of all documents.
        run: number of the run of each phone: a longest series in which each begins exactly where the one before ends; int64.
    """

    phones: Units
    run: Ints

    @classmethod
    def of(cls, phones: Units) -> Gold:
        """The gold of phones in any order."""
        phones = phones.take(np.lexsort((phones.onset, phones.document)))
        new = np.ones(len(phones), bool)
        new[1:] = (phones.document[1:] != phones.document[:-1]) | (phones.onset[1:] != phones.offset[:-1])
        return cls(phones, np.cumsum(new) - 1)

    def __len__(self) -> int:
        return len(self.phones)


def touched(units: Intervals, stretches: Intervals) -> tuple[Ints, Ints]:
    """First unit that shares time with each stretch, and the one after the last; equal if there is none.

    Args:
        units: sorted by document and time, disjoint.
        stretches: in any order.
    """
    lo = np.searchsorted(places(units.document, units.offset), places(stretches.document, stretches.onset), "right")
    hi = np.searchsorted(places(units.document, units.onset), places(stretches.document, stretches.offset), "left")
    begins = np.searchsorted(units.document, stretches.document, "left")
    ends = np.searchsorted(units.document, stretches.document, "right")
    lo, hi = np.maximum(lo, begins), np.minimum(hi, ends)
    return lo, np.maximum(lo, hi)


def partnered(group: Ints, first: Ints, last: Ints) -> np.ndarray:
    """Whether each span has a partner: another of its group that does not overlap it.

    One other document, or the first and the last occurrence apart: the least end and the greatest start of a group tell.

    Args:
        group: numbers from 0.
        first: of each span.
        last: one after the last of each span, in the units of `first`.
    """
    groups = int(group.max()) + 1 if len(group) else 0
    latest = np.full(groups, -1, np.int64)
    np.maximum.at(latest, group, first)
    earliest = np.full(groups, BEYOND, np.int64)
    np.minimum.at(earliest, group, last)
    return (latest[group] >= last) | (earliest[group] <= first)
