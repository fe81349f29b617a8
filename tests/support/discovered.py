"""Small evaluations of term discovery from lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from swsdist.core.arrays import Ints
from swsdist.discovery.units import TICKS, Corpus, EvaluationSetup, Fragments, Intervals, Units

#: `DOC ONSET OFFSET` and a symbol, in seconds.
Line = str


def _columns(lines: Sequence[Line], documents: Sequence[str]) -> tuple[Ints, Ints, Ints]:
    fields = [line.split() for line in lines]
    document = np.array([documents.index(row[0]) for row in fields], np.int64)
    onset, offset = (np.array([round(float(row[k]) * TICKS) for row in fields], np.int64) for k in (1, 2))
    return document, onset, offset


def intervals(lines: Sequence[Line], documents: Sequence[str]) -> Intervals:
    """Intervals in the order of the lines."""
    return Intervals(*_columns(lines, documents))


def units(lines: Sequence[Line], documents: Sequence[str]) -> Units:
    """Phones or words, sorted."""
    symbols = [line.split()[3] for line in lines]
    names = tuple(dict.fromkeys(symbols))
    found = Units(*_columns(lines, documents), np.array([names.index(symbol) for symbol in symbols], np.int64), names)
    return found.take(np.lexsort((found.onset, found.document)))


def fragments(classes: Sequence[Sequence[Line]], documents: Sequence[str]) -> Fragments:
    """Classes of fragments."""
    columns = _columns([line for members in classes for line in members], documents)
    group = np.repeat(np.arange(len(classes)), [len(members) for members in classes])
    return Fragments(*columns, group, tuple(str(k) for k in range(len(classes))))


def names(*files: Iterable[Line]) -> tuple[str, ...]:
    """Names of documents of lines, sorted."""
    return tuple(sorted({line.split()[0] for lines in files for line in lines}))


def evaluation(
    phones: Sequence[Line],
    words: Sequence[Line],
    classes: Sequence[Sequence[Line]],
    *,
    split: Sequence[Line] = (),
    gold: Sequence[Sequence[Line]] = (),
    folds: Sequence[Sequence[Line]] = (),
) -> tuple[Corpus, Fragments, EvaluationSetup]:
    """What a mode takes; the set of folds is called `cross`."""
    documents = names(phones, words, split, *classes, *gold, *folds)
    corpus = Corpus(documents, units(phones, documents), units(words, documents))
    setup = EvaluationSetup(
        {"cross": tuple(intervals(fold, documents) for fold in folds)},
        intervals(split, documents),
        fragments(gold, documents),
    )
    return corpus, fragments(classes, documents), setup


def series(document: str, onset: float, *steps: tuple[str, float]) -> list[Line]:
    """Lines of symbols one after the other, each with its duration."""
    lines, time = [], round(onset * TICKS)
    for symbol, duration in steps:
        end = time + round(duration * TICKS)
        lines.append(f"{document} {time / TICKS} {end / TICKS} {symbol}")
        time = end
    return lines
