"""Mode `tdev2`: the measures as the program zerospeech/tdev2 2.0.3 computes them, for papers after 2019.

NED, coverage, grouping, type, token, boundary; no matching, no folds, no talkers. `SIL` is a phone like any other, but for NED
and coverage. Keys of the result:

- `n_intervals`, `n_classes`: those left with phones;
- `ned`: `ned`, `n_pairs`; `coverage`: `coverage`, `n_covered`, `n_phones`;
- `grouping`, `token`, `type`, `boundary`: `precision`, `recall`, `fscore`, `tool_fscore_error`, and counts.

Where the program raises instead of giving an F, `fscore` is None and `tool_fscore_error` names its exception; it is None
otherwise. The program writes no coverage of 0 either: `tool_error` names the exception, and is there only then.

All pairs of lines of a class are pairs of NED and grouping: overlapping ones, and a line with its repeat. The weights of types
cancel in grouping: with the tokens t of a type, ``sum(|t| / |all| * |t common| / |t|) = |common| / |all|``.

A phone that a fragment shares any time with belongs to it, but the first and the last only if they share enough. What is
enough depends on roundings of floats to 3 decimals; only these are imitated in floats, everything else is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from swsdist.core.arrays import Bools, Ints
from swsdist.discovery.cells import Strings
from swsdist.discovery.measures import Value, f_score, ratio
from swsdist.discovery.units import (
    SILENCES,
    TICKS,
    Corpus,
    EvaluationSetup,
    Fragments,
    Intervals,
    Units,
    ids,
    partnered,
    places,
    representatives,
    string_ids,
    touched,
)
from swsdist_recipes.zerospeech.pairs import PairCounts, distinct, pairs_of_rows

#: Durations are rounded as Python rounds, by the exact value of the float: the least that becomes 60 ms.
_LONG = 0.0595 if round(0.0595, 3) >= 0.06 else math.nextafter(0.0595, 1)
#: Shared time is rounded as numpy rounds, by the float times 1000, halves to even: the least that becomes 30.
_ENOUGH_MS = 29.5


def spans(phones: Units, fragments: Intervals) -> tuple[Ints, Ints]:
    """The first phone of each fragment, and the one after the last; equal if it has none."""
    lo, hi = touched(phones, fragments)
    some = np.flatnonzero(hi > lo)
    kept = fragments.take(some)
    first, last = lo[some], hi[some] - 1
    lo[some] += ~_enough(phones.take(first), kept)
    # A single phone that is left out is left out once.
    hi[some] -= (first < last) & ~_enough(phones.take(last), kept)
    return lo, hi


def _enough(phones: Intervals, fragments: Intervals) -> Bools:
    """Whether each fragment has enough of a phone: 30 ms of one of 60 ms and more, half of a shorter one."""
    duration = phones.offset / TICKS - phones.onset / TICKS
    common = shared_seconds(phones, fragments)
    return np.where(duration >= _LONG, common * 1000 >= _ENOUGH_MS, common / duration >= 0.5)


def shared_seconds(units: Intervals, fragments: Intervals) -> np.ndarray:
    """Time that each unit shares with the fragment beside it, with the noise of a difference of floats."""
    offset, onset = np.minimum(units.offset, fragments.offset), np.maximum(units.onset, fragments.onset)
    return offset / TICKS - onset / TICKS


@dataclass(frozen=True)
class Lines:
    """Fragments with phones.

    Attributes:
        phones: of the corpus.
        group: class of each line, sorted; lines of a class are in the order of the file.
        item: number of the interval of each line.
        intervals: the different intervals, sorted.
        first: first phone of each interval.
        last: one after its last phone.
        kind: number of the phone string of each interval.
    """

    phones: Units
    group: Ints
    item: Ints
    intervals: Intervals
    first: Ints
    last: Ints
    kind: Ints

    @classmethod
    def of(cls, phones: Units, classes: Fragments) -> Lines:
        """Of the lines of classes; lines without phones are dropped."""
        first, last = spans(phones, classes)
        rows = np.flatnonzero(last > first)
        rows = rows[np.argsort(classes.group[rows], kind="stable")]
        kept, first, last = classes.take(rows), first[rows], last[rows]
        item = ids(places(kept.document, kept.onset), kept.offset)
        example = representatives(item)
        intervals = Intervals(kept.document[example], kept.onset[example], kept.offset[example])
        kind = string_ids(phones.symbol, first[example], last[example])
        return cls(phones, kept.group, item, intervals, first[example], last[example], kind)

    def onsets(self) -> Ints:
        """Place of the onset of each interval."""
        return places(self.intervals.document, self.intervals.onset)

    def offsets(self) -> Ints:
        """Place of the offset of each interval."""
        return places(self.intervals.document, self.intervals.offset)


#: Values of a measure by key, and names of exceptions.
Measure = dict[str, Value | str]


def with_f(precision: float | None, recall: float | None) -> Measure:
    """Precision, recall and F; where both are 0 the program divides by 0."""
    fails = precision == 0 and recall == 0
    return f_or_error(precision, recall, "ZeroDivisionError" if fails else None)


def f_or_error(precision: float | None, recall: float | None, error: str | None) -> Measure:
    """Precision, recall and F; None for F if the program raises an error there, which is named."""
    f = f_score(precision, recall) if error is None else None
    return {"precision": precision, "recall": recall, "fscore": f, "tool_fscore_error": error}


#: Silence is no phone of a string for NED; other symbols are.
_SILENCE = "SIL"


def ned_and_grouping(lines: Lines) -> tuple[dict[str, Value], Measure]:
    """Both, of one walk over all pairs."""
    strings, kind = _without_silence(lines)
    counts, pairs = PairCounts(strings.count), _PairsOfLines(lines)
    for i, j in pairs_of_rows(lines.group):
        x, y = lines.item[i], lines.item[j]
        counts.add(kind[x], kind[y])
        pairs.add(x, y)
    return _ned(strings, counts), _grouping(lines, len(pairs))


def _without_silence(lines: Lines) -> tuple[Strings, Ints]:
    """The different strings without silence, and the number of that of each interval."""
    phones = lines.phones
    spoken = phones.symbol != (phones.names.index(_SILENCE) if _SILENCE in phones.names else -1)
    before = np.concatenate([[0], np.cumsum(spoken)])
    symbol, first, last = phones.symbol[spoken], before[lines.first], before[lines.last]
    kind = string_ids(symbol, first, last)
    example = representatives(kind)
    return Strings(symbol, first[example], last[example]), kind


def _ned(strings: Strings, counts: PairCounts) -> dict[str, Value]:
    """Mean over pairs; two strings of nothing but silence are as different as can be."""
    x, y = np.divmod(counts.keys, strings.count)
    longest = np.maximum(strings.length[x], strings.length[y])
    rate = np.where(longest > 0, strings.distances(x, y) / np.maximum(longest, 1), 1.0)
    pairs = int(counts.weight.sum())
    return {"ned": ratio(float((rate * counts.weight).sum()), pairs), "n_pairs": pairs}


class _PairsOfLines:
    """Counts the different pairs of intervals of classes.

    The program orders the two by document and onset, and keeps them in the order of the file where these are equal, so such a
    pair may count in both orders.
    """

    def __init__(self, lines: Lines) -> None:
        self._onset = np.unique(lines.onsets(), return_inverse=True)[1]
        self._repeated = np.bincount(lines.item) > 1
        self._once = 0
        self._keys = [np.zeros(0, np.int64)]

    def add(self, x: Ints, y: Ints) -> None:
        """Pairs of intervals, of which each line came before the other in the file."""
        again = self._repeated[x] | self._repeated[y]
        self._once += len(x) - int(again.sum())
        x, y = x[again], y[again]
        swapped = self._onset[x] > self._onset[y]
        key = np.where(swapped, y, x) * len(self._onset) + np.where(swapped, x, y)
        self._keys.append(distinct(key))

    def __len__(self) -> int:
        return self._once + len(distinct(np.concatenate(self._keys)))


def _grouping(lines: Lines, found_pairs: int) -> Measure:
    """Precision and recall of tokens in pairs of equal strings."""
    token, tokens = _tokens(lines)
    onset, offset = _ranks(lines)

    def count(items: Ints | Bools) -> int:
        seen = np.zeros(tokens, bool)
        seen[token[items]] = True
        return int(seen.sum())

    several = np.bincount(lines.group, minlength=1)[lines.group] > 1
    item = lines.item
    common = partnered(ids(lines.group, lines.kind[item]), onset[item], offset[item])
    gold = partnered(lines.kind, onset, offset)
    n_common, n_found, n_gold = count(item[common]), count(item[several]), count(gold)
    pairs: Measure = {"n_found_pairs": found_pairs, "n_gold_pairs": _gold_pairs(lines.kind, onset, offset)}
    return {**with_f(ratio(n_common, n_found), ratio(n_common, n_gold)), **pairs}


def _ranks(lines: Lines) -> tuple[Ints, Ints]:
    """Onset and offset of each interval as ranks of places, in one order."""
    onset, offset = lines.onsets(), lines.offsets()
    edges = distinct(np.concatenate([onset, offset]))
    return np.searchsorted(edges, onset), np.searchsorted(edges, offset)


def _tokens(lines: Lines) -> tuple[Ints, int]:
    """Number of the token of each interval: its timed phones without the document."""
    phones = lines.phones
    span = ids(lines.first, lines.last)
    example = representatives(span)
    timed = ids(phones.onset, phones.offset, phones.symbol)
    token = string_ids(timed, lines.first[example], lines.last[example])
    return token[span], len(example)


def _gold_pairs(kind: Ints, onset: Ints, offset: Ints) -> int:
    """Number of pairs of one string without common time: later ones of the string, without those that begin too early."""
    size = int(offset.max()) + 1 if len(offset) else 1
    begins = np.sort(kind * size + onset)
    after = np.searchsorted(begins, (kind + 1) * size) - np.searchsorted(begins, kind * size + offset)
    return int(after.sum())


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


def _equal_strings(lines: Lines, words: Units, interval: Ints, word: Ints) -> Bools:
    """Whether the phones of intervals are those that share any time with the words beside them."""
    first, last = touched(lines.phones, words.take(word))
    length = lines.last[interval] - lines.first[interval]
    equal: Bools = last - first == length
    rows = np.flatnonzero(equal)
    symbol, nth = lines.phones.symbol, 0
    while len(rows):
        same = symbol[first[rows] + nth] == symbol[lines.first[interval[rows]] + nth]
        equal[rows[~same]] = False
        nth += 1
        rows = rows[same & (length[rows] > nth)]
    return equal
