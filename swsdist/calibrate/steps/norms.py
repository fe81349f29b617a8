"""q-norm: the scores of a query minus their mean, over their standard deviation.

Mean and deviation are those of all candidates of the query (all examples), which the search found in the
collection: almost all are non-targets. They are computed from exact integer sums, as fractions, so they do not depend
on sharding. If a query's scores do not vary, or it has a single candidate, the score is the difference from the mean.

Also called z-norm per query; Rodriguez-Fuentes et al., "GTTS systems for the SWS task at MediaEval 2013", section 2.3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.calibrate.statistics import CostSums, Key, Tally
from swsdist.calibrate.steps.interface import Floats, Json, Options, Step, TwvParameters, scores_of
from swsdist.kernels.coding import coded


class QNorm(Step[Options]):
    """Needs the statistics `cost-sums`, and no references."""

    name = "q-norm"
    version = 1

    def apply(
        self, table: pa.Table, fitted: Json | None, statistics: Mapping[str, Tally] | None, point: TwvParameters | None
    ) -> Floats:
        """Normalised scores; the order within a query is kept."""
        assert statistics is not None  # the entry demands that this step comes first
        moments_of = moments(statistics[CostSums.name])
        names, code = coded(table["query_id"])
        mean, deviation = np.array([moments_of[name] for name in names]).reshape(-1, 2)[code].T
        return standardised(scores_of(table), mean, deviation)


def moments(sums: Tally) -> dict[str, tuple[float, float]]:
    """Mean and population standard deviation of each query's scores, from `cost-sums`."""
    return {query_id: _moments(rows) for query_id, rows in sums.by_query().items()}


def example_moments(sums: Tally) -> dict[tuple[str, int], tuple[float, float]]:
    """Mean and population standard deviation of the scores of each (query_id, example)."""
    rows_by_example: dict[tuple[str, int], list[tuple[Key, tuple[int, ...]]]] = {}
    for key, row in sums.values.items():
        rows_by_example.setdefault(key[:2], []).append((key, row))
    return {key: _moments(rows) for key, rows in rows_by_example.items()}


def _moments(rows: Iterable[tuple[Key, tuple[int, ...]]]) -> tuple[float, float]:
    count = 0
    # Exact: the deviation of equal scores must be 0, without rounding errors.
    first = second = Fraction(0)
    for (_, _, scale), (candidates, cost_sum, cost_square_sum) in rows:
        count += candidates
        first += Fraction(cost_sum, scale)
        second += Fraction(cost_square_sum, scale * scale)
    mean = first / count
    return -float(mean), math.sqrt(second / count - mean * mean)


def standardised(
    scores: NDArray[np.float64], mean: NDArray[np.float64], deviation: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Scores minus mean, over deviation; the difference if the deviation is 0."""
    return np.asarray((scores - mean) / np.where(deviation > 0, deviation, 1.0))
