"""A template from several spoken examples: DTW barycentre averaging.

An initial average is aligned with each example, each of its frames becomes the mean of all frames aligned with it, and
this is repeated. The initial average is the medoid, the example of least summed cost to the others; the template has
its length.

Averages are taken over features normalised by each example's speaker; otherwise they would mix speakers and channels.
Alignment uses the same frames in fixed point and the distance of the search, so paths follow from integers; means are
float64 with + - / in a fixed order. The bytes are the same on any machine. The result does not depend on the numbers or
order of examples, which are sorted by length and values.

Source: Petitjean, Ketterlin and Gancarski 2011, "A global averaging method for dynamic time warping, with applications
to clustering", section 3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from swsdist.core.arrays import Floats, Singles
from swsdist.kernels.alignment import aligned, average
from swsdist.kernels.distances.interface import Distance, Side
from swsdist.kernels.products import local_distances

#: Number of alignments of the examples with the average.
ROUNDS = 3

Frames = Floats


def template(examples: Sequence[Frames], distance: Distance, where: str | None = None) -> Singles:
    """The average of examples, ready for the search.

    Args:
        examples: float64 (frames, dimension) each, normalised; at least one, in any order, each of at most
            `methods.query.extraction.LONGEST_AVERAGED` frames if there are several.
        distance: of the search.
        where: the source of the examples, for errors.

    Returns:
        float32 (frames, columns), prepared as a query. Identical examples are their own average.

    Raises:
        DataError: the distance compares posteriors, and these are none.
    """
    ordered = sorted(map(np.ascontiguousarray, examples), key=lambda frames: (len(frames), frames.tobytes()))
    if all(np.array_equal(ordered[0], other) for other in ordered[1:]):
        return _fixed(ordered[0], distance, "query", where)
    # An example is to a template as a document is to a query.
    fixed = [_fixed(frames, distance, "document", where) for frames in ordered]
    mean = ordered[_medoid(ordered, fixed, distance, where)]
    for _ in range(ROUNDS):
        mean = _averaged(mean, ordered, fixed, distance, where)
    return _fixed(mean, distance, "query", where)


def _fixed(frames: Frames, distance: Distance, side: Side, where: str | None) -> Singles:
    return distance.fill(frames.copy(), side, where).frames  # a distance may overwrite its input


def _medoid(examples: Sequence[Frames], fixed: Sequence[Singles], distance: Distance, where: str | None) -> int:
    """Index of the example whose paths to all others cost least; the first one wins ties."""
    costs = []
    for k, frames in enumerate(examples):
        query = _fixed(frames, distance, "query", where)
        costs.append(
            sum(aligned(local_distances(query, other, distance)).cost for j, other in enumerate(fixed) if j != k)
        )
    return costs.index(min(costs))


def _averaged(
    mean: Frames,
    examples: Sequence[Frames],
    fixed: Sequence[Singles],
    distance: Distance,
    where: str | None,
) -> Frames:
    """Replace each frame of an average by the mean of the examples' frames aligned with it."""
    query = _fixed(mean, distance, "query", where)
    better, counts = np.zeros(mean.shape), np.zeros(len(mean), np.int64)
    for frames, document in zip(examples, fixed, strict=True):
        alignment = aligned(local_distances(query, document, distance))
        average(alignment.path, alignment.places, frames, counts, better)
    return better
