"""Mode `tdev2`: the measures as the program zerospeech/tdev2 2.0.3 computes them, for papers after 2019.

NED, coverage, grouping, type, token, boundary; no matching, no folds, no talkers. `SIL` is a phone like any other, but for NED
and coverage. Keys of the result:

- `n_intervals`, `n_classes`: those left with phones;
- `ned`: `ned`, `n_pairs`; `coverage`: `coverage`, `n_covered`, `n_phones`;
- `grouping`, `token`, `type`, `boundary`: `precision`, `recall`, `fscore`, `tool_fscore_error`, and counts.

Where the program raises instead of giving an F, `fscore` is None and `tool_fscore_error` names its exception; it is None
otherwise. The program writes no coverage of 0 either: `tool_error` names the exception, and is there only then.
"""

from __future__ import annotations

import numpy as np

from swsdist.discovery.measures import ratio
from swsdist.discovery.modes.pairs import distinct
from swsdist.discovery.modes.tdev2_lines import Lines, Measure, f_or_error, with_f
from swsdist.discovery.modes.tdev2_pairs import ned_and_grouping
from swsdist.discovery.modes.tdev2_phones import shared_seconds
from swsdist.discovery.units import (
    SILENCES,
    TICKS,
    Corpus,
    EvaluationSetup,
    Flags,
    Fragments,
    Ints,
    Units,
    places,
    touched,
)


def score(corpus: Corpus, classes: Fragments, setup: EvaluationSetup) -> dict[str, object]:
    """All measures of classes; documents of these have phones and words."""
    assert corpus.words is not None
    words = corpus.words.without(("SIL",))
    lines = Lines.of(corpus.phones, classes)
    ned, grouping = ned_and_grouping(lines)
    return {
        "n_intervals": len(lines.intervals),
        "n_classes": len(distinct(lines.group)),
        "ned": ned,
        "coverage": _coverage(lines),
        "grouping": grouping,
        **token_and_type(lines, words),
        "boundary": boundary(lines, words),
    }


def _coverage(lines: Lines) -> Measure:
    """Phones in any fragment, of all phones; silences are none."""
    phones = lines.phones
    spoken = np.isin(phones.symbol, [k for k, name in enumerate(phones.names) if name not in SILENCES])
    edges = np.zeros(len(phones) + 1, np.int64)
    np.add.at(edges, lines.first, 1)
    np.add.at(edges, lines.last, -1)
    covered, total = int(((np.cumsum(edges)[:-1] > 0) & spoken).sum()), int(spoken.sum())
    counts: Measure = {"coverage": ratio(covered, total), "n_covered": covered, "n_phones": total}
    error = "AttributeError" if total else "ZeroDivisionError"
    return counts if covered else {**counts, "tool_error": error}


def token_and_type(lines: Lines, words: Units) -> dict[str, Measure]:
    """Hits are fragments whose phones are those of the word of which they have most; a word is hit once."""
    word = _best_words(lines, words)
    hit = np.flatnonzero(word >= 0)
    hit = hit[_equal_strings(lines, words, hit, word[hit])]
    token = (len(distinct(word[hit])), len(lines.intervals), len(words))
    # Precision is over phone strings, recall over spellings.
    kind = (len(distinct(lines.kind[hit])), len(distinct(lines.kind)), len(distinct(words.symbol)))
    # F of both is lost if a ratio of tokens is 0.
    error = "AssertionError" if 0 in _ratios(*token) else None
    return {
        name: {**_counts(*counts), **f_or_error(*_ratios(*counts), error)}
        for name, counts in (("token", token), ("type", kind))
    }


def boundary(lines: Lines, words: Units) -> Measure:
    """Onsets of first phones that are onsets of words, offsets of last phones that are offsets of words, each place once."""
    phones = lines.phones
    document = lines.intervals.document
    onset, offset = (
        distinct(places(document, phones.onset[lines.first])),
        distinct(places(document, phones.offset[lines.last - 1])),
    )
    gold_onset, gold_offset = places(words.document, words.onset), places(words.document, words.offset)
    hit = np.concatenate([onset[np.isin(onset, gold_onset)], offset[np.isin(offset, gold_offset)]])
    disc, gold = np.concatenate([onset, offset]), np.concatenate([gold_onset, gold_offset])
    counts = (len(distinct(hit)), len(distinct(disc)), len(distinct(gold)))
    return {**_counts(*counts), **with_f(*_ratios(*counts))}


def _ratios(hit: int, disc: int, gold: int) -> tuple[float | None, float | None]:
    return ratio(hit, disc), ratio(hit, gold)


def _counts(hit: int, disc: int, gold: int) -> dict[str, int]:
    return {"n_hit": hit, "n_disc": disc, "n_gold": gold}


def _best_words(lines: Lines, words: Units) -> Ints:
    """The word of which the largest part is in each interval, the earliest of equals; -1 if there is none."""
    lo, hi = touched(words, lines.intervals)
    best = np.where(hi > lo, lo, -1)
    several = np.flatnonzero(hi - lo > 1)
    part = np.zeros(len(several))
    nth = 0
    while len(several):
        word = lo[several] + nth
        of = words.take(word)
        share = shared_seconds(of, lines.intervals.take(several)) / (of.offset / TICKS - of.onset / TICKS)
        better = share > part
        best[several[better]] = word[better]
        part = np.maximum(part, share)
        nth += 1
        more = hi[several] > lo[several] + nth
        several, part = several[more], part[more]
    return best


def _equal_strings(lines: Lines, words: Units, interval: Ints, word: Ints) -> Flags:
    """Whether the phones of intervals are those that share any time with the words beside them."""
    first, last = touched(lines.phones, words.take(word))
    length = lines.last[interval] - lines.first[interval]
    equal: Flags = last - first == length
    rows = np.flatnonzero(equal)
    symbol, nth = lines.phones.symbol, 0
    while len(rows):
        same = symbol[first[rows] + nth] == symbol[lines.first[interval[rows]] + nth]
        equal[rows[~same]] = False
        nth += 1
        rows = rows[same & (length[rows] > nth)]
    return equal
