"""From matches to classes of stretches, their members, and parses of documents.

Classes: a node is a place that sides of matches share: they overlap by most of their length. An edge joins the two
nodes of a match.

- `components`: connected nodes, after edges are cut whose removal separates two groups of two nodes or more (bridges).
- `centres`: the node whose edges have the greatest sum of scores takes its neighbours; then the next among those that
  are left. Every member matches the centre itself, so that a chain of similar pairs does not join different words.

Members: matches of a class's centre begin and end at different frames of it. So that members are all the same part of a
word, the ends of the centre, moved to boundaries, are found again in every stretch that matches it, and moved to
boundaries there.

Parses: a document's speech as a row of tokens. Of the members of classes those with the greatest sum of scores are
chosen that do not overlap (weighted interval scheduling); speech between them, cut where syllables may begin, gives
tokens of its own.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from pydantic import Field

from swsdist.audio.speech import stretches
from swsdist.config.section import Section
from swsdist.core.arrays import Bools
from swsdist.discovery.neighbours import nearest


class Clustering(Section):
    """Settings of clustering."""

    by: Literal["centres", "components"] = Field("centres", description="how nodes are grouped")
    score: float = Field(1.3, description="least score of a match, per square root of its frames, in units of distance")
    overlap: float = Field(0.7, gt=0, le=1, description="least share of both in which sides of matches are one node")
    duplicates: float = Field(
        0.5,
        gt=0,
        le=1,
        description="least share of both in which members of a class are duplicates, of which one stays",
    )
    largest: int | None = Field(None, ge=2, description="a class of so many nodes or more is dropped; default: none is")


#: When a document is: its recording, and the frame of this at which it begins.
Time: TypeAlias = tuple[str, int]


class Side(NamedTuple):
    """A stretch of a document by number: first frame, last + 1."""

    document: int
    first: int
    stop: int


class Edge(NamedTuple):
    """A match: two nodes by number, its score, and its sides, that of the left node first."""

    left: int
    right: int
    score: int
    sides: tuple[Side, Side]


def nodes_of(
    matches: Sequence[tuple[Side, Side, int]], overlap: float, times: Sequence[Time]
) -> tuple[list[Side], list[Edge]]:
    """Nodes and edges. A side joins the first node of its recording that it shares `overlap` with, and is then given in the
    document of the node, beyond its ends perhaps; matches come best first.

    Args:
        matches: both sides and the score; scores descend.
        times: of each document.
    """
    nodes: list[Side] = []
    starts: dict[str, list[tuple[int, int]]] = defaultdict(list)  # of a recording: first frame and number, ascending
    edges: dict[tuple[int, int], Edge] = {}

    def node(side: Side) -> tuple[int, Side]:
        recording, origin = times[side.document]
        length, others, time = side.stop - side.first, starts[recording], side.first + origin
        # The longer is at most length / overlap, and all but its share `overlap` may lie before the other's first frame.
        reach = int(length * (1 - overlap) / overlap) + 1
        begin, end = bisect_left(others, (time - reach,)), bisect_left(others, (time + reach + 1,))
        for number in sorted(number for _, number in others[begin:end]):
            there = nodes[number].document
            first = time - times[there][1]
            placed = Side(there, first, first + length)
            if _share(placed, nodes[number], overlap):
                return number, placed
        nodes.append(side)
        insort(others, (time, len(nodes) - 1))
        return len(nodes) - 1, side

    for left, right, score in matches:
        (first, side), (second, other) = sorted((node(left), node(right)))
        if first != second:
            edges.setdefault((first, second), Edge(first, second, score, (side, other)))
    return nodes, list(edges.values())


def distinct(places: Sequence[Side], duplicates: float, times: Sequence[Time]) -> list[int]:
    """Numbers of the places of a class with which no earlier one that stays shares `duplicates`, in any document of a
    recording.
    """
    kept: dict[str, list[Side]] = defaultdict(list)
    result = []
    for number, place in enumerate(places):
        recording, origin = times[place.document]
        time = Side(0, place.first + origin, place.stop + origin)
        if not any(_share(time, other, duplicates) for other in kept[recording]):
            kept[recording].append(time)
            result.append(number)
    return result


def _share(side: Side, place: Side, overlap: float) -> bool:
    """Whether two stretches of a document, or of a recording, share so much of the longer."""
    common = min(side.stop, place.stop) - max(side.first, place.first)
    return common >= overlap * max(side.stop - side.first, place.stop - place.first)


def centres(nodes: int, edges: Sequence[Edge]) -> list[list[int]]:
    """Classes by centres, each with its centre first, the others by score."""
    neighbours: dict[int, dict[int, int]] = defaultdict(dict)
    for left, right, score, _ in edges:
        neighbours[left][right] = neighbours[right][left] = score
    total = {node: sum(scores.values()) for node, scores in neighbours.items()}
    free = set(total)
    result = []
    for node in sorted(total, key=lambda node: (-total[node], node)):
        if node in free:
            free.discard(node)
            others = [other for other in neighbours[node] if other in free]
            others.sort(key=lambda other: (-neighbours[node][other], other))
            if others:
                free.difference_update(others)
                result.append([node, *others])
    return result


def components(nodes: int, edges: Sequence[Edge]) -> list[list[int]]:
    """Connected classes after bridges are cut, members ascending."""
    cut = bridges(nodes, edges)
    adjacent: dict[int, list[int]] = defaultdict(list)
    for k, (left, right, *_) in enumerate(edges):
        if k not in cut:
            adjacent[left].append(right)
            adjacent[right].append(left)
    seen: set[int] = set()
    result = []
    for node in range(nodes):
        if node in seen:
            continue
        group, stack = [], [node]
        seen.add(node)
        while stack:
            group.append(stack.pop())
            for other in adjacent[group[-1]]:
                if other not in seen:
                    seen.add(other)
                    stack.append(other)
        if len(group) > 1:
            result.append(sorted(group))
    return result


def bridges(nodes: int, edges: Sequence[Edge]) -> set[int]:
    """Edges without which a component falls into two of two nodes or more.

    Depth first (Tarjan 1974, "A note on finding the bridges of a graph"), without recursion.
    """
    adjacent: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for k, (left, right, *_) in enumerate(edges):
        adjacent[left].append((right, k))
        adjacent[right].append((left, k))
    entered: dict[int, int] = {}
    low: dict[int, int] = {}
    below: dict[int, int] = {}  # nodes under each, itself included
    result: set[int] = set()
    for root in range(nodes):
        if root in entered or root not in adjacent:
            continue
        cuts: list[tuple[int, int, int]] = []  # edge, nodes below it
        stack = [(root, -1, iter(adjacent[root]))]
        entered[root] = low[root] = len(entered)
        below[root] = 1
        while stack:
            node, by, rest = stack[-1]
            step = next(rest, None)
            if step is None:
                stack.pop()
                if stack:
                    above = stack[-1][0]
                    low[above] = min(low[above], low[node])
                    below[above] += below[node]
                    if low[node] > entered[above]:
                        cuts.append((by, below[node], 0))
                continue
            other, edge = step
            if edge == by:
                continue
            if other in entered:
                low[node] = min(low[node], entered[other])
            else:
                entered[other] = low[other] = len(entered)
                below[other] = 1
                stack.append((other, edge, iter(adjacent[other])))
        result |= {edge for edge, under, _ in cuts if 2 <= under <= below[root] - 2}
    return result


def places(
    group: Sequence[int],
    nodes: Sequence[Side],
    edges: Mapping[tuple[int, int], Edge],
    boundaries: Sequence[Sequence[int]],
    frames: Sequence[int],
    reach: int,
) -> list[Side]:
    """The places of the members of a class, in their order; two members may have one.

    A member that does not match the first keeps its own ends (so most of a class by components).

    Args:
        group: nodes of the class by number, the centre first (of components, the first node).
        nodes: all.
        edges: by their two nodes.
        boundaries: of each document, ascending.
        frames: of each document.
        reach: as in `Boundaries`.
    """
    centre = group[0]
    result = [moved(nodes[centre], boundaries, reach)]
    for node in group[1:]:
        edge = edges.get((min(centre, node), max(centre, node)))
        place = nodes[node]
        if edge is not None:
            sides = edge.sides if centre < node else edge.sides[::-1]
            place = projected(result[0], *sides, frames[place.document])
        result.append(moved(place, boundaries, reach))
    return result


def moved(place: Side, boundaries: Sequence[Sequence[int]], reach: int) -> Side:
    """A place with its ends at the nearest boundaries within reach; unchanged if nothing would be left of it."""
    first, stop = (nearest(boundaries[place.document], frame, reach) for frame in place[1:])
    return Side(place.document, first, stop) if first < stop else place


def projected(place: Side, side: Side, other: Side, frames: int) -> Side:
    """Where the other side of a match has a place: its ends are as far from those of the side, in proportion to the lengths.

    Args:
        place: near `side`.
        side, other: of the match.
        frames: of the document of `other`.
    """
    length, opposite = side.stop - side.first, other.stop - other.first
    first, stop = (
        end + (2 * (placed - begin) * opposite + length) // (2 * length)
        for placed, begin, end in zip(place[1:], side[1:], other[1:], strict=True)
    )
    first, stop = max(0, first), min(frames, stop)
    return Side(other.document, *((first, stop) if first < stop else (max(0, other.first), min(frames, other.stop))))


class Token(NamedTuple):
    """A stretch of a document: first frame, last + 1; its class, -1: none; and its score."""

    first: int
    stop: int
    group: int
    score: float


def choose(tokens: Sequence[Token]) -> list[Token]:
    """Tokens that do not overlap, with the greatest sum of scores; of equal sums the one with the later tokens left out."""
    order = sorted(tokens, key=lambda token: (token.stop, token.first, token.group))
    stops = [token.stop for token in order]
    best = [0.0]
    before: list[int] = []
    for k, token in enumerate(order):
        before.append(bisect_right(stops, token.first, 0, k))
        best.append(max(best[-1], best[before[-1]] + token.score))
    result, k = [], len(order)
    while k:
        if best[k] > best[k - 1]:
            result.append(order[k - 1])
            k = before[k - 1]
        else:
            k -= 1
    return result[::-1]


def with_rest(tokens: Sequence[Token], spoken: Bools, boundaries: Sequence[int], least: int) -> list[Token]:
    """The tokens, and speech that none covers, cut at boundaries; no piece has fewer than `least` frames.

    Args:
        tokens: none overlap.
        spoken: bool (frames,).
        boundaries: ascending.
    """
    free = spoken.copy()
    for token in tokens:
        free[token.first : token.stop] = False
    rest = []
    for first, stop in stretches(free):
        for frame in boundaries[bisect_left(boundaries, first + least) : bisect_right(boundaries, stop - least)]:
            if frame - first >= least:
                rest.append(Token(first, frame, -1, 0.0))
                first = frame
        if stop - first >= least:
            rest.append(Token(first, stop, -1, 0.0))
    return sorted([*tokens, *rest])
