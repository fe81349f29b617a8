"""Several candidates of a query at one place in a document make one detection.

Both rules agree on what belongs together: the best candidate of a document is a place, and all that overlap it by more
than a part of the shorter of the two belong to it, and to no other place; then the best of those that are left, and so on.
Overlap is counted in ticks, for in seconds rounding would decide whether half is more than half. A document
lies whole in one file, so places do not depend on how the work was cut.

**best**: the place's best candidate stays, as it is.

**sum**: it stays, and its posterior is the sum of those of all candidates of the place, at most 1. Posteriors are taken to the
nearest multiple of 2^-40 and added as integers, so the sum is exact in any order: cost = -(sum of round(p 2^40)), scale = 2^40.
That is for hypotheses of which at most one is true, as the paths of a lattice are.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from swsdist.calibrate.statistics import check_posteriors
from swsdist.reduce.spans import Names, Spans, in_order

#: How candidates of one place are merged.
Merge = Literal["best", "sum"]

#: A posterior of 1 is this many units.
POSTERIOR = 1 << 40


def claimed(spans: Spans, names: Names, overlap: float) -> tuple[Spans, NDArray[np.int64]]:
    """Which candidate of the same query and document takes the place of which.

    Args:
        spans: all those of each of their documents.
        names: of their codes.
        overlap: see `swsdist.reduce.detections.reduce_bucket`.

    Returns:
        The spans in total order, and of each row the row that takes its place; its own where it stays.
    """
    spans = in_order(spans, names)
    rows = spans.rows
    if rows == 0:
        return spans, np.empty(0, np.int64)
    order = np.lexsort((np.arange(rows), spans.channel, spans.document, spans.query))
    new = np.ones(rows, bool)
    new[1:] = False
    for column in (spans.query[order], spans.document[order], spans.channel[order]):
        new[1:] |= column[1:] != column[:-1]
    place = np.empty(rows, np.int64)
    from swsdist.kernels.suppression import claim  # loads numba: planning does without

    bounds = np.append(np.flatnonzero(new), rows)
    claim(bounds, spans.first[order], spans.last[order] + 1, overlap, place)
    owner = np.empty(rows, np.int64)
    owner[order] = order[place]
    return spans, owner


def merged(spans: Spans, names: Names, overlap: float, merge: Merge) -> Spans:
    """One span a place, in total order but for scores that a sum has raised.

    Raises:
        DataError: `sum`, and a score is not in [0, 1].
    """
    if merge == "sum":
        check_posteriors(spans.cost, spans.scale)
    spans, owner = claimed(spans, names, overlap)
    here = np.flatnonzero(owner == np.arange(spans.rows))
    kept = spans.take(here)
    if merge == "best":
        return kept
    total = np.zeros(spans.rows, np.int64)
    # 2^23 candidates at one place would be needed to leave 64 bits.
    np.add.at(total, owner, np.rint(spans.score * POSTERIOR).astype(np.int64))
    cost = -np.minimum(total[here], POSTERIOR)
    scale = np.full(kept.rows, POSTERIOR)
    return kept._replace(cost=cost, scale=scale, score=-cost.astype(np.float64) / scale)
