"""Measures of term discovery: coverage, grouping, type, token, boundary, matching, NED.

A measure is registered in `swsdist.registry.registries.DISCOVERY_MEASURES`. It is counted block by block, in one pass
over the pairs for all measures, and gives ratios of counts; its parts are sums over blocks, so the division of
documents does not matter (`swsdist.testing.conformance.check_discovery_measure`).

Coverage: what members of P_disc cover, relative to what members of P_all cover; in phones, or in their time. The part
found need not be in P_all, so coverage may exceed 1, as by the formula of the seed.

Matching: P_disc with completed substrings against P_all; of the substrings, those of two phones may count or not. The
weights by type of the seed cancel: ``sum_t freq(t, P) |match(t, P & Q)| / |match(t, P)| = |flat(P & Q)| / |flat(P)|``.
So precision and recall are of the members of pairs, whose marks are kept by first phone and length.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from swsdist.core.arrays import Bools, Ints
from swsdist.core.codes import families
from swsdist.discovery.cells import (
    LONGEST,
    SHORTEST,
    Batch,
    Block,
    Cell,
    Kinds,
    Strings,
    Talkers,
    batches,
    cells,
    completed,
    in_pairs,
    repeated,
)
from swsdist.discovery.scene import EDGE, Scene, Spans
from swsdist.discovery.units import BEYOND, Corpus, Fragments, Intervals, ids, places

#: A value of a result: counts are integers, ratios floats, None is undefined.
Value = int | float | None


def ratio(part: int | float, total: int) -> float | None:
    """Part of a total; None of nothing."""
    return part / total if total else None


def f_score(precision: float | None, recall: float | None) -> float | None:
    """``2 P R / (P + R)``; 0 if both are 0, None if one is None."""
    if precision is None or recall is None:
        return None
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def of_counts(hit: int, disc: int, gold: int) -> Mapping[str, Value]:
    """Counts, and the ratios of them, by the keys of results."""
    precision, recall = ratio(hit, disc), ratio(hit, gold)
    counts = {"n_hit": hit, "n_disc": disc, "n_gold": gold}
    return {**counts, "precision": precision, "recall": recall, "fscore": f_score(precision, recall)}


#: Integers by name; the parts of disjoint blocks are added.
Parts = Mapping[str, int]


class Counting(Protocol):
    """The counting of one measure in one block."""

    def add(self, cell: Cell) -> None:
        """Count the pairs of a cell. Each cell of the block comes once, in any order."""
        ...

    def parts(self) -> Parts:
        """The counts, after all cells."""
        ...


class Measure(Protocol):
    """A measure."""

    def count(self, block: Block) -> Counting:
        """Begin to count a block."""
        ...

    def values(self, parts: Parts) -> Mapping[str, Value]:
        """Counts and ratios of the parts of all blocks; a ratio without denominator is None."""
        ...


class WithoutPairs:
    """A counting that needs no pairs.

    Args:
        parts: all of them.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def add(self, cell: Cell) -> None:
        """Count nothing."""

    def parts(self) -> Parts:
        """The given counts."""
        return self._parts


class OfCounts:
    """Values of a measure whose parts are `hit`, `disc` and `gold`."""

    def values(self, parts: Parts) -> Mapping[str, Value]:
        """Precision, recall, F and their counts."""
        return of_counts(parts["hit"], parts["disc"], parts["gold"])


def counted(measures: Mapping[str, Measure], block: Block) -> dict[str, Parts]:
    """The parts of measures in a block, by name."""
    countings = {name: measure.count(block) for name, measure in measures.items()}
    for cell in cells(block):
        for counting in countings.values():
            counting.add(cell)
    return {name: counting.parts() for name, counting in countings.items()}


def added(parts: Sequence[Mapping[str, Parts]]) -> dict[str, Parts]:
    """The parts of measures over blocks."""
    totals: dict[str, Counter[str]] = {}
    for block in parts:
        for name, some in block.items():
            totals.setdefault(name, Counter()).update(some)
    return {name: dict(total) for name, total in totals.items()}


def evaluated(
    measures: Mapping[str, Measure],
    scene: Scene,
    talkers: Talkers = "all",
    blocks: Sequence[Bools] | None = None,
) -> dict[str, Mapping[str, Value]]:
    """The values of measures, by name.

    Args:
        measures: by name.
        scene: of a corpus or a fold.
        talkers: which pairs count.
        blocks: disjoint sets of documents, all together; None: one of all. The values are the same.
    """
    if blocks is None:
        last = max(int(scene.gold.phones.document.max(initial=-1)), -1) + 1
        blocks = [np.ones(last, bool)]
    parts = added([counted(measures, Block(scene, talkers, documents)) for documents in blocks])
    return {name: measure.values(parts[name]) for name, measure in measures.items()}


