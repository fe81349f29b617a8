"""Mean and standard deviation over folds, of the folds where all ratios of a measure are defined."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from swsdist.core.codes import discovery as codes
from swsdist.discovery.measures import Value
from swsdist.discovery.units import BEYOND, Corpus, Flags, Fragments, Intervals, Ints, places


def summarised(folds: Sequence[Mapping[str, Value]], keys: Sequence[str]) -> dict[str, dict[str, Value]]:
    """Mean, population standard deviation and number of folds, by key.

    F is that of each fold, averaged. A fold without precision or recall counts for neither.

    Args:
        folds: values of one measure.
        keys: of its ratios.
    """
    rows = [[fold[key] for key in keys] for fold in folds]
    defined = [[value for value in row if value is not None] for row in rows if None not in row]
    columns = zip(*defined, strict=True) if defined else [()] * len(keys)
    return {key: _statistics(column) for key, column in zip(keys, columns, strict=True)}


def _statistics(values: Sequence[float]) -> dict[str, Value]:
    if not values:
        return {"mean": None, "std": None, "n": 0}
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    return {"mean": mean, "std": deviation, "n": len(values)}


def inside(stretches: Intervals, fold: Intervals) -> Flags:
    """Whether each stretch lies wholly inside one interval of a fold; these are disjoint."""
    if not len(fold):
        return np.zeros(len(stretches), bool)
    fold = fold.take(np.lexsort((fold.onset, fold.document)))
    k = np.searchsorted(places(fold.document, fold.onset), places(stretches.document, stretches.onset), "right") - 1
    at = np.maximum(k, 0)
    fits: Flags = (k >= 0) & (fold.document[at] == stretches.document) & (stretches.offset <= fold.offset[at])
    return fits


def restricted(corpus: Corpus, classes: Fragments, fold: Intervals) -> tuple[Corpus, Fragments]:
    """The phones, words and fragments that lie wholly inside one interval of a fold."""
    phones = corpus.phones.take(inside(corpus.phones, fold))
    words = corpus.words and corpus.words.take(inside(corpus.words, fold))
    return replace(corpus, phones=phones, words=words), classes.take(inside(classes, fold))


def equal_parts(corpus: Corpus, count: int) -> tuple[Intervals, ...]:
    """Contiguous parts of the corpus with about the same time of speech, cut at the ends of documents.

    The documents are in the order of their names. A cut is at the document's end where the speech so far is nearest to its
    share, the earlier of two, and leaves each part a document.

    Args:
        corpus: of which phones, without silences, are the speech.
        count: number of parts.

    Raises:
        UserError: fewer documents have phones.
    """
    speech = corpus.speech
    documents = np.unique(speech.document)
    if not 1 <= count <= len(documents):
        raise codes.TOO_MANY_FOLDS(folds=count, documents=len(documents))
    time = np.zeros(len(corpus.documents), np.int64)
    np.add.at(time, speech.document, speech.offset - speech.onset)
    so_far = np.cumsum(time[documents])
    cuts = [0]
    for k in range(1, count):
        distance = np.abs(so_far * count - k * so_far[-1])
        first, last = cuts[-1], len(documents) - (count - k)
        cuts.append(first + 1 + int(np.argmin(distance[first:last])))
    return tuple(_complete(documents[a:b]) for a, b in zip(cuts, [*cuts[1:], len(documents)], strict=True))


def by_talker(corpus: Corpus) -> tuple[Intervals, ...]:
    """A fold a talker: all of the documents with phones, in the order of the talkers' names; none if no talkers are known."""
    if corpus.talker is None:
        return ()
    documents = np.unique(corpus.phones.document)
    talkers = corpus.talker[documents]
    return tuple(_complete(documents[talkers == talker]) for talker in np.unique(talkers))


def _complete(documents: Ints) -> Intervals:
    """Documents as intervals, from their beginning to beyond their end."""
    return Intervals(documents, np.zeros_like(documents), np.full_like(documents, BEYOND - 1))
