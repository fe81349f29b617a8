"""Pronunciations of words: a dictionary, rules for words that it lacks, and the words that sound nearest.

**Dictionary**: a line a pronunciation, `WORD PHONE PHONE ...`, or with its probability, `WORD 0.7 PHONE PHONE ...` (Kaldi's
lexicon.txt and lexiconp.txt, CMU's and pocketsphinx's dictionaries; `word(2)` is another pronunciation of `word`). A number
without a decimal point, such as 1, is a phone (X-SAMPA has it), unless all lines begin with a probability and one has a point.
Where all lines have four numbers (lexiconp_silprob.txt), those after the probability are of silence, and are not used. Lines
that begin with `;;;` or `#` are comments.

**Rules**: a line a rule, `LETTERS PHONE PHONE ...`; letters without phones are silent. A word is read from left to right, each
time by the rule with the most letters. A word that no rule reads to its end has no pronunciation.

Sources: Kaldi, "Data preparation", section on lang files; the header of CMUdict 0.7.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from swsdist.core.codes import text as codes
from swsdist.io.compressed import lines
from swsdist.io.fields import split
from swsdist.lattices.spelling import Spelling, spelled

Phones = tuple[str, ...]

_VARIANT = re.compile(r"(?P<word>.+)\(\d+\)")
#: At most 1, so that other numbers are phones.
_PROBABILITY = re.compile(r"(0?\.\d+|1(\.0*)?|0(\.0*)?)([eE]-\d+)?|\d(\.\d*)?[eE]-0*[1-9]\d*")
_NUMBER = re.compile(r"\d*\.?\d+([eE][-+]?\d+)?")


class Pronunciation(NamedTuple):
    """Phones of a word, and -ln of their probability."""

    phones: Phones
    cost: float


def read_dictionary(
    path: str, storage: Mapping[str, object] | None, spelling: Spelling
) -> dict[str, list[Pronunciation]]:
    """Pronunciations by word, in the order of the file.

    Raises:
        UserError: there is no such file.
        DataError: a line has no phones, or a probability outside 0 to 1.
    """
    result: dict[str, list[Pronunciation]] = {}
    rows = list(_rows(path, storage))
    leading = [fields[1] for _, fields in rows if len(fields) > 1 and _PROBABILITY.fullmatch(fields[1])]
    weighted = len(leading) == len(rows) and any(not text.isdecimal() for text in leading)
    silences = weighted and all(len(row) > 5 and all(map(_NUMBER.fullmatch, row[2:5])) for _, row in rows)
    for where, fields in rows:
        word, rest, cost = fields[0], [*fields[1:2], *fields[5 if silences else 2 :]], 0.0
        if rest and _PROBABILITY.fullmatch(rest[0]) and (weighted or not rest[0].isdecimal()):
            probability = float(rest[0])
            if probability == 0:
                raise codes.IMPOSSIBLE_PRONUNCIATION(where=where, word=word)
            cost, rest = -math.log(probability) + 0.0, rest[1:]
        if not rest:
            raise codes.NO_PHONES(where=where, word=word)
        if variant := _VARIANT.fullmatch(word):
            word = variant["word"]
        result.setdefault(spelled(word, spelling), []).append(Pronunciation(tuple(rest), cost))
    return result


def read_rules(path: str, storage: Mapping[str, object] | None, spelling: Spelling) -> dict[str, Phones]:
    """Phones by letters.

    Raises:
        UserError: there is no such file.
        DataError: two rules have the same letters.
    """
    result: dict[str, Phones] = {}
    for where, fields in _rows(path, storage):
        letters = spelled(fields[0], spelling) or fields[0]
        if letters in result:
            raise codes.DUPLICATE_RULE(where=where, letters=letters)
        result[letters] = tuple(fields[1:])
    return result


def _rows(path: str, storage: Mapping[str, object] | None) -> Iterator[tuple[str, list[str]]]:
    for number, line in lines(path, storage):
        fields = split(line)
        if fields and not fields[0].startswith((";;;", "#")):
            yield f"{path}:{number}", fields


def by_rules(word: str, rules: Mapping[str, Phones]) -> Phones | None:
    """Phones of a word by the longest rules from left to right; None if they do not read it to its end."""
    longest = max(map(len, rules), default=0)
    phones: list[str] = []
    first = 0
    while first < len(word):
        size = next((k for k in range(min(longest, len(word) - first), 0, -1) if word[first : first + k] in rules), 0)
        if not size:
            return None
        phones += rules[word[first : first + size]]
        first += size
    return tuple(phones) or None


class Vocabulary:
    """Words by their phones, or letters, of which the nearest are found.

    Args:
        words: each with its pronunciations.
    """

    def __init__(self, words: Mapping[str, Sequence[Phones]]) -> None:
        entries = sorted(
            ((word, item) for word, items in words.items() for item in items), key=lambda entry: len(entry[1])
        )
        self._words = [word for word, _ in entries]
        self._number: dict[str, int] = {}
        numbers = (self._number.setdefault(phone, len(self._number)) for _, item in entries for phone in item)
        self._flat = np.fromiter(numbers, np.int32)
        self._lengths = np.array([len(item) for _, item in entries], np.int64)
        self._starts = np.concatenate(([0], np.cumsum(self._lengths)))

    def nearest(self, phones: Sequence[Phones], count: int, most: int | None = None) -> list[tuple[str, int]]:
        """Words with the fewest edits between their phones and the nearest of some pronunciations.

        Args:
            phones: the pronunciations.
            count: of words.
            most: edits; None: any.

        Returns:
            Word and edits (substitutions, insertions, deletions, each 1) of at most `count`, by edits and then by word.
        """
        from swsdist.kernels.edits import edits_to_all  # loads numba

        best: dict[str, int] = {}
        for item in phones:
            first, end = 0, len(self._words)
            if most is not None:  # an edit changes the length by 1 at most
                first, end = np.searchsorted(self._lengths, [len(item) - most, len(item) + most + 1]).tolist()
            pattern = np.array([self._number.get(phone, -1) for phone in item], np.int32)
            starts = self._starts[first : end + 1]
            edits = edits_to_all(pattern, self._flat[starts[0] : starts[-1]], starts - starts[0])
            near = np.arange(len(edits)) if most is None else np.flatnonzero(edits <= most)
            for k, distance in zip((first + near).tolist(), edits[near].tolist(), strict=True):
                word = self._words[k]
                best[word] = min(distance, best.get(word, distance))
        return heapq.nsmallest(count, best.items(), key=lambda item: (item[1], item[0]))