class Coverage:
    """Coverage in phones."""

    _time = False

    def count(self, block: Block) -> _CoverageCounting:
        """Begin to count a block."""
        return _CoverageCounting(block, self._time)

    def values(self, parts: Parts) -> Mapping[str, Value]:
        """`coverage`, and its counts; None where nothing recurs."""
        disc, recurring = parts["disc"], parts["all"]
        return {"coverage": ratio(disc, recurring), "n_all": recurring, "n_disc": disc}


class CoverageInTime(Coverage):
    """Coverage in the time of the phones: frames so short that none holds two. Counts are ticks of 1 us."""

    _time = True


class _CoverageCounting:
    def __init__(self, block: Block, time: bool) -> None:
        self._block, self._time = block, time
        self._member = np.zeros(len(block.scene.spans), bool)

    def add(self, cell: Cell) -> None:
        """Mark the members of pairs that do not overlap."""
        self._member[cell.apart.first] = self._member[cell.apart.second] = True

    def parts(self) -> Parts:
        """Covered phones or ticks of the block."""
        return {"disc": self._measured(self._discovered()), "all": self._measured(self._there())}

    def _measured(self, covered: Bools) -> int:
        phones = self._block.scene.gold.phones
        counted = covered & self._block.phone
        return int((phones.offset - phones.onset)[counted].sum() if self._time else counted.sum())

    def _discovered(self) -> Bools:
        spans = self._block.scene.spans
        change = np.zeros(len(self._block.scene.gold) + 1, np.int64)
        np.add.at(change, spans.first[self._member], 1)
        np.add.at(change, spans.last[self._member], -1)
        covered: Bools = np.cumsum(change)[:-1] > 0
        return covered

    def _there(self) -> Bools:
        """By strings of 3 phones, for a longer one consists of them."""
        covered = np.zeros(len(self._block.scene.gold), bool)
        _, first = next(repeated(self._block), (0, np.zeros(0, np.int64)))
        for k in range(SHORTEST):
            covered[first + k] = True
        return covered


class Grouping(OfCounts):
    """Precision, recall and F of members of pairs."""

    def count(self, block: Block) -> _GroupingCounting:
        """Begin to count a block."""
        return _GroupingCounting(block)

    def values(self, parts: Parts) -> Mapping[str, Value]:
        """Values, with the numbers of pairs."""
        pairs = {"n_pairs_clus": parts["pairs_clus"], "n_pairs_goldclus": parts["pairs_goldclus"]}
        return {**super().values(parts), **pairs}


class _GroupingCounting:
    def __init__(self, block: Block) -> None:
        self._block = block
        self._disc = np.zeros(len(block.scene.spans), bool)
        self._hit = np.zeros(len(block.scene.spans), bool)
        self._pairs = 0

    def add(self, cell: Cell) -> None:
        """Mark members of pairs, and of those of equal strings that do not overlap."""
        self._pairs += cell.number
        self._disc[cell.first] = self._disc[cell.second] = True
        alike = cell.apart.alike
        self._hit[cell.apart.first[alike]] = self._hit[cell.apart.second[alike]] = True

    def parts(self) -> Parts:
        """Members of the block, and pairs whose first span is in it."""
        block, spans = self._block, self._block.scene.spans
        gold = in_pairs(block, spans.string, spans.first, spans.last, spans.document)
        later = _later(spans.string, spans.first, spans.last)
        if block.talkers != "all" and block.scene.talker is not None:
            of_talker = ids(spans.string, block.scene.talker[spans.document])
            same = _later(of_talker, spans.first, spans.last)
            later = same if block.talkers == "within" else later - same
        return {
            "hit": int((self._hit & block.span).sum()),
            "disc": int((self._disc & block.span).sum()),
            "gold": int((gold & block.span).sum()),
            "pairs_clus": self._pairs,
            "pairs_goldclus": int(later[block.span].sum()),
        }


def _later(group: Ints, first: Ints, last: Ints) -> Ints:
    """How many spans of its group begin at or after the end of each."""
    wide = int(last.max()) + 1 if len(last) else 1
    starts = np.sort(group * wide + first)
    ends = np.searchsorted(starts, (group + 1) * wide)
    result: Ints = ends - np.searchsorted(starts, group * wide + last)
    return result


class Type(OfCounts):
    """Phone strings of fragments and of words; a string is counted where it first is."""

    def count(self, block: Block) -> WithoutPairs:
        """Count a block."""
        fragments, words = block.scene.spans, _words(block)
        disc, gold = (np.unique(spans.string, return_index=True) for spans in (fragments, words))
        return WithoutPairs(
            _counts(block.documents, (disc[0], fragments.document[disc[1]]), (gold[0], words.document[gold[1]]))
        )


