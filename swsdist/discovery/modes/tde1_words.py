"""Mode `tde1`: the measures of words, token, type and boundary.

Hits count fragments, so several may hit one word. Boundaries are times as they are, without direction; precision asks for
an edge of a word near one of a fragment, recall for an edge of a fragment near one of a word.
"""

from __future__ import annotations

import numpy as np

from swsdist.discovery.modes.pairs import distinct
from swsdist.discovery.modes.tde1_corpus import InRuns
from swsdist.discovery.modes.tde1_overlap import CLOSE
from swsdist.discovery.modes.tde1_types import Ratios
from swsdist.discovery.ratios import ratio
from swsdist.discovery.strings import string_ids
from swsdist.discovery.units import BEYOND, TICKS, Flags, Intervals, Ints, places


def token_and_type(fragments: Intervals, words: InRuns) -> tuple[Ratios, Ratios]:
    """Of the different fragments and the words of a fold.

    A fragment hits the only word it has, if both edges are near. Types seen are the different series of words of fragments, the
    empty one too.
    """
    near, first, last = words.spans(fragments)
    units = words.units
    one_word = np.flatnonzero(near & (last - first == 1))
    word, fragment = units.take(first[one_word]), fragments.take(one_word)
    hit = one_word[_close(word.onset, fragment.onset) & _close(word.offset, fragment.offset)]
    seen = string_ids(units.symbol, first[near], last[near])
    n_seen, n_kinds = len(distinct(seen)), len(distinct(units.symbol))
    n_hit_kinds = len(distinct(units.symbol[first[hit]]))
    token = ratio(len(hit), len(fragments)), ratio(len(hit), len(units))
    return token, (ratio(n_hit_kinds, n_seen), ratio(n_hit_kinds, n_kinds))


def _close(a: Ints, b: Ints) -> Flags:
    """Whether times are at most 30 ms apart, as floats."""
    return np.abs(a / TICKS - b / TICKS) <= CLOSE


def boundary(fragments: Intervals, words: Intervals) -> Ratios:
    """Of the fragments and words of a fold."""
    disc, gold = _edges(fragments), _edges(words)
    return _near(disc, gold), _near(gold, disc)


def _edges(stretches: Intervals) -> Ints:
    """The different places of edges, sorted."""
    document = stretches.document
    return distinct(np.concatenate([places(document, stretches.onset), places(document, stretches.offset)]))


def _near(edges: Ints, others: Ints) -> float | None:
    """The part of edges that have another less than 30 ms away, as floats."""
    after = np.searchsorted(others, edges)
    near = np.zeros(len(edges), bool)
    for at in (after - 1, after):
        present = np.flatnonzero((at >= 0) & (at < len(others)))
        a, b = edges[present], others[at[present]]
        close = np.abs(a % BEYOND / TICKS - b % BEYOND / TICKS) < CLOSE
        near[present] |= close & (a // BEYOND == b // BEYOND)
    return ratio(int(near.sum()), len(edges))
