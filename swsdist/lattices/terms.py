"""Written terms: from text to the sequences of labels that are searched.

A term is words, separated by blanks. In a store of words they are the labels. A word of a script without blanks is also
its characters, one with hyphens or apostrophes also its parts, a compound also the two labels that it joins, and words
are also the labels that hold them as parts or join them; in one of phones each is replaced by its pronunciations. With
`patterns` a word may hold `?`, any one character, and `*`, any number of them; alone, `?` is any one word, `*` none to
three words; `(one two|three)` are alternatives. A phone is a word of a term that is written in phones.

Pronunciations come from a dictionary, from rules for words that it lacks, or from the words that sound nearest.

**Dictionary**: a line a pronunciation, `WORD PHONE PHONE ...`, or with its probability, `WORD 0.7 PHONE PHONE ...`
(Kaldi's lexicon.txt and lexiconp.txt, CMU's and pocketsphinx's dictionaries; `word(2)` is another pronunciation of
`word`). A number without a decimal point, such as 1, is a phone (X-SAMPA has it), unless all lines begin with a
probability and one has a point. Where all lines have four numbers (lexiconp_silprob.txt), those after the probability
are of silence, and are not used. Lines that begin with `;;;` or `#` are comments.

**Rules**: a line a rule, `LETTERS PHONE PHONE ...`; letters without phones are silent. A word is read from left to
right, each time by the rule with the most letters. A word that no rule reads to its end has no pronunciation.

Sources: Kaldi, "Data preparation", section on lang files; the header of CMUdict 0.7.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import combinations, product
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, NonNegativeFloat, NonNegativeInt

from swsdist.config.section import IsPath, Section
from swsdist.core.codes import families
from swsdist.core.codes import lattices as codes
from swsdist.core.codes import searcher as searcher_codes
from swsdist.core.types import columns
from swsdist.io.compressed import lines
from swsdist.io.fields import split
from swsdist.io.filesystem import identify
from swsdist.lattices.packed import Recipe
from swsdist.lattices.words import Spelling, parts, pieces, spelled

Phones = tuple[str, ...]

_VARIANT = re.compile(r"(?P<word>.+)\(\d+\)")
#: At most 1, so that other numbers are phones.
_PROBABILITY = re.compile(r"(0?\.\d+|1(\.0*)?|0(\.0*)?)([eE]-\d+)?|\d(\.\d*)?[eE]-0*[1-9]\d*")
_NUMBER = re.compile(r"\d*\.?\d+([eE][-+]?\d+)?")


class Alternative(NamedTuple):
    """A sequence of labels, as the phones of a word, and its cost: -ln of its probability."""

    labels: tuple[str, ...]
    cost: float


def read_dictionary(
    path: str, storage: Mapping[str, object] | None, spelling: Spelling
) -> dict[str, list[Alternative]]:
    """Pronunciations by word, in the order of the file.

    Raises:
        UserError: there is no such file.
        DataError: a line has no phones, or a probability outside 0 to 1.
    """
    result: dict[str, list[Alternative]] = {}
    rows = list(_rows(path, storage))
    leading = [fields[1] for _, fields in rows if len(fields) > 1 and _PROBABILITY.fullmatch(fields[1])]
    weighted = len(leading) == len(rows) and any(not text.isdecimal() for text in leading)
    silences = weighted and all(len(row) > 5 and all(map(_NUMBER.fullmatch, row[2:5])) for _, row in rows)
    for where, fields in rows:
        word, rest, cost = fields[0], [*fields[1:2], *fields[5 if silences else 2 :]], 0.0
        if rest and _PROBABILITY.fullmatch(rest[0]) and (weighted or not rest[0].isdecimal()):
            probability = float(rest[0])
            if probability == 0:
                raise families.MALFORMED_LINE(
                    "a pronunciation of {word} has the probability 0",
                    "remove the line, or give a probability above 0",
                    where=where,
                    word=word,
                )
            cost, rest = -math.log(probability) + 0.0, rest[1:]
        if not rest:
            raise families.MALFORMED_LINE(
                "the pronunciation of {word} has no phones", "give its phones, or remove it", where=where, word=word
            )
        if variant := _VARIANT.fullmatch(word):
            word = variant["word"]
        result.setdefault(spelled(word, spelling), []).append(Alternative(tuple(rest), cost))
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
            raise families.DUPLICATE_NAME(
                "a second rule for the letters {letters}", "keep one of them", where=where, letters=letters
            )
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


#: A row an alternative: a sequence of labels, and what it costs (-ln of a weight). With `patterns`, labels may hold ? and *.
WRITTEN = columns("query_id string, example int32, labels string[], cost float64, patterns bool")

#: Most alternatives of a term.
MOST = 4096
#: Most words that a lone `*` stands for.
_MOST_OF_STAR = 3
#: Most parts of a label that is found by some of them.
_MOST_PARTS = 8
#: Least letters of each half of a compound: `may be` is not `maybe`.
_LEAST_HALF = 3
#: Least letters with which two words begin that are said to be alike.
_LEAST_BEGIN = 4
#: Most ways to read the words of a term as words of documents.
_MOST_WAYS = 64


class Terms(Section):
    """Settings of the conversion of written terms to labels of the store."""

    units: Literal["words", "phones"] | None = Field(
        None, description="labels of the store; default: those of the source, words of files"
    )
    patterns: bool = Field(False, description="terms are patterns: ?, * and (one|two)")
    dictionary: IsPath | None = Field(None, description="pronunciations: lines `WORD [PROBABILITY] PHONE PHONE ...`")
    rules: IsPath | None = Field(
        None,
        description="rules for words that the dictionary lacks: lines `LETTERS PHONE PHONE ...`, the longest first",
    )
    nearest: NonNegativeInt = Field(
        0,
        description="words: search a word that the dictionary lacks as this many of its words, those nearest in phones; "
        "without one, any word also as this many of the documents', of which a third of the letters may differ; 0: as it is",
    )
    edit_cost: NonNegativeFloat = Field(
        1.0, description="-ln of what each edit of a phone or letter of such a word multiplies the posterior by"
    )

    parts: bool = Field(
        True,
        description="words, no patterns: hyphens and apostrophes part words, and compounds are written together or apart, so "
        "`école` finds `l'école`, `sixty five` `sixty-five`, `fair ground` `fairground`, and the other way round; false: a "
        "label is one word",
    )

    @property
    def of_documents(self) -> bool:
        """Whether the labels of the documents say what a term stands for."""
        return self.units != "phones" and (self.parts or (self.nearest > 0 and self.dictionary is None))

    def identities(self, storage: Mapping[str, object]) -> list[Any]:
        """All that alternatives depend on, as JSON values; files by their identity."""
        files = [None if path is None else identify(path, storage) for path in (self.dictionary, self.rules)]
        return [self.model_dump(mode="json", exclude={"dictionary", "rules"}), files]


class TermReader:
    """Makes alternatives of terms.

    Args:
        options: units, dictionary and rules.
        recipe: of the store: spelling, and labels that are no words.
        storage: options for S3.
        known: labels that documents can hold; None: unknown.

    Raises:
        UserError, DataError: the dictionary or the rules cannot be read.
    """

    def __init__(
        self,
        options: Terms,
        recipe: Recipe,
        storage: Mapping[str, object] | None = None,
        known: Collection[str] | None = None,
    ) -> None:
        self._options, self._recipe, self._known = options, recipe, known
        words: Spelling = "folded" if options.units == "phones" else recipe.spelling
        self._spell = partial(spelled, spelling=words)
        read = {} if options.dictionary is None else read_dictionary(options.dictionary, storage, words)
        self._dictionary: dict[str, list[Alternative]] = read
        self._rules: dict[str, Phones] = {} if options.rules is None else read_rules(options.rules, storage, words)
        self._pronounces = options.dictionary is not None or options.rules is not None
        self._in_parts = (
            options.parts and not options.patterns and options.units != "phones" and recipe.spelling == "folded"
        )

    def alternatives(self, term: str) -> list[Alternative]:
        """The sequences of labels of a term, the cheapest first, each once.

        Raises:
            TermError: it has no word, an unknown one, too many alternatives, a pattern that cannot be read, or a phone that
                no document can hold.
        """
        sequences = list(_sequences(term)) if self._options.patterns else [tuple(term.split())]
        best: dict[tuple[str, ...], float] = {}
        for sequence in sequences:
            for number, words in enumerate(self._readings(sequence)):
                if not words:
                    raise codes.EMPTY_TERM(where=term, term=term)
                if self._by_letters or self._in_parts:  # the nearest of each word
                    words = [choices[: int(MOST ** (1 / len(words)))] for choices in words]
                size = math.prod(map(len, words))
                if size + len(best) > MOST and number:
                    break
                if size + len(best) > MOST:
                    raise codes.TOO_MANY_ALTERNATIVES(where=term, most=MOST)
                for chosen in product(*words):
                    labels = tuple(label for choice in chosen for label in choice.labels)
                    cost = sum(choice.cost for choice in chosen)
                    if labels:
                        best[labels] = min(cost, best.get(labels, cost))
        if not any(label != "?" for labels in best for label in labels):
            raise codes.EMPTY_TERM(where=term, term=term)
        if self._known is not None and self._options.units == "phones":
            self._demand_known(term, self._known, (label for labels in best for label in labels))
        return [Alternative(*item) for item in sorted(best.items(), key=lambda item: (item[1], item[0]))]

    def among_labels(self, terms: Iterable[str]) -> frozenset[str]:
        """Labels of the documents that can stand for terms: alternatives depend on no other."""
        result: set[str] = set()
        for term in terms:
            words = re.split(r"[\s()|]+" if self._options.patterns else r"\s+", term)
            texts = [text for word in words if not self._recipe.is_filler(word) and (text := self._spell(word))]
            for first in range(len(texts)):
                if self._by_letters:
                    result.update(self._near(texts[first]))
                if self._in_parts:
                    result.update(half for halves in self._halves(texts[first]) for half in halves)
                    ends = range(first + 1, min(first + _MOST_PARTS, len(texts)) + 1)
                    result.update(label for end in ends for label in self._within(texts[first:end]))
        return frozenset(result)

    def _readings(self, sequence: Sequence[str]) -> list[list[list[Alternative]]]:
        """Choices of each word; then, ways in which labels of the documents stand for several words."""
        choices = [(word, choice) for word in sequence if (choice := self._choices(word)) is not None]
        if not self._in_parts:
            return [[choice for _, choice in choices]]
        texts, count = [self._spell(word) for word, _ in choices], len(choices)
        ways: list[list[list[list[Alternative]]]] = [[[]]]  # of the first words, by their number
        for end in range(1, count + 1):
            here: list[list[list[Alternative]]] = []
            for first in reversed(range(max(0, end - _MOST_PARTS), end)):
                within = self._within(texts[first:end], begins=first > 0, ends=end < count)
                labels = [Alternative((label,), 0.0) for label in within]
                if end - first == 1:
                    labels = sorted([*choices[first][1], *labels], key=lambda item: item.cost)
                if labels:
                    here += [[*way, labels] for way in ways[first]]
            ways.append(here[:_MOST_WAYS])
            if end >= _MOST_PARTS:
                ways[end - _MOST_PARTS] = []
        return ways[-1]

    def _demand_known(self, term: str, phones: Collection[str], labels: Iterator[str]) -> None:
        options = self._options
        for label in labels:
            if label not in phones and not (options.patterns and ("?" in label or "*" in label)):
                source = " or ".join(path for path in (options.dictionary, options.rules) if path) or "the term"
                first = ", ".join(sorted(phones)[:8])
                raise codes.PHONE_NOT_IN_TRACK(where=term, source=source, phone=label, count=len(phones), phones=first)

    def _choices(self, word: str) -> list[Alternative] | None:
        """Labels that a word of a term stands for; None: it is punctuation, or no word to the store."""
        options = self._options
        if options.patterns and word in ("?", "*"):
            return [Alternative(("?",) * count, 0.0) for count in ((1,) if word == "?" else range(_MOST_OF_STAR + 1))]
        if self._recipe.is_filler(word):
            return None
        if options.units == "phones" and not self._pronounces:
            return [Alternative((word,), 0.0)]
        globbed = options.patterns and ("?" in word or "*" in word)
        text = self._spell(word, keep="?*" if globbed else "")
        if not text:
            return None
        if globbed:
            return [Alternative((text,), 0.0)]
        if options.units == "phones":
            return self._pronunciations(text, word)
        if options.nearest and options.dictionary is not None and text not in self._dictionary:
            phones = [item.labels for item in self._pronunciations(text, word)]
            nearest = self._pronounced.nearest(phones, options.nearest)
            return [Alternative((spelling,), options.edit_cost * edits) for spelling, edits in nearest]
        apart = [tuple(parts(text)), *self._halves(text)] if self._in_parts else []
        costs = dict.fromkeys([(text,), tuple(pieces(text)), *apart], 0.0)
        for label, edits in self._near(text).items() if self._by_letters else ():
            costs.setdefault((label,), options.edit_cost * edits)
        return [Alternative(*item) for item in costs.items()]

    def _near(self, text: str) -> dict[str, int]:
        """Other labels of the documents that differ in a third of the letters at most, and edits."""
        near = self._letters.nearest([tuple(text)], self._options.nearest + 1, len(text) // 3)
        return dict([item for item in near if item[0] != text][: self._options.nearest])

    def _within(self, texts: Sequence[str], begins: bool = False, ends: bool = False) -> list[str]:
        """Other labels of the documents that join words in a row, or hold them as their parts; of these the first, and the
        last, where it must be.
        """
        found = self._inside.get(tuple(part for text in texts for part in parts(text)), ())
        kept = [label for label, at_begin, at_end in found if (at_begin or not begins) and (at_end or not ends)]
        joined = "".join(texts) if min(map(len, texts)) >= _LEAST_HALF else ""
        return [label for label in dict.fromkeys([*({joined} & self._labels), *kept]) if [label] != texts]

    def _halves(self, text: str) -> list[tuple[str, ...]]:
        """Pairs of labels of the documents that a compound joins."""
        pairs = ((text[:k], text[k:]) for k in range(_LEAST_HALF, len(text) - _LEAST_HALF + 1))
        return [pair for pair in pairs if self._labels.issuperset(pair)]

    def similar(self, label: str) -> list[str]:
        """Up to three labels of the documents that differ in a third of its letters at most, then those that begin alike."""
        near = [other for other, _ in self._letters.nearest([tuple(label)], 3, len(label) // 3)]
        begin = label[: max(_LEAST_BEGIN, -(-2 * len(label) // 3))]
        alike = [other for other in self._labels if other.startswith(begin)] if len(begin) >= _LEAST_BEGIN else []
        return list(dict.fromkeys([*near, *sorted(alike, key=lambda other: (len(other), other))]))[:3]

    @property
    def _by_letters(self) -> bool:
        options = self._options
        return options.units != "phones" and options.nearest > 0 and options.dictionary is None

    @cached_property
    def _labels(self) -> frozenset[str]:
        return frozenset(self._known or ())

    @cached_property
    def _letters(self) -> Vocabulary:
        return Vocabulary({label: [tuple(label)] for label in self._known or ()})

    @cached_property
    def _pronounced(self) -> Vocabulary:
        return Vocabulary({word: [item.labels for item in items] for word, items in self._dictionary.items()})

    @cached_property
    def _inside(self) -> dict[tuple[str, ...], list[tuple[str, bool, bool]]]:
        """Labels by their parts that follow each other; whether the first is one of these, and the last."""
        result: dict[tuple[str, ...], list[tuple[str, bool, bool]]] = {}
        for label in sorted(self._known or ()):
            several = parts(label)
            count = len(several)
            if 1 < count <= _MOST_PARTS:
                for first, end in combinations(range(count + 1), 2):
                    entry = label, first == 0, end == count
                    result.setdefault(tuple(several[first:end]), []).append(entry)
        return result

    def _pronunciations(self, text: str, word: str) -> list[Alternative]:
        if pronunciations := self._dictionary.get(text):
            return pronunciations
        phones = by_rules(text, self._rules)
        if phones is None:
            raise codes.NO_PRONUNCIATION(where=word, word=word)
        return [Alternative(phones, 0.0)]

    def rows(self, query: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Rows of WRITTEN of a row of QUERIES, by its term.

        Raises:
            TermError: there is no term; or as `alternatives`.
        """
        if not query["term"]:
            raise searcher_codes.QUERY_WITHOUT_TEXT(where=query["query_id"])
        common = {"query_id": query["query_id"], "example": query["example"], "patterns": self._options.patterns}
        alternatives = self.alternatives(query["term"])
        return [{**common, "labels": list(item.labels), "cost": item.cost} for item in alternatives]


