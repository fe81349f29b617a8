"""One template of several spoken examples: DTW barycentre averaging.

Petitjean, Ketterlin and Gancarski 2011, "A global averaging method for dynamic time warping, with applications to
clustering", section 3: a first average is aligned with each example, each of its frames becomes the mean of all frames that
met it, and so again. The first average is the medoid, the example of least summed cost to the others; the template has its
length.

What is averaged are normalised features, each example by its own speaker's statistics: before that, the mean would be that
of speakers and channels as well. What is aligned are the same frames in fixed point, by the distance of the search, so a
path is that of integers; means are float64 with + - / in a fixed order. The bytes are the same on any machine.

Nothing depends on how examples are numbered or ordered: they are put in the order of their frames' number and values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from swsdist.kernels.alignment import align, average
from swsdist.kernels.distances.interface import Distance, Side
from swsdist.methods.dtw.query_distances import local_distances

#: Times that examples are aligned with the average.
ROUNDS = 3

Frames = NDArray[np.float64]


class _Path(NamedTuple):
    """How two sequences are aligned."""

    cost: int
    path: NDArray[np.int32]
    places: int


def template(examples: Sequence[Frames], distance: Distance, where: str | None = None) -> NDArray[np.float32]:
    """The average of examples, ready to be searched like one.

    Args:
        examples: float64 (frames, dimension) each, normalised; at least one, in any order, of at most
            `example_frames.LONGEST_AVERAGED` frames where they are several.
        distance: of the search.
        where: whose they are, for errors.

    Returns:
        float32 (frames, columns), prepared as a query. Examples that are all the same are their own average.

    Raises:
        DataError: the distance is one between posteriors, and these are not.
    """
    ordered = sorted(map(np.ascontiguousarray, examples), key=lambda frames: (len(frames), frames.tobytes()))
    if all(np.array_equal(ordered[0], other) for other in ordered[1:]):
        return _fixed(ordered[0], distance, "query", where)
    # Whatever the distance, an example is to a template what a document is to a query.
    fixed = [_fixed(frames, distance, "document", where) for frames in ordered]
    mean = ordered[_medoid(ordered, fixed, distance, where)]
    for _ in range(ROUNDS):
        mean = _averaged(mean, ordered, fixed, distance, where)
    return _fixed(mean, distance, "query", where)


def _fixed(frames: Frames, distance: Distance, side: Side, where: str | None) -> NDArray[np.float32]:
    return distance.fill(frames.copy(), side, where).frames  # a distance may use up what it is given


def _medoid(
    examples: Sequence[Frames], fixed: Sequence[NDArray[np.float32]], distance: Distance, where: str | None
) -> int:
    """The example whose paths to all others cost least; the first of equals."""
    costs = []
    for k, frames in enumerate(examples):
        query = _fixed(frames, distance, "query", where)
        costs.append(sum(_aligned(query, other, distance).cost for j, other in enumerate(fixed) if j != k))
    return costs.index(min(costs))


def _averaged(
    mean: Frames,
    examples: Sequence[Frames],
    fixed: Sequence[NDArray[np.float32]],
    distance: Distance,
    where: str | None,
) -> Frames:
    """Each frame of an average becomes the mean of the examples' frames that meet it."""
    query = _fixed(mean, distance, "query", where)
    better, counts = np.zeros(mean.shape), np.zeros(len(mean), np.int64)
    for frames, document in zip(examples, fixed, strict=True):
        found = _aligned(query, document, distance)
        average(found.path, found.places, frames, counts, better)
    return better


def _aligned(query: NDArray[np.float32], document: NDArray[np.float32], distance: Distance) -> _Path:
    distances = local_distances(query, document, distance)
    cost = np.empty(distances.shape, np.int32)
    path = np.empty((sum(distances.shape) - 1, 2), np.int32)
    places = align(distances, cost, path)
    return _Path(int(cost[-1, -1]), path, places)
