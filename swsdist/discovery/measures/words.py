"""Type, token and boundary: fragments against words. They have no pairs."""

from __future__ import annotations

import numpy as np

from swsdist.discovery.cells import Block
from swsdist.discovery.measures.evaluating import OfCounts, WithoutPairs
from swsdist.discovery.scene import Spans
from swsdist.discovery.spans import EDGE
from swsdist.discovery.units import BEYOND, Flags, Intervals, Ints, places


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
