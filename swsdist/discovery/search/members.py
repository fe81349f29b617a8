"""Members: begin and end of each stretch of a class.

Matches of a class's centre begin and end at different frames of it. So that members are all the same part of a word, the ends
of the centre, moved to boundaries, are found again in every stretch that matches it, and moved to boundaries there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from swsdist.discovery.search.boundaries import nearest
from swsdist.discovery.search.clusters import Edge, Side


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