class Token(OfCounts):
    """Spans of fragments and of words."""

    def count(self, block: Block) -> WithoutPairs:
        """Count a block."""
        fragments, words = block.scene.spans, _words(block)
        wide = len(block.scene.gold) + 1
        disc, gold = ((spans.first * wide + spans.last, spans.document) for spans in (fragments, words))
        return WithoutPairs(_counts(block.documents, disc, gold))


class Boundary(OfCounts):
    """Edges of fragments and of words, each at the nearest edge of a phone, or wrong."""

    wrong_is_one = False

    def count(self, block: Block) -> WithoutPairs:
        """Count a block."""
        scene = block.scene
        assert scene.words is not None
        disc, gold = (_boundaries(scene.gold.phones, stretches) for stretches in (scene.fragments, scene.words))
        if self.wrong_is_one:
            disc, gold = (np.concatenate([items[items < 0][-1:], items[items >= 0]]) for items in (disc, gold))
        return WithoutPairs(_counts(block.documents, *((items, np.abs(items) // BEYOND) for items in (disc, gold))))


class BoundaryOneWrong(Boundary):
    """Boundary where all wrong boundaries are one, index -1 of the description, counted where the first of them is."""

    wrong_is_one = True


def _words(block: Block) -> Spans:
    assert block.scene.word_spans is not None
    return block.scene.word_spans


def _counts(documents: Bools, disc: tuple[Ints, Ints], gold: tuple[Ints, Ints]) -> dict[str, int]:
    """Counts of two sets of items, each with its document, in a block; an item of both is counted as the first has it.

    An item below 0 is wrong, and in no other set.
    """
    hit = np.isin(disc[0], gold[0]) & (disc[0] >= 0)
    return {
        "hit": int((documents[disc[1]] & hit).sum()),
        "disc": int(documents[disc[1]].sum()),
        "gold": int(documents[gold[1]].sum()),
    }


def _boundaries(phones: Intervals, stretches: Intervals) -> Ints:
    """The distinct boundaries: a place of a phone's edge, or minus another place, which is wrong.

    A time goes to the nearest edge in its document, the earlier of two, if it is less than 30 ms away.
    """
    edges = np.unique(np.concatenate([places(phones.document, time) for time in (phones.onset, phones.offset)]))
    time = np.concatenate([places(stretches.document, time) for time in (stretches.onset, stretches.offset)])
    if not len(edges):
        return np.zeros(0, np.int64)
    after = np.searchsorted(edges, time)
    earlier, later = edges[np.maximum(after - 1, 0)], edges[np.minimum(after, len(edges) - 1)]
    # An edge of another document is farther than any: places of documents are `BEYOND` apart.
    nearest = np.where(np.abs(time - earlier) <= np.abs(later - time), earlier, later)
    right = (np.abs(nearest - time) < EDGE) & (nearest // BEYOND == time // BEYOND)
    result: Ints = np.unique(np.where(right, nearest, -1 - time))
    return result


_LENGTHS = LONGEST + 1


class Matching(OfCounts):
    """Precision, recall and F of members of completed pairs."""

    #: Phones of the shortest part.
    least = SHORTEST

    def count(self, block: Block) -> _MatchingCounting:
        """Begin to count a block."""
        return _MatchingCounting(block, self.least)

    def values(self, parts: Parts) -> Mapping[str, Value]:
        """Values, with the number of distinct completed pairs."""
        return {**super().values(parts), "n_pairs_completed": parts["pairs"]}


class MatchingFromTwo(Matching):
    """Matching with parts of two phones, as in the description's example; P_all has none, so they are wrong."""

    least = 2


class _MatchingCounting:
    def __init__(self, block: Block, least: int) -> None:
        self._block, self._least = block, least
        phones = len(block.scene.gold)
        #: Whether the part of a length that begins at a phone, at phone * _LENGTHS + length, is a member of a pair.
        self._disc = np.zeros(phones * _LENGTHS, bool)
        self._hit = np.zeros(phones * _LENGTHS, bool)
        self._pairs = 0

    def add(self, cell: Cell) -> None:
        """Mark the completed parts of pairs that do not overlap, and count their distinct pairs."""
        kinds = cell.apart.kinds
        order = np.argsort(kinds.kind, kind="stable")
        starts = np.searchsorted(kinds.kind[order], np.arange(len(kinds.shorter) + 1))
        pairs = [np.zeros(0, np.int64)]
        for batch in batches(self._block, kinds, self._least):
            pairs += [
                self._marked(left, right, alike)
                for left, right, alike in _placed(self._block, batch, kinds, order, starts, self._least)
            ]
        self._pairs += self._counted(np.unique(np.concatenate(pairs)))

    def _marked(self, left: Ints, right: Ints, alike: np.ndarray) -> Ints:
        """Mark parts; their pairs, as integers."""
        self._disc[left] = self._disc[right] = True
        alike = alike & (left % _LENGTHS >= SHORTEST)
        left_, right_ = left[alike], right[alike]
        in_runs = self._in_run(left_) & self._in_run(right_)
        self._hit[left_[in_runs]] = self._hit[right_[in_runs]] = True
        pairs: Ints = np.minimum(left, right) * len(self._disc) + np.maximum(left, right)
        return pairs

    def _in_run(self, part: Ints) -> np.ndarray:
        run = self._block.scene.gold.run
        first, length = part // _LENGTHS, part % _LENGTHS
        result: np.ndarray = run[first] == run[first + length - 1]
        return result

    def _counted(self, pairs: Ints) -> int:
        return int(self._block.phone[pairs // max(len(self._disc), 1) // _LENGTHS].sum())

    def parts(self) -> Parts:
        """Members of the block, and pairs whose first part is in it."""
        counted = np.repeat(self._block.phone, _LENGTHS)
        gold = sum(int(self._block.phone[first].sum()) for _, first in repeated(self._block))
        return {
            "hit": int((self._hit & counted).sum()),
            "disc": int((self._disc & counted).sum()),
            "gold": gold,
            "pairs": self._pairs,
        }


def _placed(
    block: Block, batch: Batch, kinds: Kinds, order: Ints, starts: Ints, least: int
) -> Iterator[tuple[Ints, Ints, np.ndarray]]:
    """The completed parts of all pairs of a batch's kinds, as phone * _LENGTHS + length; whether they are the same string."""
    first = block.scene.spans.first
    for parts in completed(batch, least):
        kind = batch.kinds[parts.pair]
        count = starts[kind + 1] - starts[kind]
        row = np.repeat(np.arange(len(kind)), count)
        pair = order[np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(starts[kind], count)]
        left = _part(first[kinds.left[pair]], parts.begin[row], parts.ends[0])
        right = _part(first[kinds.right[pair]], parts.other[row], parts.ends[1])
        yield left, right, parts.equal[row]


def _part(first: Ints, begin: Ints, end: int) -> Ints:
    return (first + begin) * _LENGTHS + end - begin


_WIDE = 1 << 20


class Ned:
    """Normalised edit distance of the pairs that do not overlap."""

    def count(self, block: Block) -> _NedCounting:
        """Begin to count a block."""
        return _NedCounting(block)

    def values(self, parts: Parts) -> Mapping[str, Value]:
        """`ned`, and the number of pairs; None without pairs."""
        total, number = Fraction(), 0
        for key, pairs in parts.items():
            total += pairs * Fraction(key)
            number += pairs
        return {"ned": float(total / number) if number else None, "n_pairs": number}


class _NedCounting:
    def __init__(self, block: Block) -> None:
        self._block = block
        self._pairs: Counter[str] = Counter()

    def add(self, cell: Cell) -> None:
        """Count pairs by distance and longest."""
        kinds = cell.apart.kinds
        weight = np.bincount(kinds.kind[self._block.span[cell.apart.first]], minlength=len(kinds.shorter))
        spans, symbol = self._block.scene.spans, self._block.scene.gold.phones.symbol
        strings = Strings(symbol, spans.first, spans.last)
        distance = strings.distances(kinds.shorter, kinds.longer)
        values, place = np.unique(distance * _WIDE + strings.length[kinds.longer], return_inverse=True)
        pairs = np.zeros(len(values), np.int64)
        np.add.at(pairs, place, weight)
        for value, number in zip(values.tolist(), pairs.tolist(), strict=True):
            if number:
                self._pairs[f"{value // _WIDE}/{value % _WIDE}"] += number

    def parts(self) -> Parts:
        """Pairs by `distance/longest`."""
        return self._pairs


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


def inside(stretches: Intervals, fold: Intervals) -> Bools:
    """Whether each stretch lies wholly inside one interval of a fold; these are disjoint."""
    if not len(fold):
        return np.zeros(len(stretches), bool)
    fold = fold.take(np.lexsort((fold.onset, fold.document)))
    k = np.searchsorted(places(fold.document, fold.onset), places(stretches.document, stretches.onset), "right") - 1
    at = np.maximum(k, 0)
    fits: Bools = (k >= 0) & (fold.document[at] == stretches.document) & (stretches.offset <= fold.offset[at])
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
        raise families.TOO_LARGE(
            "{folds} folds of {documents} documents with phones",
            "folds are cut at ends of documents: ask for {documents} or fewer",
            folds=count,
            documents=len(documents),
        )
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
