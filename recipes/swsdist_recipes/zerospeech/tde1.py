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

Pairs are two different fragments of a class that do not overlap, looking at times only: fragments of two documents at one time
are no pair. Matching completes them by substrings along diagonals: the shorter string is laid along the longer at every offset;
parts at one place, of 3 to 19 phones, are pairs. Gold pairs are those of the gold classes. Both orders of each pair count.

The program compares floats, so a common time of exactly 30 ms, or of half a length, counts or not by their noise; this is
imitated. Ticks divided by `TICKS` are the floats that the program reads.

Precision and recall of pairs are by types. A type is the phone string of the second member of a pair. Its weight is its share
of the different members of all pairs, first or second; its ratio is the part of its pairs that is right. A type that is never
second has a weight and no ratio.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from swsdist.core.arrays import Bools, Ints
from swsdist.discovery.cells import Strings
from swsdist.discovery.measures import f_score, inside, ratio
from swsdist.discovery.units import (
    BEYOND,
    SILENCES,
    TICKS,
    Corpus,
    EvaluationSetup,
    Fragments,
    Intervals,
    Units,
    ids,
    places,
    representatives,
    string_ids,
    touched,
)
from swsdist_recipes.zerospeech.pairs import PairCounts, Pairs, among, distinct, pairs_of_items

#: Precision and recall; None where there are no pairs.
Ratios = tuple[float | None, float | None]


class PairsByType:
    """Counts of different pairs by type.

    Args:
        kind: number of the phone string of each member.
        kinds: number of phone strings.
    """

    def __init__(self, kind: Ints, kinds: int) -> None:
        self._kind, self._kinds = kind, kinds
        self._member = np.zeros(len(kind), bool)
        self._pairs = np.zeros(kinds, np.int64)

    def add(self, first: Ints, second: Ints) -> None:
        """Count pairs that were not counted yet."""
        self._member[first] = True
        self._member[second] = True
        self._pairs += self.count(second)

    def count(self, second: Ints) -> Ints:
        """Pairs of each type, by their second members."""
        return np.bincount(self._kind[second], minlength=self._kinds)

    def share(self, right: Ints) -> float | None:
        """The part of the pairs that is right, weighted; None without pairs.

        Args:
            right: number of right pairs of each type.
        """
        members = int(self._member.sum())
        if not members:
            return None
        weight = np.bincount(self._kind[self._member], minlength=self._kinds) / members
        second = self._pairs > 0
        return float((weight[second] * right[second] / self._pairs[second]).sum())


#: Common time or distance that counts, s.
CLOSE = 0.03
#: Shorter common times are none, s.
_NONE = 1e-8


def common_seconds(a: Intervals, b: Intervals) -> np.ndarray:
    """Common time of stretches side by side, s, negative for gaps; documents are not looked at."""
    return np.minimum(a.offset, b.offset) / TICKS - np.maximum(a.onset, b.onset) / TICKS


def overlap(a: Intervals, b: Intervals) -> Bools:
    """Whether stretches side by side overlap: by more than 30 ms, or by more than half of either; the same for documents."""
    common = common_seconds(a, b)
    shorter = np.minimum(a.offset / TICKS - a.onset / TICKS, b.offset / TICKS - b.onset / TICKS)
    return (common >= _NONE) & ((common > CLOSE) | (common > 0.5 * shorter))


def overlapped(units: Intervals, lo: Ints, hi: Ints, stretches: Intervals) -> tuple[Ints, Ints]:
    """The units of lo..hi that overlap with each stretch: those at the edges may not.

    Args:
        units: sorted by document and time, disjoint.
        lo: first unit that may belong to each stretch.
        hi: one after the last.
        stretches: as many.

    Returns:
        The first unit of each, and one after the last; equal if there is none.
    """
    lo, hi = lo.copy(), hi.copy()
    _move(units, lo, lo, hi, stretches, 0, 1)
    _move(units, hi, lo, hi, stretches, -1, -1)
    return lo, hi


def _move(units: Intervals, edge: Ints, lo: Ints, hi: Ints, stretches: Intervals, at: int, step: int) -> None:
    """Move edges inwards as long as the unit there does not overlap."""
    rows = np.flatnonzero(lo < hi)
    while len(rows):
        rows = rows[~overlap(units.take(edge[rows] + at), stretches.take(rows))]
        edge[rows] += step
        rows = rows[lo[rows] < hi[rows]]