def cheapest(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of WRITTEN; texts or examples of a query with the same labels are one alternative, the cheapest."""
    best: dict[tuple[str, tuple[str, ...]], dict[str, Any]] = {}
    for row in rows:
        key = row["query_id"], tuple(row["labels"])
        if key not in best or row["cost"] < best[key]["cost"]:
            best[key] = row
    return list(best.values())


def _sequences(term: str) -> Iterator[tuple[str, ...]]:
    """The sequences of words of a pattern.

    Raises:
        TermError: a parenthesis is unpaired, or there are too many sequences.
    """
    text = term.replace("(", " ( ").replace(")", " ) ").replace("|", " | ")
    words = text.split()
    result, end = _alternation(words, 0, term)
    if end < len(words):
        raise codes.UNBALANCED_PATTERN(where=term, term=term)
    return iter(result)


def _alternation(words: list[str], at: int, term: str) -> tuple[list[tuple[str, ...]], int]:
    """The sequences from a word on, to the end or before a closing parenthesis, and where that is."""
    result: list[tuple[str, ...]] = []
    branch: list[tuple[str, ...]] = [()]
    while at < len(words) and words[at] != ")":
        if words[at] == "|":
            result += branch
            branch, at = [()], at + 1
            continue
        if words[at] == "(":
            inner, at = _alternation(words, at + 1, term)
            if at == len(words):
                raise codes.UNBALANCED_PATTERN(where=term, term=term)
        else:
            inner = [(words[at],)]
        at += 1
        if len(branch) * len(inner) > MOST:
            raise codes.TOO_MANY_ALTERNATIVES(where=term, most=MOST)
        branch = [before + after for before in branch for after in inner]
    return result + branch, at
