"""q-norm: the scores of a query minus their mean, over their standard deviation.

Mean and deviation are those of all candidates of the query (all examples), which the search found in the
collection: almost all are non-targets. They are computed from exact integer sums, as fractions, so they do not depend
on sharding. If a query's scores do not vary, or it has a single candidate, the score is the difference from the mean.

Also called z-norm per query; Rodriguez-Fuentes et al., "GTTS systems for the SWS task at MediaEval 2013", section 2.3.

m-norm: the scores of a query minus the mode of its candidates' scores, over their deviation from the mode.

The mean of q-norm is biased by a long tail of poor scores, and by the true occurrences of a frequent query. The mode is
not: most candidates, nearly all non-targets, lie around it.

It is computed from a histogram of all candidates of the query (all examples) in bins of 1 / 1024: of all windows of half a
standard deviation the fullest, and of equal ones the middle between the first and the last. The deviation is the
root of the mean square of differences from the mode, over the candidates at or above it (`better`: the side on which decisions
are made), below it (`worse`) or all. If the deviation is 0, the score is the difference from the mode.

Source: Szöke, Burget, Grézl, Černocký and Ondel 2014, "Calibration and fusion of query-by-example systems - BUT SWS 2013"
(ICASSP), who put the peak of a query's distribution in the place of its mean; window, bins, and which side the deviation is
of are this project's choices (docs/concepts/calibration-steps.md has what they are worth).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from swsdist.calibrate.statistics import BINS, CostSums, Key, ScoreHistogram, Tally, histograms
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


Ints = NDArray[np.int64]


class MNormOptions(Options):
    """The candidates that the deviation is computed from."""

    deviation: Literal["better", "worse", "all"] = Field(
        "better", description="of the candidates above the mode, below it, or all"
    )


class MNorm(Step[MNormOptions]):
    """Needs the statistic `score-histogram`, and no references."""

    name = "m-norm"
    version = 1
    model = MNormOptions

    def apply(
        self, table: pa.Table, fitted: Json | None, statistics: Mapping[str, Tally] | None, point: TwvParameters | None
    ) -> Floats:
        """Normalised scores; the order within a query is kept."""
        assert statistics is not None  # the entry demands that this step comes first
        histogram_of = histograms(statistics[ScoreHistogram.name])
        names, code = coded(table["query_id"])
        results = []
        for name in names:
            bins, counts = histogram_of[name]
            mode = mode_of(bins, counts)
            results.append((mode, deviation_of(bins, counts, mode, self.options.deviation)))
        mode, deviation = np.array(results).reshape(-1, 2)[code].T
        return standardised(scores_of(table), mode, deviation)


def mode_of(bins: Ints, counts: Ints) -> float:
    """The mode of the candidates' scores.

    Args:
        bins: int64 (n,), ascending, of which the score is (bin + 1/2) / BINS.
        counts: int64 (n,), positive.
    """
    number = int(counts.sum())
    first, second = (
        int((bins * counts).sum()),
        sum(b * b * c for b, c in zip(bins.tolist(), counts.tolist(), strict=True)),
    )
    # An integer number of bins: half a window is a quarter of the standard deviation.
    half = math.isqrt((number * second - first * first) // (16 * number * number))
    # A fullest window can be moved until it begins or ends at a non-empty bin.
    centres = np.unique(np.concatenate([bins + half, bins - half]))
    upto = np.concatenate([[0], np.cumsum(counts)])
    counts_in_window = (
        upto[np.searchsorted(bins, centres + half, "right")] - upto[np.searchsorted(bins, centres - half, "left")]
    )
    best = centres[counts_in_window == counts_in_window.max()]
    return (int(best[0]) + int(best[-1]) + 1) / (2 * BINS)


def deviation_of(bins: Ints, counts: Ints, mode: float, side: Literal["better", "worse", "all"]) -> float:
    """Root of the mean square of differences from the mode.

    Args:
        bins, counts: as of `mode_of`.
        mode: an integer number of half bins.
        side: which candidates count.
    """
    twice = round(2 * BINS * mode)
    if side != "all":
        kept = 2 * bins + 1 >= twice if side == "better" else 2 * bins + 1 <= twice
        bins, counts = bins[kept], counts[kept]
    total = sum((2 * b + 1 - twice) ** 2 * c for b, c in zip(bins.tolist(), counts.tolist(), strict=True))
    return math.sqrt(total / int(counts.sum())) / (2 * BINS) if len(bins) else 0.0