def in_run(runs: Intervals, stretches: Intervals) -> Ints:
    """The run in which each stretch is looked up, -1 for none.

    It is the last that overlaps; without one, the one that begins before the stretch and shares any time with it.

    Args:
        runs: sorted by document and time, disjoint.
    """
    lo, hi = touched(runs, stretches)
    some = np.flatnonzero(lo < hi)
    result = np.full(len(stretches), -1, np.int64)
    early = some[runs.onset[lo[some]] < stretches.onset[some]]
    result[early] = lo[early]
    nth = 0
    while len(some):
        at = lo[some] + nth
        overlaps = overlap(runs.take(at), stretches.take(some))
        result[some[overlaps]] = at[overlaps]
        nth += 1
        some = some[lo[some] + nth < hi[some]]
    return result


#: Neighbours less than this apart are in one run, in ticks.
_GAP = 10


@dataclass(frozen=True)
class InRuns:
    """Phones or words without silences, and their runs.

    Attributes:
        units: sorted by document and time, disjoint.
        run: number of the run of each unit, rising.
    """

    units: Units
    run: Ints

    @classmethod
    def of(cls, units: Units) -> InRuns:
        """Of all units of a corpus."""
        new = np.ones(len(units), bool)
        new[1:] = (units.document[1:] != units.document[:-1]) | (np.abs(units.onset[1:] - units.offset[:-1]) >= _GAP)
        return cls(units, np.cumsum(new) - 1)

    def take(self, rows: Bools) -> InRuns:
        """Some units; a run that has a gap then is one run still."""
        return InRuns(self.units.take(rows), self.run[rows])

    def spans(self, stretches: Intervals) -> tuple[Bools, Ints, Ints]:
        """The units of stretches.

        Returns:
            Whether a stretch is near a run at all; its first unit; the one after its last, equal to the first if there is none.
        """
        begins = np.flatnonzero(np.diff(self.run, prepend=-1))
        ends = np.flatnonzero(np.diff(self.run, append=-1)) + 1
        units = self.units
        run = in_run(Intervals(units.document[begins], units.onset[begins], units.offset[ends - 1]), stretches)
        near = run >= 0
        lo, hi = touched(units, stretches)
        lo[near] = np.maximum(lo[near], begins[run[near]])
        hi[near] = np.minimum(hi[near], ends[run[near]])
        lo, hi = overlapped(units, lo, np.maximum(lo, hi), stretches)
        return near, lo, hi


@dataclass(frozen=True)
class Members:
    """The fragments of classes that are near phones.

    Attributes:
        group: class of each line; int64.
        item: number of the fragment of each line; int64.
        fragments: the different ones, by document and time.
        first: first phone of each fragment; int64.
        last: one after its last phone, equal to `first` if it has none; int64.
    """

    group: Ints
    item: Ints
    fragments: Intervals
    first: Ints
    last: Ints

    @classmethod
    def of(cls, lines: Fragments, phones: InRuns) -> Members:
        """Of the lines of classes; instants and those elsewhere are dropped."""
        lines = lines.take(lines.onset < lines.offset)
        item = ids(places(lines.document, lines.onset), lines.offset)
        example = representatives(item)
        fragments = Intervals(lines.document[example], lines.onset[example], lines.offset[example])
        near, first, last = phones.spans(fragments)
        kept, number = near[item], np.cumsum(near) - 1
        return cls(lines.group[kept], number[item[kept]], fragments.take(near), first[near], last[near])

    def rows(self, chosen: Bools) -> tuple[Ints, Ints]:
        """Class and fragment of the lines of some fragments."""
        kept = chosen[self.item]
        return self.group[kept], self.item[kept]


def cut(fragments: Fragments, split: Intervals) -> Fragments:
    """Cut each fragment to the stretch of speech of which it has most, the first of equals; drop those in none.

    Args:
        fragments: of any documents.
        split: disjoint.
    """
    split = split.take(np.lexsort((split.onset, split.document)))
    lo, hi = touched(split, fragments)
    best, most = lo.copy(), np.zeros(len(fragments))
    some, nth = np.flatnonzero(lo < hi), 0
    while len(some):
        at = lo[some] + nth
        common = common_seconds(split.take(at), fragments.take(some))
        better = common > most[some]
        best[some[better]], most[some[better]] = at[better], common[better]
        nth += 1
        some = some[lo[some] + nth < hi[some]]
    kept = np.flatnonzero(most > 0)
    inside, fragments = split.take(best[kept]), fragments.take(kept)
    onset, offset = np.maximum(fragments.onset, inside.onset), np.minimum(fragments.offset, inside.offset)
    return Fragments(fragments.document, onset, offset, fragments.group, fragments.names)


