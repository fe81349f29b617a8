"""What the steps of a search for recurring stretches mean, written slowly and plainly.

Python integers and lists only; nothing is sorted, packed or skipped.
"""

from collections.abc import Sequence
from itertools import combinations, pairwise


def starts(spoken: Sequence[bool], frames: int, hop: int, share: float) -> list[int]:
    """First frames of the segments of which enough is speech."""
    return [
        first
        for first in range(0, len(spoken), hop)
        if first + frames <= len(spoken) and sum(spoken[first : first + frames]) >= share * frames
    ]


def signature(segment: Sequence[Sequence[int]], signs: Sequence[Sequence[int]], parts: int) -> list[bool]:
    """For each direction: whether the vector of a segment of frames lies on its side.

    `signs` are of each number of the vector, part by part, for each direction.
    """
    count, columns = len(segment), len(segment[0])
    edges = [part * count // parts for part in range(parts + 1)]
    vector = [
        sum(frame[column] for frame in segment[begin:end])
        for begin, end in pairwise(edges)
        for column in range(columns)
    ]
    return [sum(value * row[bit] for value, row in zip(vector, signs, strict=True)) > 0 for bit in range(len(signs[0]))]


Pair = tuple[int, int, int]


def all_pairs(places: Sequence[tuple[int, int, bytes]], frames: int, most: int) -> list[Pair]:
    """All pairs of segments (document, first frame, signature) that do not overlap and differ in at most so many bits."""
    result = []
    for left, right in combinations(range(len(places)), 2):
        (document, first, bits), (another, start, others) = places[left], places[right]
        differ = (int.from_bytes(bits, "big") ^ int.from_bytes(others, "big")).bit_count()
        if differ <= most and (document != another or abs(first - start) >= frames):
            result.append((left, right, differ))
    return result


def most_alike(pairs: Sequence[Pair], kept: int) -> list[Pair]:
    """The most alike pairs of each left segment; of equal ones those with the lesser right segment."""
    result: list[Pair] = []
    for segment in sorted({left for left, *_ in pairs}):
        ranked = sorted((unlike, right) for left, right, unlike in pairs if left == segment)
        result += [(segment, right, unlike) for unlike, right in ranked[:kept]]
    return result


def alike(places: Sequence[tuple[int, int, bytes]], pair: Pair, hop: int, half: int, most: int) -> int:
    """How many pairs of a diagonal, up to `half` hops before and after a pair, differ in at most so many bits."""
    signs = {(document, first): int.from_bytes(bits, "big") for document, first, bits in places}
    (document, first, _), (another, start, _) = places[pair[0]], places[pair[1]]
    places_of = (((document, first + k * hop), (another, start + k * hop)) for k in range(-half, half + 1))
    both = [pair for pair in places_of if set(pair) <= signs.keys()]
    return sum((signs[one] ^ signs[other]).bit_count() <= most for one, other in both)


def lines(
    places: Sequence[tuple[int, int, bytes]], pairs: Sequence[Pair], hop: int, width: int, gap: int, points: int
) -> list[Pair]:
    """The middle pair of each line: of two documents and one cell of diagonals, none further than `gap` from the next."""
    cells: dict[tuple[int, int, int], list[tuple[int, int, Pair]]] = {}
    for pair in pairs:
        (document, first, _), (another, start, _) = places[pair[0]], places[pair[1]]
        cell = document, another, (start - first) // (width * hop)
        cells.setdefault(cell, []).append((first, pair[1], pair))
    result = []
    for some in cells.values():
        line: list[Pair] = []
        before = -1
        for first, _, pair in [*sorted(some), (1 << 40, 0, (0, 0, 0))]:
            if line and first - before > gap:
                if len(line) >= points:
                    result.append(line[len(line) // 2])
                line = []
            line.append(pair)
            before = first
    return sorted(result)


Link = tuple[int, int]


def groups(nodes: int, links: Sequence[Link]) -> list[set[int]]:
    """Connected nodes, those without a link too."""
    result = [{node} for node in range(nodes)]
    for left, right in links:
        joined = [group for group in result if left in group or right in group]
        result = [group for group in result if group not in joined] + [set().union(*joined)]
    return result


def bridges(nodes: int, links: Sequence[Link]) -> set[int]:
    """Links each of which alone parts a group into two of two nodes or more."""
    result = set()
    for k in range(len(links)):
        left, right = links[k]
        without = groups(nodes, [*links[:k], *links[k + 1 :]])
        (near_side,) = (group for group in without if left in group)
        (far_side,) = (group for group in without if right in group)
        if near_side != far_side and min(len(near_side), len(far_side)) >= 2:
            result.add(k)
    return result


#: Document, first frame and last + 1.
Place = tuple[int, int, int]


def nodes(matches: Sequence[tuple[Place, Place]], overlap: float) -> tuple[list[Place], list[Link]]:
    """Places that sides share, and which are linked: each side is compared with every place before it."""
    known: list[Place] = []
    links: list[Link] = []
    for match in matches:
        ends = []
        for document, first, stop in match:
            sharing = [
                k
                for k, (other, begin, end) in enumerate(known)
                if other == document and min(stop, end) - max(first, begin) >= overlap * max(stop - first, end - begin)
            ]
            if not sharing:
                known.append((document, first, stop))
            ends.append(sharing[0] if sharing else len(known) - 1)
        link = min(ends), max(ends)
        if link[0] < link[1] and link not in links:
            links.append(link)
    return known, links


def minima(values: Sequence[int], depth: int) -> list[int]:
    """Of each valley the first of its lowest values.

    A valley lies between a value higher than its lowest by at least `depth` and the next such value after it; a new one begins
    when values have fallen by `depth` from the highest since.
    """
    result: list[int] = []
    begin = 0
    while True:
        fallen = next((k for k in range(begin, len(values)) if max(values[begin : k + 1]) - values[k] >= depth), None)
        if fallen is None:
            return result
        risen = next((k for k in range(fallen, len(values)) if values[k] - min(values[fallen : k + 1]) >= depth), None)
        if risen is None:
            return result
        result.append(min(range(fallen, risen), key=lambda k: values[k]))
        begin = risen


#: First and last + 1, and a score.
Scored = tuple[int, int, int]


def best_sum(tokens: Sequence[Scored]) -> int:
    """The greatest sum of scores of tokens that do not overlap."""
    sums = [0]
    for count in range(1, len(tokens) + 1):
        for chosen in combinations(sorted(tokens), count):
            if all(before[1] <= after[0] for before, after in pairwise(chosen)):
                sums.append(sum(score for *_, score in chosen))
    return max(sums)
