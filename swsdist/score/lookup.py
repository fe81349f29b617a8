"""Looks up terms in a transcript: the references of a text task.

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
    file that is not sorted by time these are the wrong words, and `Occurrences.unsorted` says so. The first word obeys
    compareNormalize, the others never do.

Sources: NIST STD 2006 evaluation plan, section 2.1; the programs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.core.types import REFERENCES
from swsdist.score.align import decimals
from swsdist.score.conventions import Conventions, conventions_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Sub-types that KWSEval does not accept as first words.
_NO_FIRST_WORD = frozenset(("frag", "fp"))


class _Spoken(NamedTuple):
    """All words, those of a chain (one document, channel and speaker) together, in the order of the file.

    Attributes:
        row: int64 (W,), row of the transcript.
        word: int64 (W,), code of the lower-cased word.
        first: int64 (W,), code of the word for comparison with first words; -1 if it cannot be one.
        start, end: float64 (W,), s; the end at 4 decimals.
        limit: int64 (W,), where its chain ends.
        following: int64 (W,), the word that KWSEval links to it; -1 for none.
    """

    row: Ints
    word: Ints
    first: Ints
    start: Floats
    end: Floats
    limit: Ints
    following: Ints


class Occurrences(NamedTuple):
    """True occurrences of terms, and oddities.

    Attributes:
        references: table REFERENCES, by query in the order of the term list, then in the order of the transcript.
        first_end: float64 (rows,), end of the first word, s (KWSEval compares it with the ECF).
        repeated: ids with the text of an earlier id.
        unsorted: documents whose words are not in the order of time.
    """

    references: pa.Table
    first_end: Floats
    repeated: list[str]
    unsorted: list[str]


def look_up(
    terms: pa.Table,
    lexemes: pa.Table,
    *,
    word_gap: float,
    conventions: Conventions | str = "stdeval",
    lowercase: bool = True,
) -> Occurrences:
    """Find every occurrence of every term.

    Args:
        terms: table TERMS.
        lexemes: table LEXEMES, in the order of the file.
        word_gap: s, maximum gap between words, inclusive.
        conventions: whose rules.
        lowercase: compare first words without regard to case (KWSEval: compareNormalize; STDEval always does).
    """
    rules = conventions_of(conventions)
    fold = lowercase or rules.lowercases
    spoken, lower, exact, unsorted = _spoken(lexemes, rules, fold)
    by_first = np.argsort(spoken.first, kind="stable")
    sorted_first = spoken.first[by_first]
    ids: dict[tuple[str, ...], list[str]] = defaultdict(list)
    texts = [tuple((_lower(text) if fold else text).split()) for text in terms["term"].to_pylist()]
    terms_of_ids = list(dict.fromkeys(zip(terms["query_id"].to_pylist(), texts, strict=True)))
    names = [name for name, _ in terms_of_ids]
    for name, words in terms_of_ids:
        ids[words].append(name)

    find = _kwseval if rules.links else _stdeval
    cache: dict[tuple[str, ...], tuple[Ints, Ints]] = {}
    for words in ids:
        codes = [exact.get(words[0], -2), *(lower.get(_lower(word), -2) for word in words[1:])]
        firsts = by_first[slice(*np.searchsorted(sorted_first, [codes[0], codes[0] + 1]))]
        if len(words) > 1 and len(firsts):
            pairs = list(find(codes, spoken, firsts, word_gap))
            cache[words] = np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64)
        else:
            cache[words] = firsts, firsts

    times, repeated = {}, []
    for same_words, same in ids.items():
        for k, name in enumerate(sorted(same)):
            times[same_words, name] = k + 1 if rules.repeats else 1
            repeated += [name] if k else []
    parts = [cache[words] for name, words in terms_of_ids for _ in range(times[words, name])]
    sizes = np.array([len(cache[words][0]) * times[words, name] for name, words in terms_of_ids], np.int64)
    none = np.zeros(0, np.int64)
    a, b = (np.concatenate([none, *(part[side] for part in parts)]) for side in (0, 1))
    rows = pa.array(spoken.row[a])
    columns = [
        pa.array(names, pa.string()).take(pa.array(np.repeat(np.arange(len(names)), sizes))),
        lexemes["doc_id"].combine_chunks().take(rows),
        lexemes["channel"].combine_chunks().take(rows),
        pa.array(spoken.start[a]),
        pa.array(spoken.end[b]),
    ]
    return Occurrences(pa.Table.from_arrays(columns, schema=REFERENCES), spoken.end[a], repeated, unsorted)


def _spoken(
    lexemes: pa.Table, rules: Conventions, fold: bool
) -> tuple[_Spoken, dict[str, int], dict[str, int], list[str]]:
    """The words; the codes of lower-cased words and of first words; documents with words out of time order."""
    size = lexemes.num_rows
    chain = np.zeros(size, dtype=np.int64)
    for name in ("doc_id", "channel", "speaker"):
        codes = lexemes[name].combine_chunks().dictionary_encode(null_encoding="encode")
        chain = chain * (len(codes.dictionary) + 1) + codes.indices.to_numpy()
    row = np.argsort(chain, kind="stable")
    chain = chain[row]
    start = lexemes["start"].to_numpy()[row]
    end = decimals(start + lexemes["duration"].to_numpy()[row], 4)

    words = lexemes["word"].combine_chunks().dictionary_encode()
    written = words.dictionary.to_pylist()
    at = words.indices.to_numpy()[row] if size else row
    lower: dict[str, int] = {}
    exact: dict[str, int] = {}
    code = np.array([lower.setdefault(_lower(word), len(lower)) for word in written], dtype=np.int64)
    first = np.array([exact.setdefault(_lower(word) if fold else word, len(exact)) for word in written], dtype=np.int64)
    first_of = first[at] if size else at
    if rules.links:
        kinds = lexemes["kind"].combine_chunks().dictionary_encode(null_encoding="encode")
        barred = [(kind or "").lower() in _NO_FIRST_WORD for kind in kinds.dictionary.to_pylist()]
        if any(barred):
            first_of = np.where(np.array(barred)[kinds.indices.to_numpy()[row]], -1, first_of)
    last = np.searchsorted(chain, chain, side="right")
    # KWSEval: the word after the i-th is the one after the i-th by begin time.
    by_time = np.lexsort((np.arange(size), start, chain))
    following = np.append(by_time[1:], -1)[:size]
    following[last - 1] = -1
    backwards = np.flatnonzero((np.diff(start) < 0) & (np.diff(chain) == 0))
    unsorted = sorted(set(lexemes["doc_id"].take(pa.array(row[backwards])).to_pylist()))
    spoken = _Spoken(row, code[at] if size else at, first_of, start, end, last, following)
    return spoken, lower, exact, unsorted


def _lower(text: str) -> str:
    """Lower-case letter by letter, as Perl does; Python treats a capital sigma at a word's end differently."""
    return "".join(map(str.lower, text)) if "\u03a3" in text else text.lower()


