"""rank-norm: the rank of a score among all candidates of its query.

With N candidates, of which r are better (those in the score's bin count in proportion, as if they lay
evenly in it), a score becomes ``-ln((r + 1/2) / (N + 1))``: 0 at the end of the list, and 0.69 more each time half as
many are better. Or ``1 - (r + 1/2) / (N + 1)``, the part of the list that is not better.

Ranks are over all candidates, from a histogram in bins of 1 / 1024 (statistic `score-histogram`), so they do not depend on
sharding. Equal scores have equal ranks, and the order is kept.

Source: the rank among a query's detections as a feature is the ranking-score of Pham et al. 2014, "Discriminative score
normalization for keyword search decision" (ICASSP). The logarithm is this project's choice: a threshold on it allows each query
the same number of detections, in ever finer steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from swsdist.calibrate.statistics import BINS, ScoreHistogram, Tally, histograms
from swsdist.calibrate.steps.interface import Floats, Json, Options, Step, TwvParameters, scores_of
from swsdist.kernels.coding import coded
from swsdist.kernels.regression import logarithm


class RankNormOptions(Options):
    """Scale of the ranks."""

    scale: Literal["log", "linear"] = Field(
        "log", description="minus the logarithm of the part of the candidates that is better, or 1 minus that part"
    )


class RankNorm(Step[RankNormOptions]):
    """Needs the statistic `score-histogram`, and no references."""

    name = "rank-norm"
    version = 1
    model = RankNormOptions

    def apply(
        self, table: pa.Table, fitted: Json | None, statistics: Mapping[str, Tally] | None, point: TwvParameters | None
    ) -> Floats:
        """Ranks as scores; the order within a query is kept."""
        assert statistics is not None  # the entry demands that this step comes first
        histogram_of = histograms(statistics[ScoreHistogram.name])
        names, code = coded(table["query_id"])
        scores = scores_of(table)
        result = np.full(len(scores), np.nan)
        scored = np.flatnonzero(~np.isnan(scores))
        order = scored[np.argsort(code[scored], kind="stable")]
        for k, query_rows in enumerate(np.split(order, np.searchsorted(code[order], np.arange(1, len(names))))):
            bins, counts = histogram_of[names[k]]
            part = (ranks(scores[query_rows], bins, counts) + 0.5) / (int(counts.sum()) + 1)
            result[query_rows] = -logarithm(part) if self.options.scale == "log" else 1.0 - part
        return result


def ranks(scores: Floats, bins: np.ndarray, counts: np.ndarray) -> Floats:
    """Number of better candidates, float64 (n,), assuming that candidates lie evenly in their bins.

    Args:
        scores: float64 (n,), finite.
        bins, counts: int64 (m,), of `score-histogram`, bins ascending.
    """
    places = scores * BINS  # a power of two: exact
    bin_of = np.floor(places)
    above = np.concatenate([np.cumsum(counts[::-1])[::-1], [0]])
    at = np.searchsorted(bins, bin_of, "left")
    inside = at < len(bins)
    inside[inside] = bins[at[inside]] == bin_of[inside]
    bin_counts = np.where(inside, counts[np.minimum(at, len(bins) - 1)], 0)
    better = above[np.searchsorted(bins, bin_of, "right")]
    result: Floats = better + bin_counts * (1.0 - (places - bin_of))
    return result
