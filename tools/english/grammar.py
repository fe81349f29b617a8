"""English sentences of a small grammar.

The words are in `vocabulary.txt`, by kind; `_` joins the words of a phrase, `*` marks nouns without a plural. Within a kind,
the chance of the k-th word falls as 1 / (k + 40), nearly as Zipf has it. Weights are integers, so nothing depends on rounding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

#: What a symbol in braces may become: kinds of `vocabulary.txt`, or a rule of this table, each alternative as likely.
_RULES = {
    "sentence": """
        {subject} {verb} {object} | {subject} {verb} {object} {adverb} | {subject} {verb} {object} {where} |
        {subject} {verb} {object} and {verb} {object} | {subject} {adverb} {verb} {object} {where} |
        {subject} {went} {where} | {subject} {went} {adverb} {where} | {subject} {went} with {subject} {when} |
        {when}, {subject} {verb} {object} | {when}, {subject} {went} and {verb} {object} |
        {where}, {subject} {verb} {object} | {adverb}, {subject} {verb} {object} of {place} |
        {subject}, who {verb} {object}, {went} {where} | {person} and {person} {verb} {object} for {person} |
        {object} of {place} {went} because {subject} {verb} {object} |
        after {subject} {went}, {person} {verb} {object} | before {when}, {subject} {verb} {object} |
        the {noun} was {adjective}, but the {noun} was {adjective} and {adjective} |
        there were {determiner} {plural} and {determiner} {adjective} {plural} {where} |
        {person} said that {subject} {verb} {object}""",
    "subject": """
        the {noun} | the {adjective} {noun} | the {adjective} {noun} | the {adjective} {plural} |
        {determiner} {plural} | {determiner} {adjective} {plural} | our {noun} | {person} | the {compound}""",
    "object": """
        the {noun} | the {adjective} {noun} | the {adjective} {plural} | the {noun} of the {noun} |
        the {noun} and the {plural} | their {plural} | {determiner} {adjective} {plural} | the {compound} |
        the {compound} near the {noun}""",
    "person": """
        {name} | {name} {surname} | {name} {surname} | {name} {unknown} | his {noun} | her {adjective} {noun}""",
    "where": """
        in {place} | near {place} | in {place} | between {place} and {place} | at the {noun} |
        behind the {adjective} {noun} | from the {compound} to the {noun} | on the road to {unknown}""",
    "when": """
        in {month} | last {month} | {determiner} years ago | during the {noun} | after the {adjective} {noun}""",
}
RULES = {kind: tuple(rule.strip() for rule in text.split("|")) for kind, text in _RULES.items()}

#: Kinds of words that can be terms.
CONTENT = ("noun", "plural", "verb", "went", "adjective", "adverb", "place", "surname")


@cache
def vocabulary() -> dict[str, tuple[str, ...]]:
    """Words and phrases by kind, with blanks between the words of a phrase; `plural` holds the plurals of nouns."""
    text = Path(__file__).with_name("vocabulary.txt").read_text(encoding="utf-8")
    kinds = {}
    for part in text.split("[")[1:]:
        kind, _, words = part.partition("]")
        kinds[kind] = tuple(word.replace("_", " ") for word in words.split())
    kinds["plural"] = tuple(_plural(noun) for noun in kinds["noun"] if not noun.endswith("*"))
    kinds["noun"] = tuple(noun.rstrip("*") for noun in kinds["noun"])
    return kinds


def sentences(seed: int) -> Iterator[str]:
    """Sentences without end, no two alike; lower case, with commas and a full stop."""
    random = np.random.Generator(np.random.PCG64(seed))
    past = set()
    while True:
        text = _expand("{sentence}", random) + "."
        if text not in past:
            past.add(text)
            yield text


@cache
def _cumulated(kind: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Sums of the weights of the words of a kind, up to each."""
    return np.cumsum([10**9 // (k + 40) for k in range(len(vocabulary()[kind]))])


def _expand(text: str, random: np.random.Generator) -> str:
    def choose(match: re.Match[str]) -> str:
        kind = match[1]
        if kind in RULES:
            return _expand(RULES[kind][int(random.integers(len(RULES[kind])))], random)
        sums = _cumulated(kind)
        return vocabulary()[kind][int(np.searchsorted(sums, random.integers(sums[-1]), side="right"))]

    return re.sub(r"\{(\w+)\}", choose, text)


def _plural(noun: str) -> str:
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return noun + "es"
    return noun[:-1] + "ies" if re.search("[^aeiou]y$", noun) else noun + "s"
