"""Coverage: what members of P_disc cover, against what members of P_all cover; in phones, or in their time.

The part found need not be in P_all, so coverage may exceed 1, as by the formula of the seed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from swsdist.discovery.cells import Block, Cell
from swsdist.discovery.completion import SHORTEST, in_pairs, repeated
from swsdist.discovery.measures.evaluating import OfCounts, Parts, Value, WithoutPairs, ratio
from swsdist.discovery.scene import Spans
from swsdist.discovery.spans import EDGE
from swsdist.discovery.units import BEYOND, Flags, Intervals, Ints, ids, places


class Coverage:
    """Coverage in phones."""

    _time = False

    def count(self, block: Block) -> _Counting:
        """Begin to count a block."""
        return _Counting(block, self._time)

    def values(self, parts: Parts) -> Mapping[str, Value]:
        """`coverage`, and its counts; None where nothing recurs."""
        disc, recurring = parts["disc"], parts["all"]
        return {"coverage": ratio(disc, recurring), "n_all": recurring, "n_disc": disc}


class CoverageInTime(Coverage):
    """Coverage in the time of the phones: frames so short that none holds two. Counts are ticks of 1 us."""

    _time = True


class _Counting:
    def __init__(self, block: Block, time: bool) -> None:
        self._block, self._time = block, time
        self._member = np.zeros(len(block.scene.spans), bool)

    def add(self, cell: Cell) -> None:
        """Mark the members of pairs that do not overlap."""
        self._member[cell.apart.first] = self._member[cell.apart.second] = True

    def parts(self) -> Parts:
        """Covered phones or ticks of the block."""
        return {"disc": self._measured(self._discovered()), "all": self._measured(self._there())}

    def _measured(self, covered: Flags) -> int:
        phones = self._block.scene.gold.phones
        counted = covered & self._block.phone
        return int((phones.offset - phones.onset)[counted].sum() if self._time else counted.sum())

    def _discovered(self) -> Flags:
        spans = self._block.scene.spans
        change = np.zeros(len(self._block.scene.gold) + 1, np.int64)
        np.add.at(change, spans.first[self._member], 1)
        np.add.at(change, spans.last[self._member], -1)
        covered: Flags = np.cumsum(change)[:-1] > 0
        return covered

    def _there(self) -> Flags:
        """By strings of 3 phones, for a longer one consists of them."""
        covered = np.zeros(len(self._block.scene.gold), bool)
        _, first = next(repeated(self._block), (0, np.zeros(0, np.int64)))
        for k in range(SHORTEST):
            covered[first + k] = True
        return covered


class Grouping(OfCounts):
    """Precision, recall and F of members of pairs."""

    def count(self, block: Block) -> _grouping_Counting:
        """Begin to count a block."""
        return _grouping_Counting(block)

    def values(self, parts: Parts) -> Mapping[str, Value]:
        """With the numbers of pairs."""
        pairs = {"n_pairs_clus": parts["pairs_clus"], "n_pairs_goldclus": parts["pairs_goldclus"]}
        return {**super().values(parts), **pairs}


class _grouping_Counting:
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
    """The same where all wrong boundaries are one, index -1 of the description; it is counted where the first of them is."""

    wrong_is_one = True


def _words(block: Block) -> Spans:
    assert block.scene.word_spans is not None
    return block.scene.word_spans


def _counts(documents: Flags, disc: tuple[Ints, Ints], gold: tuple[Ints, Ints]) -> dict[str, int]:
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
