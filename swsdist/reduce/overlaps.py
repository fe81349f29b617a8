"""Overlapping candidates of a query in a document become one detection.

Both rules form the same groups: the best candidate of a document is a place, with all candidates that overlap it by
more than a part of the shorter of the two. The best remaining candidate is the next place, and so on. Overlap is
counted in ticks, since seconds would need rounding. A document is in one file only, so places do not depend on the
partition of the work.

**best**: the place's best candidate is kept unchanged.

**sum**: it is kept, with the sum of the posteriors of all candidates of the place, at most 1. Posteriors are taken to the
nearest multiple of 2^-40 and added as integers, so the sum is exact in any order: cost = -(sum of round(p 2^40)), scale = 2^40.
The sum is for mutually exclusive hypotheses, such as the paths of a lattice.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from swsdist.calibrate.statistics import check_posteriors
from swsdist.reduce.spans import Spans

#: How candidates of one place are merged.
Merge = Literal["best", "sum"]

#: A posterior of 1 is this many units.
POSTERIOR = 1 << 40


def claim_places(spans: Spans, overlap: float) -> tuple[Spans, NDArray[np.int64], NDArray[np.int64]]:
    """For each candidate, the candidate of the same query and document that suppresses it.

    Args:
        spans: all spans of each of their documents.
        overlap: see `swsdist.reduce.detections.Bucket`.

    Returns:
        The spans, grouped by query and document; their rows, best first within each group; and for each position in that
        order the position of the span that suppresses it, or its own position if it is kept.
    """
    if spans.rows == 0:
        return spans, np.empty(0, np.int64), np.empty(0, np.int64)
    starts = _starts(spans)
    # Spans of one example arrive grouped; then there are as many runs as keys.
    if len(starts) > 1 and not _stand_together(spans, starts):
        spans = spans.take(np.lexsort((spans.channel, spans.document, spans.query)))
        starts = _starts(spans)
    from swsdist.kernels.suppression import claim  # loads numba: planning does without

    order, owner = np.empty(spans.rows, np.int64), np.empty(spans.rows, np.int64)
    bounds = np.append(starts, spans.rows)
    claim(bounds, spans.score, spans.first, spans.last, spans.example, overlap, order, owner)
    return spans, order, owner


def _starts(spans: Spans) -> NDArray[np.int64]:
    """The first row of each run of one query, document and channel."""
    new = np.ones(spans.rows, bool)
    new[1:] = spans.query[1:] != spans.query[:-1]
    for column in (spans.document, spans.channel):
        new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(new)


def _stand_together(spans: Spans, starts: NDArray[np.int64]) -> bool:
    """Whether no query, document and channel has two runs."""
    documents, channels = int(spans.document.max()) + 1, int(spans.channel.max()) + 1
    keys = (spans.query[starts] * documents + spans.document[starts]) * channels + spans.channel[starts]
    keys.sort()
    return bool((keys[1:] != keys[:-1]).all())


def merge_overlaps(spans: Spans, overlap: float, merge: Merge) -> Spans:
    """One span per place.

    Raises:
        DataError: `sum`, and a score is not in [0, 1].
    """
    if merge == "sum":
        check_posteriors(spans.cost, spans.scale)
    spans, order, owner = claim_places(spans, overlap)
    kept_rows = np.flatnonzero(owner == np.arange(spans.rows))
    kept = spans.take(order[kept_rows])
    if merge == "best":
        return kept
    total = np.zeros(spans.rows, np.int64)
    # Only 2^23 candidates at one place would overflow 64 bits.
    np.add.at(total, owner, np.rint(spans.score[order] * POSTERIOR).astype(np.int64))
    cost = -np.minimum(total[kept_rows], POSTERIOR)
    scale = np.full(kept.rows, POSTERIOR)
    return kept._replace(cost=cost, scale=scale, score=-cost.astype(np.float64) / scale)
