"""Where the terms of a list occur in a transcript: the references of a text task.

A term's words must follow one another, spoken by one speaker in one document and channel, with gaps of at most
`word_gap` seconds between them (at 4 decimals, inclusive; negative gaps are allowed). Words are lower-cased, by Unicode's
rules; no normal form is applied. The programs differ:

STDEval 0.7
    One pass from left to right that never goes back: occurrences do not overlap, and a word that breaks a match is tried
    as a first word, earlier ones are not; a word that comes too late is used up. The k-th id, in sorted order, of one text
    gets each occurrence k times. Words come in the order of the file.
KWSEval (F4DE 3.5)
    Every word that equals the first one begins an attempt, so occurrences may overlap. A filled pause or fragment
    (sub-type `fp`, `frag`) cannot be a first word. The word after the i-th is the one after the i-th by begin time: in a
    file that is not sorted by time these are the wrong words, and `Found.unsorted` says so. The first word obeys
    compareNormalize, the others never do.

Sources: NIST STD 2006 evaluation plan, section 2.1; the programs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.score.align import decimals
from swsdist.score.excerpts import Conventions
from swsdist.types import REFERENCES

#: Sub-types that KWSEval takes for no first word.
_NO_FIRST_WORD = frozenset(("frag", "fp"))


class _Chain(NamedTuple):
    """The words of one document, channel and speaker."""

    doc_id: str
    channel: int
    word: list[str]
    start: list[float]
    end: list[float]
    kind: list[str]
    following: list[int]  # index of the word that follows each; KWSEval's links


class Found(NamedTuple):
    """Occurrences.

    Attributes:
        references: table REFERENCES, by query in the order of the term list, then as found.
        first_end: float64, a row each: end of the first word, s (KWSEval compares it with the ECF).
        repeated: ids whose text an earlier id has, too.
        unsorted: documents whose words are not in the order of time.
    """

    references: pa.Table
    first_end: np.ndarray
    repeated: list[str]
    unsorted: list[str]


def look_up(
    terms: pa.Table, lexemes: pa.Table, *, word_gap: float, conventions: Conventions = "stdeval", lowercase: bool = True
) -> Found:
    """Find every occurrence of every term.

    Args:
        terms: table TERMS.
        lexemes: table LEXEMES, in the order of the file.
        word_gap: s, greatest gap between words, inclusive.
        conventions: whose rules.
        lowercase: compare first words without regard to case (KWSEval: compareNormalize; STDEval always does).
    """
    fold = lowercase or conventions == "stdeval"
    chains = _chains(lexemes)
    places: dict[str, list[tuple[int, list[int]]]] = defaultdict(list)
    for c, chain in enumerate(chains):
        firsts: dict[str, list[int]] = defaultdict(list)
        for k, word in enumerate(chain.word):
            if conventions == "stdeval" or chain.kind[k].lower() not in _NO_FIRST_WORD:
                firsts[word.lower() if fold else word].append(k)
        for word, where in firsts.items():
            places[word].append((c, where))
    lowered = [[word.lower() for word in chain.word] for chain in chains]

    find = _stdeval if conventions == "stdeval" else _kwseval
    by_text: dict[tuple[str, ...], list[tuple[str, int, float, float, float]]] = {}
    ids: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for query_id, text in zip(terms["query_id"].to_pylist(), terms["term"].to_pylist(), strict=True):
        ids[tuple((text.lower() if fold else text).split())].append(query_id)
    times = {}
    repeated = []
    for text_words, names in ids.items():
        words = [word.lower() for word in text_words]
        by_text[text_words] = [
            (chains[c].doc_id, chains[c].channel, chains[c].start[a], chains[c].end[b], chains[c].end[a])
            for c, where in places.get(text_words[0], ())
            for a, b in find(words, lowered[c], chains[c], where, word_gap)
        ]
        for k, name in enumerate(sorted(names)):
            times[name] = k + 1 if conventions == "stdeval" else 1
            if k:
                repeated.append(name)
    rows = []
    for query_id, text in zip(terms["query_id"].to_pylist(), terms["term"].to_pylist(), strict=True):
        found = by_text[tuple((text.lower() if fold else text).split())]
        rows += [(query_id, *occurrence) for occurrence in found] * times[query_id]
    columns = list(zip(*rows, strict=True)) if rows else [()] * 6
    arrays = [pa.array(column, field.type) for column, field in zip(columns, REFERENCES, strict=False)]
    table = pa.Table.from_arrays(arrays, schema=REFERENCES)
    unsorted = sorted({chain.doc_id for chain in chains if chain.start != sorted(chain.start)})
    return Found(table, np.array(columns[5], dtype=np.float64), repeated, unsorted)


def _chains(lexemes: pa.Table) -> list[_Chain]:
    start = lexemes["start"].to_numpy()
    end = decimals(start + lexemes["duration"].to_numpy(), 4)
    keys = list(zip(*(lexemes[name].to_pylist() for name in ("doc_id", "channel", "speaker")), strict=True))
    word, kind = lexemes["word"].to_pylist(), lexemes["kind"].to_pylist()
    rows: dict[tuple[str, int, str], list[int]] = defaultdict(list)
    for k, key in enumerate(keys):
        rows[key].append(k)
    starts, ends = start.tolist(), end.tolist()
    return [
        _Chain(
            doc_id,
            channel,
            [word[k] for k in mine],
            [starts[k] for k in mine],
            [ends[k] for k in mine],
            [kind[k] or "" for k in mine],
            _following([starts[k] for k in mine]),
        )
        for (doc_id, channel, _), mine in rows.items()
    ]


def _following(starts: list[float]) -> list[int]:
    """Of each word the index of the word that KWSEval links to it; -1 for none."""
    by_time = sorted(range(len(starts)), key=starts.__getitem__)
    return [*by_time[1:], -1]


def _too_far(chain: _Chain, k: int, before: int, word_gap: float) -> bool:
    """Whether word k comes too late after the one before it."""
    return float(f"{chain.start[k] - chain.end[before]:.4f}") > word_gap


def _stdeval(
    words: list[str], spoken: list[str], chain: _Chain, firsts: list[int], word_gap: float
) -> Iterator[tuple[int, int]]:
    """First and last word of each occurrence."""
    size = len(words)
    at = 0
    while at < len(firsts):
        begin = firsts[at]
        k = begin
        while k < len(spoken) and spoken[k] == words[k - begin]:
            if k > begin and _too_far(chain, k, k - 1, word_gap):
                k += 1  # this word is used up, too
                break
            k += 1
            if k - begin == size:
                yield begin, k - 1
                break
        at = bisect_left(firsts, k)


def _kwseval(
    words: list[str], spoken: list[str], chain: _Chain, firsts: list[int], word_gap: float
) -> Iterator[tuple[int, int]]:
    """First and last word of each occurrence."""
    for begin in firsts:
        k = begin
        for word in words[1:]:
            before, k = k, chain.following[k]
            if k < 0 or spoken[k] != word or _too_far(chain, k, before, word_gap):
                break
        else:
            yield begin, k
