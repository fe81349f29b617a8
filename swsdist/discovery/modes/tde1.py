"""Mode `tde1`: the measures as the program bootphon/tde, branch zerospeech2017, computes them, for papers from 2015 to 2018.

NED, coverage, matching, grouping, type, token, boundary in each fold of each set of folds, and their means; "within talker" in
papers means folds of one talker. It needs a split, gold classes and folds. Keys of the result:

- `n_classes`, `n_fragments`: those left after cutting to the split, fragments once;
- the name of each set of folds: `ned` and `coverage` with statistics; the others with `precision`, `recall` and `fscore` of
  statistics: `folds`, `mean`, `std` (of the population), `min`, `max`. Folds without a value are left out; if none is left, a
  NED of 1 and zeros for the others are the only fold. Where the program raises at NED and coverage, the set has in their place
  `nlp` with `error`, the exception.

Hits of words count fragments, so several may hit one word. Boundaries are times as they are, without direction; precision asks
for an edge of a word near one of a fragment, recall for an edge of a fragment near one of a word.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from swsdist.discovery.measures import f_score, inside, ratio
from swsdist.discovery.modes.pairs import distinct
from swsdist.discovery.modes.tde1_corpus import InRuns, Members, cut
from swsdist.discovery.modes.tde1_overlap import CLOSE
from swsdist.discovery.modes.tde1_pairs import PairMeasures
from swsdist.discovery.modes.tde1_types import Ratios
from swsdist.discovery.units import (
    BEYOND,
    SILENCES,
    TICKS,
    Corpus,
    EvaluationSetup,
    Flags,
    Fragments,
    Intervals,
    Ints,
    places,
    string_ids,
)

#: A figure of each fold that has it, and mean, population standard deviation and range over these folds.
Statistics = dict[str, float | list[float]]


def score(corpus: Corpus, classes: Fragments, setup: EvaluationSetup) -> dict[str, object]:
    """All measures of classes in all sets of folds; silences are gaps."""
    assert corpus.words is not None
    assert setup.split is not None
    assert setup.gold_classes is not None
    phones = InRuns.of(corpus.speech)
    disc = Members.of(cut(classes, setup.split), phones)
    gold = Members.of(setup.gold_classes, phones)
    words = InRuns.of(corpus.words.without(SILENCES))
    pairs = PairMeasures(phones.units, disc, gold)
    counts = {"n_classes": len(distinct(disc.group)), "n_fragments": len(disc.fragments)}
    return {**counts, **{name: _measures(folds, disc, gold, words, pairs) for name, folds in setup.folds.items()}}


def _measures(
    folds: Sequence[Intervals], disc: Members, gold: Members, words: InRuns, pairs: PairMeasures
) -> dict[str, object]:
    """The measures of one set of folds."""
    neds, times, ratios = [], [], []
    for fold in folds:
        disc_in_fold, gold_in_fold = inside(disc.fragments, fold), inside(gold.fragments, fold)
        ned, matching, grouping = pairs.fold(disc_in_fold, gold_in_fold)
        neds.append(ned)
        fragments = disc.fragments.take(disc_in_fold)
        times.append((fragments, gold.fragments.take(gold_in_fold)))
        spoken = words.take(inside(words.units, fold))
        ratios.append((matching, grouping, *token_and_type(fragments, spoken), boundary(fragments, spoken.units)))
    names = ("matching", "grouping", "token", "type", "boundary")
    try:
        covered = [coverage(*sides) for sides in times]
        nlp: dict[str, object] = {
            "ned": _statistics(_defined(pairs.ned(neds), 1.0)),
            "coverage": _statistics(_defined(covered, 0.0)),
        }
    except ZeroDivisionError:
        nlp = {"nlp": {"error": "ZeroDivisionError"}}
    return {
        **nlp,
        **{name: _of_ratios(some) for name, some in zip(names, zip(*ratios, strict=True), strict=True)},
    }


def _defined(values: Sequence[float | None], otherwise: float) -> list[float]:
    return [value for value in values if value is not None] or [otherwise]


def _of_ratios(ratios: Sequence[Ratios]) -> dict[str, Statistics]:
    """Statistics of the folds where precision and recall are both defined; F is computed in each fold."""
    both = [(p, r) for p, r in ratios if p is not None and r is not None] or [(0.0, 0.0)]
    columns = {
        "precision": [p for p, _ in both],
        "recall": [r for _, r in both],
        "fscore": [f_score(p, r) or 0.0 for p, r in both],
    }
    return {name: _statistics(values) for name, values in columns.items()}


def _statistics(values: list[float]) -> Statistics:
    mean, std = float(np.mean(values)), float(np.std(values))
    return {"folds": values, "mean": mean, "std": std, "min": min(values), "max": max(values)}


def coverage(disc: Intervals, gold: Intervals) -> float | None:
    """Time of the union of discovered fragments, singletons too, over that of the gold fragments; None if both are none.

    Raises:
        ZeroDivisionError: there are fragments, and no gold ones.
    """
    part, total = _union(disc), _union(gold)
    return part / total if part or total else None


def _union(stretches: Intervals) -> int:
    """Ticks in any of the stretches, sorted by document and onset."""
    onset, offset = places(stretches.document, stretches.onset), places(stretches.document, stretches.offset)
    reached = np.maximum.accumulate(offset)
    before = np.concatenate([[0], reached])[:-1]
    return int(np.maximum(reached - np.maximum(onset, before), 0).sum())


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
