"""Scores of matches, classes and a parse, compared with chance; and of matches by their quality.

Chance is the same fragments in random places: as many of each class, as long, anywhere in the speech of the documents.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from swsdist.core.arrays import Bools, Ints
from swsdist.core.fingerprint import stable_hash
from swsdist.discovery import seed
from swsdist.discovery.measures import evaluated, inside
from swsdist.discovery.scene import Scene
from swsdist.discovery.units import BEYOND, Corpus, EvaluationSetup, Fragments, Given, Intervals
from swsdist.registry.registries import DISCOVERY_MEASURES

#: Points of a curve, as parts of the pairs.
POINTS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.14, 0.2, 0.3, 0.5, 0.7, 1.0)


def scores(corpus: Corpus, results: Mapping[Given, Fragments]) -> dict[str, object]:
    """Scores by what was found: `pairs`, `classes`, `parse`; each with the halves of the documents as folds, and by chance."""
    folds = {"halves": halves(corpus)}
    return {
        given: {
            **seed.score(corpus, fragments, EvaluationSetup(folds, given=given)),
            "chance": seed.score(corpus, shuffled(corpus, fragments), EvaluationSetup(given=given))["all"],
        }
        for given, fragments in results.items()
    }


def halves(corpus: Corpus) -> tuple[Intervals, Intervals]:
    """Two halves of the documents by a hash of their names: thresholds are chosen on the first, and hold on the second."""
    second = np.array([stable_hash(name) % 2 == 1 for name in corpus.documents], np.bool_)
    numbers = np.arange(len(corpus.documents))
    first, other = (
        Intervals(some, np.zeros_like(some), np.full_like(some, BEYOND - 1))
        for some in (numbers[~second], numbers[second])
    )
    return first, other


def shuffled(corpus: Corpus, fragments: Fragments) -> Fragments:
    """Fragments at random places of the speech that they fit into, by a hash of their number; others stay."""
    speech = corpus.speech
    if not len(speech):
        return fragments
    stream = np.frombuffer(hashlib.shake_256(b"chance").digest(8 * len(fragments)), "<u8")
    length = fragments.offset - fragments.onset
    ends = np.zeros(len(corpus.documents), np.int64)
    np.maximum.at(ends, speech.document, speech.offset)
    document, onset = fragments.document.copy(), fragments.onset.copy()
    for ticks in np.unique(length):
        sums = np.cumsum(np.clip(np.minimum(speech.offset, ends[speech.document] - ticks + 1) - speech.onset, 0, None))
        if sums[-1]:
            rows = np.flatnonzero(length == ticks)
            place: Ints = (stream[rows] % np.uint64(sums[-1])).astype(np.int64)
            phone = np.searchsorted(sums, place, side="right")
            before = np.concatenate([[0], sums])[phone]
            document[rows], onset[rows] = speech.document[phone], speech.onset[phone] + place - before
    return replace(fragments, document=document, onset=onset, offset=onset + length)


def curve(corpus: Corpus, pairs: Fragments, score: Ints) -> list[dict[str, object]]:
    """NED and coverage of the best pairs, more and more of them, of all, across talkers, and of each half.

    Args:
        pairs: two fragments a pair, one after the other.
        score: int64 (pairs,), higher is better.
    """
    measures = {name: DISCOVERY_MEASURES[name].load()() for name in ("ned", "coverage")}
    order = np.argsort(-score, kind="stable")
    parts: dict[str, Bools] = {"all": np.ones(len(score), np.bool_)}
    if corpus.talker is not None:
        talker = corpus.talker[pairs.document]
        parts["across"] = talker[::2] != talker[1::2]
    for name, half in zip(("first half", "second half"), halves(corpus), strict=True):
        within = inside(pairs, half)
        parts[name] = within[::2] & within[1::2]
    result: list[dict[str, object]] = []
    for part, chosen in parts.items():
        ranked = order[chosen[order]]
        of = replace(corpus, talker=None)
        for count in sorted({round(len(ranked) * point) for point in POINTS} - {0}):
            some = ranked[:count]
            which = np.stack([2 * some, 2 * some + 1], axis=1).reshape(-1)
            values = evaluated(measures, Scene.of(of, pairs.take(which)))
            ned, coverage = values["ned"]["ned"], values["coverage"]["coverage"]
            least = int(score[some[-1]])
            result.append({"part": part, "pairs": count, "score": least, "ned": ned, "coverage": coverage})
    return result
