"""speaker-norm: q-norm among the documents of one speaker.

A spoken query is nearer to all speech of its own speaker and of similar voices. With one mean and deviation for all
documents, these scores exceed true occurrences by other speakers. So the scores of a query in the documents of a
speaker are normalised by the mean and deviation of these scores.

The mean of a speaker with few candidates is unreliable: the query's moments over the whole collection count as `relevance`
candidates beside the n of the speaker, ::

    mean = (n own + r whole) / (n + r), and so the mean of squares

Only the query's own scores are used. Voices stand for speakers who are not named (`swsdist.store.voices`). Sums are
integers, and moments are computed as fractions, so they do not depend on sharding.

Sources: the z-norm of a speaker model by a part of the impostors: Reynolds, Quatieri and Dunn 2000, "Speaker verification using
adapted Gaussian mixture models", Digital Signal Processing 10 (H-norm, by handset; and `relevance`, section 3.2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pyarrow as pa
from pydantic import Field

from swsdist.calibrate.statistics import CostSums, SpeakerCostSums, Tally
from swsdist.calibrate.steps.interface import Floats, Json, Options, Step, TwvParameters, scores_of
from swsdist.calibrate.steps.norms import standardised
from swsdist.kernels.coding import coded

#: Count, sum of scores, sum of squared scores.
_Sums = tuple[int, Fraction, Fraction]


class SpeakerNormOptions(Options):
    """The weight of the whole collection."""

    relevance: float = Field(
        64.0, gt=0, description="candidates that a query's moments over the whole collection count as"
    )


class SpeakerNorm(Step[SpeakerNormOptions]):
    """Needs the statistics `cost-sums` and `speaker-cost-sums`, and no references."""

    name = "speaker-norm"
    version = 1
    model = SpeakerNormOptions

    def apply(
        self, table: pa.Table, fitted: Json | None, statistics: Mapping[str, Tally] | None, point: TwvParameters | None
    ) -> Floats:
        """Normalised scores; the order within a query and speaker is kept."""
        assert statistics is not None  # the entry demands that this step comes first
        collection = {query_id: _sums(rows) for query_id, rows in _by(statistics[CostSums.name], 1).items()}
        left = {key: _sums(rows) for key, rows in _by(statistics[SpeakerCostSums.name], 2).items()}
        names, code = coded(table["query_id"])
        pairs, row = np.unique(np.stack([code, table["speaker"].to_numpy()]), axis=1, return_inverse=True)
        scores_of_rows = [
            self._moments(collection[names[query],], left.get((names[query], speaker)))
            for query, speaker in pairs.T.tolist()
        ]
        mean, deviation = np.array(scores_of_rows).reshape(-1, 2)[row.reshape(-1)].T
        return standardised(scores_of(table), mean, deviation)

    def _moments(self, collection: _Sums, speaker: _Sums | None) -> tuple[float, float]:
        """Mean and deviation of the scores of a query in the documents of a speaker."""
        weight = Fraction(self.options.relevance)
        count, first, second = speaker or (0, Fraction(0), Fraction(0))
        mean = (first + weight * collection[1] / collection[0]) / (count + weight)
        square = (second + weight * collection[2] / collection[0]) / (count + weight)
        return float(mean), math.sqrt(square - mean * mean)


def _by(tally: Tally, many: int) -> dict[tuple[object, ...], list[tuple[int, tuple[int, ...]]]]:
    """The rows of each key's first items: scale and sums."""
    rows_by_key: dict[tuple[object, ...], list[tuple[int, tuple[int, ...]]]] = {}
    for key, values in tally.values.items():
        rows_by_key.setdefault(key[:many], []).append((key[2], values))
    return rows_by_key


def _sums(rows: list[tuple[int, tuple[int, ...]]]) -> _Sums:
    count, first, second = 0, Fraction(0), Fraction(0)
    for scale, (candidates, cost, square) in rows:
        count += candidates
        first -= Fraction(cost, scale)
        second += Fraction(square, scale * scale)
    return count, first, second