def _too_far(spoken: _Spoken, k: int, before: int, word_gap: float) -> bool:
    """Whether word k comes too late after the one before it."""
    return float(f"{spoken.start[k] - spoken.end[before]:.4f}") > word_gap


def _stdeval(codes: list[int], spoken: _Spoken, firsts: Ints, word_gap: float) -> Iterator[tuple[int, int]]:
    """First and last word of each occurrence of several words."""
    size = len(codes)
    reached = 0
    for begin in firsts.tolist():
        if begin < reached:
            continue
        limit = min(int(spoken.limit[begin]), begin + size)
        k = begin + 1
        while k < limit and spoken.word[k] == codes[k - begin]:
            if _too_far(spoken, k, k - 1, word_gap):
                k += 1  # this word is used up, too
                break
            k += 1
            if k - begin == size:
                yield begin, k - 1
        reached = k


def _kwseval(codes: list[int], spoken: _Spoken, firsts: Ints, word_gap: float) -> Iterator[tuple[int, int]]:
    """First and last word of each occurrence of several words."""
    for begin in firsts.tolist():
        k = begin
        for code in codes[1:]:
            before, k = k, int(spoken.following[k])
            if k < 0 or spoken.word[k] != code or _too_far(spoken, k, before, word_gap):
                break
        else:
            yield begin, k
