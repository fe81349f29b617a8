"""Terms of a corpus: mostly rare, mostly one word, some that no recogniser knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from tools.english.grammar import CONTENT, vocabulary

#: Least and most occurrences in the corpus, and how many terms: of one word; of two; of three; of words unknown to recognisers.
ONE = ((1, 1, 20), (2, 2, 18), (3, 3, 14), (4, 4, 10), (5, 5, 8), (6, 10, 6), (11, 10**6, 4))
TWO = ((1, 2, 7), (3, 5, 12), (6, 10**6, 3))
THREE = ((1, 2, 4), (3, 10**6, 4))
UNKNOWN = ((1, 5, 6), (6, 10**6, 4))
#: Letters that a word has at least, to be a term.
SHORTEST = 5


def choose_terms(documents: Iterable[Sequence[str]], seed: int) -> list[str]:
    """Terms for the words of documents, sorted; in a small corpus there may be fewer of a kind than wanted."""
    random = np.random.Generator(np.random.PCG64(seed))
    known = vocabulary()
    counts = phrase_counts(documents)
    phrases = {phrase for kind in ("compound", "place") for phrase in known[kind] if " " in phrase}
    single = {word for kind in CONTENT for word in known[kind] if " " not in word and len(word) >= SHORTEST}
    terms: list[str] = []
    for wanted, candidates in (
        (ONE, single),
        (TWO, {phrase for phrase in phrases if phrase.count(" ") == 1}),
        (THREE, {phrase for phrase in phrases if phrase.count(" ") == 2}),
        (UNKNOWN, set(known["unknown"])),
    ):
        for least, most, number in wanted:
            fitting = sorted(text for text in candidates if least <= counts[text] <= most)
            terms += [fitting[k] for k in random.permutation(len(fitting))[:number]]
    return sorted(terms)


def phrase_counts(documents: Iterable[Sequence[str]]) -> Counter[str]:
    """How often each phrase of one to three words occurs."""
    return Counter(
        " ".join(words[k : k + size]) for words in documents for size in (1, 2, 3) for k in range(len(words) - size + 1)
    )
