"""Matches: two stretches that are alike from their first frames to their last.

Around two segments with like signatures the best local alignment of the frames' distances says from where to where they are
alike (`swsdist.kernels.local_alignment`). Of matches of the same places the best stays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from swsdist.config.section import Section
from swsdist.kernels.distances.interface import Distance
from swsdist.kernels.local_alignment import align_locally
from swsdist.kernels.scales import MAX_DISTANCE
from swsdist.methods.dtw.query_distances import local_distances


class Matching(Section):
    """How two stretches are aligned."""

    level: float = Field(
        0.6,
        gt=0,
        description="local distance that neither adds to a match nor takes from it; 1: of frames without likeness",
    )
    gap: float = Field(0.25, ge=0, description="cost of a frame of one stretch without one of the other")
    band: int = Field(10, ge=0, description="frames by which a match may leave the diagonal of its segments")
    reach: int = Field(40, ge=0, description="frames before and after its segments in which a match may begin and end")
    frames: int = Field(30, ge=1, description="frames of the shortest match, on both sides")


class Match(NamedTuple):
    """Two stretches, first and last + 1 each, and the score: the sum of what frames are closer than the level."""

    one: tuple[int, int]
    other: tuple[int, int]
    score: int


class Stretches(NamedTuple):
    """A document's prepared frames, float32 (frames, columns), and which are speech, bool (frames,)."""

    frames: NDArray[np.float32]
    spoken: NDArray[np.bool_]


def match(
    one: Stretches,
    other: Stretches,
    first: tuple[int, int],
    frames: int,
    distance: Distance,
    unit: int,
    options: Matching,
) -> Match | None:
    """The match of two segments; None: it is too short.

    Args:
        one, other: their documents.
        first: their first frames.
        frames: of a segment.
        unit: the integer that represents a distance of 1 in every stream.
    """
    begin = [max(0, place - options.reach) for place in first]
    ends = [place + frames + options.reach for place in first]
    parts = [
        Stretches(whole.frames[a:b], whole.spoken[a:b]) for whole, a, b in zip((one, other), begin, ends, strict=True)
    ]
    distances = local_distances(parts[0].frames, parts[1].frames, distance)
    distances[~parts[0].spoken] = MAX_DISTANCE
    distances[:, ~parts[1].spoken] = MAX_DISTANCE
    if one is other:  # a match overlaps itself nowhere
        apart = np.abs(
            np.arange(begin[0], begin[0] + len(distances))[:, None] - np.arange(begin[1], begin[1] + distances.shape[1])
        )
        distances[apart < frames] = MAX_DISTANCE
    found = np.empty(5, np.int64)
    diagonal = (first[1] - begin[1]) - (first[0] - begin[0])
    align_locally(distances, diagonal, options.band, round(options.level * unit), round(options.gap * unit), found)
    score, *edges = found.tolist()
    if min(edges[1] - edges[0], edges[3] - edges[2]) < options.frames:
        return None
    stretch, opposite = (begin[0] + edges[0], begin[0] + edges[1]), (begin[1] + edges[2], begin[1] + edges[3])
    if one is other and stretch[1] > opposite[0] and opposite[1] > stretch[0]:
        return None
    return Match(stretch, opposite, score)


def best(matches: list[Match]) -> list[Match]:
    """Of the matches of two documents those of which no better one shares more than half, on both sides; best first."""
    result: list[Match] = []
    for item in sorted(set(matches), key=lambda item: (-item.score, item.one, item.other)):
        if not any(_same(item.one, other.one) and _same(item.other, other.other) for other in result):
            result.append(item)
    return result


def _same(one: tuple[int, int], other: tuple[int, int]) -> bool:
    common = min(one[1], other[1]) - max(one[0], other[0])
    return 2 * common > min(one[1] - one[0], other[1] - other[0])
