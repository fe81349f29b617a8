"""Written terms: from text to the sequences of labels that are searched.

A term is words, separated by blanks. In a store of words they are the labels, and a word of a script without blanks is also
its characters; in one of phones each is replaced by its pronunciations. With `patterns` a word may hold `?`, any one
character, and `*`, any number of them; alone, `?` is any one word, `*` none to three words; `(one two|three)` are
alternatives. A phone is a word of a term that is written in phones.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import product
from typing import Any, Literal, NamedTuple

import pyarrow as pa
from pydantic import Field, NonNegativeFloat, NonNegativeInt

from swsdist.config.section import IsPath, Section
from swsdist.core.codes import searcher as searcher_codes
from swsdist.core.codes import text as codes
from swsdist.io.filesystem import identify
from swsdist.lattices.packed import Recipe
from swsdist.lattices.pronunciations import (
    Phones,
    Pronunciation,
    by_rules,
    nearest_words,
    read_dictionary,
    read_rules,
)
from swsdist.lattices.spelling import Spelling, pieces, spelled

#: A row an alternative: a sequence of labels, and what it costs (-ln of a weight). With `patterns`, labels may hold ? and *.
WRITTEN = pa.schema(
    [
        pa.field("query_id", pa.string(), False),
        pa.field("example", pa.int32(), False),
        pa.field("labels", pa.list_(pa.string()), False),
        pa.field("cost", pa.float64(), False),
        pa.field("patterns", pa.bool_(), False),
    ]
)

#: Most alternatives of a term.
MOST = 4096
#: Most words that a lone `*` stands for.
_MOST_OF_STAR = 3


class Terms(Section):
    """How written terms become labels of the store."""

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

    def identities(self, storage: Mapping[str, object]) -> list[Any]:
        """All that alternatives depend on, as JSON values; files by their identity."""
        files = [None if path is None else identify(path, storage) for path in (self.dictionary, self.rules)]
        return [self.model_dump(mode="json", exclude={"dictionary", "rules"}), files]


class Alternative(NamedTuple):
    """A sequence of labels, and its cost."""

    labels: tuple[str, ...]
    cost: float


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
        self._dictionary: dict[str, list[Pronunciation]] = read
        self._rules: dict[str, Phones] = {} if options.rules is None else read_rules(options.rules, storage, words)
        self._pronounces = options.dictionary is not None or options.rules is not None

    def alternatives(self, term: str) -> list[Alternative]:
        """The sequences of labels of a term, the cheapest first, each once.

        Raises:
            TermError: it has no word, an unknown one, too many alternatives, a pattern that cannot be read, or a phone that
                no document can hold.
        """
        sequences = list(_sequences(term)) if self._options.patterns else [tuple(term.split())]
        best: dict[tuple[str, ...], float] = {}
        for sequence in sequences:
            words = [choice for word in sequence if (choice := self._choices(word)) is not None]
            if not words:
                raise codes.EMPTY_TERM(where=term, term=term)
            if self._by_letters:  # the nearest of each word
                words = [choices[: int(MOST ** (1 / len(words)))] for choices in words]
            size = math.prod(map(len, words))
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
        if self._by_letters:
            return self._nearest_in_letters(text)
        if options.units != "phones" and (not options.nearest or text in self._dictionary):
            parts = tuple(pieces(text))
            return [Alternative((text,), 0.0), *([Alternative(parts, 0.0)] if len(parts) > 1 else ())]
        phones = self._pronunciations(text, word)
        if options.units == "phones":
            return [Alternative(item.phones, item.cost) for item in phones]
        nearest = nearest_words([item.phones for item in phones], self._dictionary, options.nearest)
        return [Alternative((spelling,), options.edit_cost * edits) for spelling, edits in nearest]

    def _nearest_in_letters(self, text: str) -> list[Alternative]:
        """A word, and those of the documents that differ in a third of its letters at most."""
        near = nearest_words([tuple(text)], self._letters, self._options.nearest + 1)
        others = [(label, edits) for label, edits in near if label != text and 3 * edits <= len(text)]
        costs = [(text, 0.0), *((label, self._options.edit_cost * edits) for label, edits in others)]
        return [Alternative((label,), cost) for label, cost in costs]

    @property
    def _by_letters(self) -> bool:
        options = self._options
        return options.units != "phones" and options.nearest > 0 and options.dictionary is None

    @cached_property
    def _letters(self) -> dict[str, list[Pronunciation]]:
        return {label: [Pronunciation(tuple(label), 0.0)] for label in self._known or ()}

    def _pronunciations(self, text: str, word: str) -> Sequence[Pronunciation]:
        if pronunciations := self._dictionary.get(text):
            return pronunciations
        phones = by_rules(text, self._rules)
        if phones is None:
            raise codes.NO_PRONUNCIATION(where=word, word=word)
        return [Pronunciation(phones, 0.0)]

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
