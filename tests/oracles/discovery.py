"""Term discovery by the letter: sets of spans and of pairs, all listed; cheapest edit paths one by one.

Times are integers of 1 us. A phone is (document, onset, offset, symbol); a span is (document, first, last + 1) by the order of
the document's phones.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from fractions import Fraction
from itertools import combinations, pairwise
from typing import NamedTuple

from tests.oracles.edits import edits

Phone = tuple[int, int, int, str]
Stretch = tuple[int, int, int]
Span = tuple[int, int, int]
Pair = frozenset[Span]

EDGE = 30_000


class Scores(NamedTuple):
    """Values by measure, with the keys of results."""

    values: Mapping[str, Mapping[str, object]]
    empty: int


class Speech:
    """The phones of a corpus."""

    def __init__(self, phones: Iterable[Phone]) -> None:
        self.phones: dict[int, list[Phone]] = {}
        for phone in sorted(phones):
            self.phones.setdefault(phone[0], []).append(phone)

    def span(self, stretch: Stretch) -> Span | None:
        """The phones of which a stretch has more than 30 ms, or more than half."""
        document, onset, offset = stretch
        inside = [
            k
            for k, (_, start, end, _) in enumerate(self.phones.get(document, []))
            for common in [min(end, offset) - max(start, onset)]
            if common > EDGE or 2 * common > end - start
        ]
        return (document, inside[0], inside[-1] + 1) if inside else None

    def string(self, span: Span) -> tuple[str, ...]:
        """The symbols of a span."""
        document, first, last = span
        return tuple(phone[3] for phone in self.phones[document][first:last])

    def in_run(self, span: Span) -> bool:
        """Whether each phone begins where the one before ends."""
        phones = self.phones[span[0]][span[1] : span[2]]
        return all(left[2] == right[1] for left, right in pairwise(phones))

    def spans(self) -> list[Span]:
        """F_all: of 3 to 20 phones in a run."""
        return [
            span
            for document, phones in self.phones.items()
            for first in range(len(phones))
            for last in range(first + 3, min(first + 20, len(phones)) + 1)
            if self.in_run(span := (document, first, last))
        ]


def overlap(left: Span, right: Span) -> bool:
    """Whether two spans share a phone."""
    return left[0] == right[0] and max(left[1], right[1]) < min(left[2], right[2])


def flat(pairs: Iterable[Pair]) -> set[Span]:
    """The members of pairs."""
    return {span for pair in pairs for span in pair}


def paths(left: Sequence[str], right: Sequence[str]) -> Iterator[list[tuple[int, int]]]:
    """Every cheapest edit path, as the places it goes through."""
    least = edits(left, right)

    def go(path: list[tuple[int, int]], cost: int) -> Iterator[list[tuple[int, int]]]:
        n, m = path[-1]
        if cost + edits(left[n:], right[m:]) > least:
            return
        if (n, m) == (len(left), len(right)):
            yield path
        if n < len(left):
            yield from go([*path, (n + 1, m)], cost + 1)
        if m < len(right):
            yield from go([*path, (n, m + 1)], cost + 1)
        if n < len(left) and m < len(right):
            yield from go([*path, (n + 1, m + 1)], cost + (left[n] != right[m]))

    yield from go([(0, 0)], 0)


def completed(speech: Speech, pair: Pair, least: int = 3) -> set[Pair]:
    """All pairs of parts of so many to 20 phones between two places of one cheapest path."""
    left, right = sorted(pair)
    return {
        frozenset(((left[0], left[1] + i, left[1] + i2), (right[0], right[1] + j, right[1] + j2)))
        for path in paths(speech.string(left), speech.string(right))
        for (i, j), (i2, j2) in combinations(path, 2)
        if least <= i2 - i <= 20 and least <= j2 - j <= 20
    }


def boundaries(speech: Speech, stretches: Iterable[Stretch]) -> set[tuple[object, ...]]:
    """Places of the nearest edges, the earlier of two; times that are 30 ms or more away are wrong, each an item."""
    result: set[tuple[object, ...]] = set()
    for document, *times in stretches:
        edges = sorted({edge for phone in speech.phones[document] for edge in phone[1:3]})
        for time in times:
            nearest = min(edges, key=lambda edge: (abs(edge - time), edge))
            result.add((document, nearest) if abs(nearest - time) < EDGE else ("wrong", document, time))
    return result


def ratios(hit: Set[object], disc: Set[object], gold: Set[object]) -> dict[str, object]:
    """Precision, recall and F of sets."""
    precision = len(hit) / len(disc) if disc else None
    recall = len(hit) / len(gold) if gold else None
    score = None
    if precision is not None and recall is not None:
        score = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    counts = {"n_hit": len(hit), "n_disc": len(disc), "n_gold": len(gold)}
    return {**counts, "precision": precision, "recall": recall, "fscore": score}


def weighted(pairs: set[Pair], others: set[Pair], string: Callable[[Span], tuple[str, ...]]) -> Fraction | None:
    """Precision of pairs by the sums over types of the description, which `ratios` of members must equal."""
    members, common = flat(pairs), flat(pairs & others)
    if not members:
        return None
    total = Fraction()
    for kind in {string(span) for span in members}:
        match = [span for span in members if string(span) == kind]
        hits = [span for span in common if string(span) == kind]
        total += Fraction(len(match), len(members)) * Fraction(len(hits), len(match))
    return total


def scores(
    phones: Iterable[Phone],
    words: Iterable[Stretch],
    classes: Iterable[Iterable[Stretch]],
    counts: Callable[[int, int], bool] = lambda left, right: True,
) -> Scores:
    """All measures of phones and words without silences, and of the fragments of classes; pairs of two documents may count."""
    speech = Speech(phones)
    given = [[(stretch, speech.span(stretch)) for stretch in members] for members in classes]
    groups = [{span for _, span in members if span} for members in given]
    fragments: set[Span] = set().union(*groups)
    words = list(words)
    lexicon = {span for word in words if (span := speech.span(word))}

    def pairs_of(spans: Iterable[Span]) -> set[Pair]:
        return {frozenset(pair) for pair in combinations(spans, 2) if counts(pair[0][0], pair[1][0])}

    def apart(pairs: Iterable[Pair], *, alike: bool = False) -> set[Pair]:
        some = {pair for pair in pairs if not overlap(*pair)}
        return {pair for pair in some if len({speech.string(span) for span in pair}) == 1} if alike else some

    clus: set[Pair] = set().union(*(pairs_of(spans) for spans in groups))
    disc = apart(clus)
    everything = apart(pairs_of(speech.spans()), alike=True)
    gold = apart(pairs_of(fragments), alike=True)
    star, of_two = (set[Pair]().union(*(completed(speech, pair, least) for pair in disc)) for least in (3, 2))
    strings = [[speech.string(span) for span in pair] for pair in disc]
    neds = [Fraction(edits(*pair), max(map(len, pair))) for pair in strings]

    def cover(pairs: Iterable[Pair]) -> set[tuple[int, int]]:
        return {(document, k) for document, first, last in flat(pairs) for k in range(first, last)}

    covered, there = cover(disc), cover(everything)
    part = len(covered) / len(there) if there else None
    matching = ratios(flat(star & everything), flat(star), flat(everything))
    from_two = ratios(flat(of_two & everything), flat(of_two), flat(everything))
    grouping = ratios(flat(clus & gold), flat(clus), flat(gold))
    for values, pair_sets in ((matching, (star, everything)), (grouping, (clus, gold))):
        for key, (left, right) in (("precision", pair_sets), ("recall", pair_sets[::-1])):
            by_type = weighted(left, right, speech.string)
            assert (None if by_type is None else float(by_type)) == values[key]
    types = [{speech.string(span) for span in spans} for spans in (fragments, lexicon)]
    found = [stretch for members in given for stretch, span in members if span]
    edges = [boundaries(speech, some) for some in (found, [word for word in words if speech.span(word)])]
    hits = {item for item in edges[0] & edges[1] if item[0] != "wrong"}
    letter = [{item if item[0] != "wrong" else side for item in items} for side, items in enumerate(edges)]
    return Scores(
        {
            "ned": {"ned": float(sum(neds, Fraction()) / len(neds)) if neds else None, "n_pairs": len(disc)},
            "coverage": {"coverage": part, "n_all": len(there), "n_disc": len(covered)},
            "matching": {**matching, "n_pairs_completed": len(star)},
            "matching_from_two": {**from_two, "n_pairs_completed": len(of_two)},
            "grouping": {**grouping, "n_pairs_clus": len(clus), "n_pairs_goldclus": len(gold)},
            "type": ratios(types[0] & types[1], types[0], types[1]),
            "token": ratios(fragments & lexicon, fragments, lexicon),
            "boundary": ratios(hits, edges[0], edges[1]),
            "boundary_one_wrong": ratios(hits, *letter),
        },
        sum(span is None for members in given for _, span in members),
    )