#: Fewest and most phones of a part; the program's 20 is the open end of a range.
_LEAST, _MOST = 3, 19
_LENGTHS = _MOST - _LEAST + 1


class Completion:
    """Parts of discovered fragments, and gold fragments beside them.

    A part has the code ``first * _LENGTHS + length - _LEAST``, and the rank of its code among all parts as its number.

    Args:
        phones: sorted by document and time.
        disc: discovered fragments.
        gold: fragments of the gold classes.
    """

    def __init__(self, phones: Units, disc: Members, gold: Members) -> None:
        self._disc = disc
        codes = [_codes(disc.first[rows], length).ravel() for length, rows in _by_length(disc.last - disc.first)]
        self._codes = distinct(np.concatenate([np.zeros(0, np.int64), *codes]))
        first, length = np.divmod(self._codes, _LENGTHS)
        firsts, lasts = np.concatenate([first, gold.first]), np.concatenate([first + length + _LEAST, gold.last])
        kind = string_ids(phones.symbol, firsts, lasts)
        self._kind, self._gold_kind = np.split(kind, [len(first)])
        self._kinds = int(kind.max()) + 1 if len(kind) else 0
        self._gold_part = self._parts_of(phones, gold)

    def _parts_of(self, phones: Units, gold: Members) -> Ints:
        """The part that each gold fragment is, to the tick; -1 if it is none."""
        length = gold.last - gold.first
        some = np.flatnonzero((length >= _LEAST) & (length <= _MOST))
        first, last = gold.first[some], gold.last[some] - 1
        exact = (phones.onset[first] == gold.fragments.onset[some]) & (
            phones.offset[last] == gold.fragments.offset[some]
        )
        some, code = some[exact], (first * _LENGTHS + length[some] - _LEAST)[exact]
        present = among(code, self._codes)
        parts = np.full(len(length), -1, np.int64)
        parts[some[present]] = np.searchsorted(self._codes, code[present])
        return parts

    def keys(self, x: Ints, y: Ints) -> Ints:
        """Different pairs of parts of pairs of fragments: ``a * parts + b``, a <= b, sorted."""
        length = self._disc.last - self._disc.first
        surplus = length[x] - length[y]
        offsets = np.abs(surplus) + 1
        pair = np.repeat(np.arange(len(x)), offsets)
        offset = np.arange(len(pair)) - np.repeat(np.cumsum(offsets) - offsets, offsets)
        a = self._disc.first[x][pair] + np.where(surplus[pair] > 0, offset, 0)
        b = self._disc.first[y][pair] + np.where(surplus[pair] < 0, offset, 0)
        keys = [np.zeros(0, np.int64)]
        for shorter, rows in _by_length(np.minimum(length[x], length[y])[pair]):
            first = np.searchsorted(self._codes, _codes(a[rows], shorter)).ravel()
            second = np.searchsorted(self._codes, _codes(b[rows], shorter)).ravel()
            keys.append(np.minimum(first, second) * len(self._codes) + np.maximum(first, second))
        return distinct(np.concatenate(keys))

    def ratios(self, keys: Ints, gold_pairs: Iterable[Pairs]) -> Ratios:
        """Precision and recall.

        Args:
            keys: of all pairs of parts.
            gold_pairs: pairs of gold fragments, each once.
        """
        disc, gold = PairsByType(self._kind, self._kinds), PairsByType(self._gold_kind, self._kinds)
        a, b = np.divmod(keys, len(self._codes) or 1)
        disc.add(a, b)
        disc.add(b[a != b], a[a != b])
        right = np.zeros(self._kinds, np.int64)
        for x, y in gold_pairs:
            gold.add(x, y)
            gold.add(y, x)
            a, b = self._gold_part[x], self._gold_part[y]
            hit = (a >= 0) & (b >= 0) & among(np.minimum(a, b) * len(self._codes) + np.maximum(a, b), keys)
            right += gold.count(x[hit]) + gold.count(y[hit])
        return disc.share(right), gold.share(right)


