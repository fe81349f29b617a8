"""q-norm: the scores of a query minus their mean, over their standard deviation.

Mean and deviation are those of all candidates of the query (all its examples together), which the search found in the
collection: almost all are non-targets. They are evaluated once from exact integer sums, in fractions, so they do not depend
on how the work was cut. Where a query's scores do not vary, or it has a single candidate, the difference from the mean is kept.

Also called z-norm per query; Rodriguez-Fuentes et al., "GTTS systems for the SWS task at MediaEval 2013", section 2.3.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def moments(statistics: pa.Table, unit: int) -> dict[str, tuple[float, float]]:
    """Mean and population standard deviation of each query's scores.

    Args:
        statistics: QUERY_STATISTICS.
        unit: the integer that stands for a local distance of 1.
    """
    by_query: dict[str, list[dict[str, Any]]] = {}
    for row in statistics.sort_by([("query_id", "ascending"), ("example", "ascending")]).to_pylist():
        by_query.setdefault(row["query_id"], []).append(row)
    return {query_id: _moments(rows, unit) for query_id, rows in by_query.items()}


def example_moments(statistics: pa.Table, unit: int) -> dict[tuple[str, int], tuple[float, float]]:
    """The same of the scores of each (query_id, example)."""
    return {(row["query_id"], row["example"]): _moments([row], unit) for row in statistics.to_pylist()}


def _moments(rows: list[dict[str, Any]], unit: int) -> tuple[float, float]:
    count = sum(row["candidates"] for row in rows)
    # Exact: scores that are all equal must deviate by nothing, not by a last bit.
    first = second = Fraction(0)
    for row in rows:
        scale = row["query_frames"] * unit
        first += Fraction(int(row["cost_sum"]), scale)
        second += Fraction(int(row["cost_square_sum"]), scale * scale)
    mean = first / count
    return -float(mean), math.sqrt(second / count - mean * mean)


def standardised(
    scores: NDArray[np.float64], mean: NDArray[np.float64], deviation: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Scores minus mean, over deviation; the difference where nothing deviates."""
    return np.asarray((scores - mean) / np.where(deviation > 0, deviation, 1.0))


def normalise(detections: pa.Table, statistics: pa.Table, unit: int) -> pa.Table:
    """Detections with normalised scores; their order within a query stays."""
    known = moments(statistics, unit)
    query = detections["query_id"].combine_chunks().dictionary_encode()
    pairs = np.array([known[name] for name in query.dictionary.to_pylist()]).reshape(-1, 2)
    mean, deviation = pairs[query.indices.to_numpy()].T if detections.num_rows else (np.empty(0), np.empty(0))
    scores = standardised(detections["score"].to_numpy(), mean, deviation)
    place = detections.schema.get_field_index("score")
    return detections.set_column(place, detections.schema.field(place), pa.array(scores))
