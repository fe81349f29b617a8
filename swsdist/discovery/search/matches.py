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
from swsdist.kernels.query_distances import local_distances
from swsdist.kernels.scales import MAX_DISTANCE


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

    left: tuple[int, int]
    right: tuple[int, int]
    score: int


class Stretches(NamedTuple):
    """A document's frames, prepared for one side, float32 (frames, columns), and which are speech, bool (frames,)."""

    frames: NDArray[np.float32]
    spoken: NDArray[np.bool_]


def match(
    left: Stretches,
    right: Stretches,
    shift: int | None,
    first: tuple[int, int],
    frames: int,
    distance: Distance,
    unit: int,
    options: Matching,
) -> Match | None:
    """The match of two segments; None: it is too short.

    Args:
        left, right: their documents, the left prepared as a query.
        shift: frames by which the left document begins before the right one in their recording; None: of two recordings.
        first: their first frames.
        frames: of a segment.
        unit: the integer that represents a distance of 1 in every stream.
    """
    begin = [max(0, frame - options.reach) for frame in first]
    ends = [frame + frames + options.reach for frame in first]
    rows, columns = slice(begin[0], ends[0]), slice(begin[1], ends[1])
    distances = local_distances(left.frames[rows], right.frames[columns], distance)
    distances[~left.spoken[rows]] = MAX_DISTANCE
    distances[:, ~right.spoken[columns]] = MAX_DISTANCE
    if shift is not None:  # a match overlaps itself nowhere
        times = np.arange(len(distances)) + begin[0], np.arange(distances.shape[1]) + begin[1] + shift
        apart = np.abs(times[0][:, None] - times[1])
        distances[apart < max(frames, options.frames)] = MAX_DISTANCE
    place = np.empty(5, np.int64)
    diagonal = (first[1] - begin[1]) - (first[0] - begin[0])
    align_locally(distances, diagonal, options.band, round(options.level * unit), round(options.gap * unit), place)
    score, *edges = place.tolist()
    if min(edges[1] - edges[0], edges[3] - edges[2]) < options.frames:
        return None
    stretch, opposite = (begin[0] + edges[0], begin[0] + edges[1]), (begin[1] + edges[2], begin[1] + edges[3])
    if shift is not None and stretch[1] > opposite[0] + shift and opposite[1] + shift > stretch[0]:
        return None
    return Match(stretch, opposite, score)


def best(matches: list[Match]) -> list[Match]:
    """Of the matches of two documents those of which no better one shares more than half, on both sides; best first."""
    result: list[Match] = []
    for item in sorted(set(matches), key=lambda item: (-item.score, item.left, item.right)):
        if not any(_same(item.left, better.left) and _same(item.right, better.right) for better in result):
            result.append(item)
    return result


def _same(left: tuple[int, int], right: tuple[int, int]) -> bool:
    common = min(left[1], right[1]) - max(left[0], right[0])
    return 2 * common > min(left[1] - left[0], right[1] - right[0])