def _by_length(length: Ints) -> list[tuple[int, Ints]]:
    """Each length that has parts, and its rows."""
    order = np.argsort(length, kind="stable")
    ends = np.flatnonzero(np.diff(length[order], append=-1)) + 1
    groups = np.split(order, ends[:-1]) if len(order) else []
    return [(int(length[rows[0]]), rows) for rows in groups if length[rows[0]] >= _LEAST]


def _codes(first: Ints, length: int) -> Ints:
    """Codes of all parts of stretches of one length, (stretches, parts), in one order of parts."""
    parts = [
        start * _LENGTHS + np.arange(min(length - start, _MOST) - _LEAST + 1) for start in range(length - _LEAST + 1)
    ]
    return first[:, None] * _LENGTHS + np.concatenate(parts)


class PairMeasures:
    """NED, matching and grouping in folds.

    Args:
        phones: sorted by document and time.
        disc: discovered fragments.
        gold: fragments of the gold classes.
    """

    def __init__(self, phones: Units, disc: Members, gold: Members) -> None:
        self._disc, self._gold = disc, gold
        self._kind = string_ids(phones.symbol, disc.first, disc.last)
        example = representatives(self._kind)
        self._strings = Strings(phones.symbol, disc.first[example], disc.last[example])
        self._completion = Completion(phones, disc, gold)

    def fold(self, disc: Bools, gold: Bools) -> tuple[PairCounts, Ratios, Ratios]:
        """Pairs by their strings, matching and grouping of the fragments in one fold."""
        group, item = self._disc.rows(disc)
        ned, grouping = PairCounts(self._strings.count), PairsByType(self._kind, self._strings.count)
        right, parts = np.zeros(self._strings.count, np.int64), [np.zeros(0, np.int64)]
        for x, y in _pairs(self._disc.fragments, group, item):
            ned.add(self._kind[x], self._kind[y])
            grouping.add(x, y)
            right += grouping.count(y[self._equal(x, y)])
            parts.append(self._completion.keys(x, y))
        gold_pairs = _pairs(self._gold.fragments, *self._gold.rows(gold))
        matching = self._completion.ratios(distinct(np.concatenate(parts)), gold_pairs)
        return ned, matching, (grouping.share(right), self._gold_grouping(group, item).share(right))

    def ned(self, folds: list[PairCounts]) -> list[float | None]:
        """Mean normalised distance of the pairs of each fold; None without pairs.

        Raises:
            ZeroDivisionError: two fragments of a pair have no phones.
        """
        keys = [counts.keys for counts in folds]
        x, y = np.divmod(np.concatenate(keys), self._strings.count)
        longest = np.maximum(self._strings.length[x], self._strings.length[y])
        if not longest.all():
            raise ZeroDivisionError
        rates = np.split(self._strings.distances(x, y) / longest, np.cumsum([len(some) for some in keys[:-1]]))
        return [
            float((rate * counts.weight).sum()) / int(counts.weight.sum()) if len(rate) else None
            for rate, counts in zip(rates, folds, strict=True)
        ]

    def _gold_grouping(self, group: Ints, item: Ints) -> PairsByType:
        """Pairs of fragments of equal phones, of classes that have two lines in the fold."""
        several = np.bincount(group, minlength=1)[group] > 1
        pairs = PairsByType(self._kind, self._strings.count)
        item = item[several]
        for x, y in _pairs(self._disc.fragments, self._kind[item], item):
            apart = self._equal(x, y)
            pairs.add(x[apart], y[apart])
        return pairs

    def _equal(self, x: Ints, y: Ints) -> Bools:
        """Whether pairs are of equal phones and share no time of one document at all."""
        a, b = self._disc.fragments.take(x), self._disc.fragments.take(y)
        common = np.minimum(a.offset, b.offset) > np.maximum(a.onset, b.onset)
        equal: Bools = (self._kind[x] == self._kind[y]) & ~((a.document == b.document) & common)
        return equal


def _pairs(fragments: Intervals, group: Ints, item: Ints) -> Iterator[Pairs]:
    """Pairs that share a group and do not overlap; the first is earlier in the order of documents and times."""
    for x, y in pairs_of_items(group, item):
        kept = ~overlap(fragments.take(x), fragments.take(y))
        yield x[kept], y[kept]


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


def _close(a: Ints, b: Ints) -> Bools:
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
