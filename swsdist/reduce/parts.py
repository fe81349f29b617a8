"""Parts of queries (`swsdist.methods.query.parts`) in one list: the best score of any part.

1. The score of a candidate is q-normed by the candidates of the same part of the same example, since short parts match better
   anywhere.
2. It is multiplied by the root of the part's share of the query's frames: a mean of n distances varies as 1 / sqrt(n), so
   frames that are missing count as average ones.
3. The best candidate in a document, of any part and example, is a place, and candidates that overlap it belong to it. The next
   stage q-norms the scores of places again, with statistics over all of them.

Scores are multiples of 1 / `fineness`, so the statistics are exact sums of integers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdist.calibrate.statistics import Tally
from swsdist.calibrate.steps.q_norm import example_moments, standardised
from swsdist.core.types import DETECTIONS
from swsdist.methods.query.parts import PARTS
from swsdist.reduce.overlaps import merge_overlaps
from swsdist.reduce.spans import Names, Spans, scored_places

#: By query and part of an example: mean and deviation of the scores, and the root of its share of the frames.
Scaling = Mapping[tuple[str, int], tuple[float, float, float]]


def scaling_of(sums: Tally) -> Scaling:
    """What makes the scores of parts comparable.

    Args:
        sums: of `cost-sums`. The scale of a part is its frames times a number that is the same for all.
    """
    scales = {key[:2]: key[2] for key in sums.values}
    most: dict[tuple[str, int], int] = {}
    for (query_id, part), scale in scales.items():
        example = query_id, part // PARTS
        most[example] = max(most.get(example, 0), scale)
    return {
        key: (*moments, math.sqrt(scales[key] / most[key[0], key[1] // PARTS]))
        for key, moments in example_moments(sums).items()
    }


def part_places(spans: Spans, names: Names, scaling: Scaling, overlap: float, fineness: int) -> tuple[Spans, pa.Table]:
    """A file's places with their scores; and these as statistics take candidates.

    Args:
        spans: all candidates.
        names: of their codes.
        scaling: of each part.
        overlap, fineness: see `swsdist.reduce.examples.reduce_examples`.
    """
    stride = int(spans.example.max(initial=0)) + 1
    keys, row = np.unique(spans.query * stride + spans.example, return_inverse=True)
    each = [scaling[names.query_ids[key // stride], key % stride] for key in keys.tolist()]
    mean, deviation, root = np.array(each).reshape(-1, 3)[row].T
    score = np.rint(standardised(spans.score, mean, deviation) * root * fineness) / fineness
    places = merge_overlaps(spans._replace(score=score), overlap, "best")
    cost = -np.rint(places.score * fineness).astype(np.int64)
    return places, scored_places(places, names, cost, np.full(places.rows, fineness))


def with_numbers(detections: pa.Table) -> pa.Table:
    """DETECTIONS with the numbers of examples instead of those of their parts."""
    place = DETECTIONS.get_field_index("example")
    number = pc.divide(detections["example"], pa.scalar(PARTS, pa.int32()))
    return detections.set_column(place, DETECTIONS.field(place), number)
