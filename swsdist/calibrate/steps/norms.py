"""Steps that normalise scores by a mean and a deviation: `q-norm`, `m-norm`, `zt-norm`, `speaker-norm`.

Moments are computed from exact integer sums, as fractions, so they do not depend on sharding.

**q-norm**: the scores of a query minus their mean, over their standard deviation. Both are of all candidates of the
query (all examples) that the search found in the collection: almost all are non-targets. If a query's scores do not
vary, or it has a single candidate, the score is the difference from the mean. Also called z-norm per query.

**m-norm**: the scores of a query minus the mode of its candidates' scores, over their deviation from the mode. The mean
of q-norm is biased by a long tail of poor scores, and by the true occurrences of a frequent query. The mode is not:
most candidates, nearly all non-targets, lie around it. It is computed from a histogram of all candidates of the query
(all examples) in bins of 1 / 1024: of all windows of half a standard deviation the fullest, and of equal ones the
middle between the first and the last. The deviation is the root of the mean square of differences from the mode, over
the candidates at or above it (`better`: the side on which decisions are made), below it (`worse`) or all. If the
deviation is 0, the score is the difference from the mode. Window, bins and side of the deviation are this project's
choices (docs/concepts/calibration-steps.md has their effect).

**zt-norm**: q-normed scores minus the mean of a cohort's scores at the same place, over their standard deviation. Some
places match every query: long documents, noise, a fast speaker. So each document (where documents are places in
recordings each recording; or a stretch, `window`) is normalised by queries without any other use: the cohort
(`corpus.cohort`). With z the q-normed score of a query at a place, and z_c the best of each cohort query c there,

    zt = (z - mean z_c) / deviation z_c

which is t-norm of z-normed scores. With a single cohort query the score is the difference from it; without any it is z.
Without `corpus.cohort` the run's other queries are the cohort. Decisions then depend on other queries, which
evaluations may forbid; a query's own score is subtracted from the sums.

**speaker-norm**: q-norm among the documents of one speaker. A spoken query is nearer to all speech of its own speaker
and of similar voices. With one mean and deviation for all documents, these scores exceed true occurrences by other
speakers. So the scores of a query in the documents of a speaker are normalised by the mean and deviation of these
scores. The mean of a speaker with few candidates is unreliable: the query's moments over the whole collection count as
`relevance` candidates r beside the n of the speaker::

    mean = (n own + r whole) / (n + r), and so the mean of squares

Only the query's own scores are used. Voices stand for unknown speakers (`swsdist.store.voices`).

Sources: q-norm: Rodriguez-Fuentes et al., "GTTS systems for the SWS task at MediaEval 2013", section 2.3; m-norm:
Szöke, Burget, Grézl, Černocký and Ondel 2014, "Calibration and fusion of query-by-example systems - BUT SWS 2013"
(ICASSP), who put the peak of a query's distribution in the place of its mean; zt-norm: Auckenthaler, Carey and
Lloyd-Thomas 2000, "Score normalization for text-independent speaker verification systems", Digital Signal Processing 10
(t-norm, z-norm, and the two one after the other), with a query for the speaker's model and a place for the test
utterance; speaker-norm: the z-norm of a speaker model by a part of the impostors: Reynolds, Quatieri and Dunn 2000,
"Speaker verification using adapted Gaussian mixture models", Digital Signal Processing 10 (H-norm, by handset; and
`relevance`, section 3.2).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, PositiveFloat

from swsdist.calibrate.statistics import BINS, CostSums, Key, ScoreHistogram, SpeakerCostSums, Tally, histograms
from swsdist.calibrate.steps.interface import Json, Options, Step, Tallies, TwvParameters, scores_of
from swsdist.core.arrays import Floats, Ints
from swsdist.core.types import COHORT_SUMS
from swsdist.kernels.coding import coded


class QNorm(Step[Options]):
    """Needs the statistics `cost-sums`, and no references."""

    name = "q-norm"
    version = 1

    def apply(self, table: pa.Table, fitted: Json | None, statistics: Tallies, point: TwvParameters | None) -> Floats:
        """Normalised scores; the order within a query is kept."""
        assert statistics is not None  # the entry demands that this step comes first
        moments_of = moments(statistics[CostSums.name])
        names, code = coded(table["query_id"])
        mean, deviation = np.array([moments_of[name] for name in names]).reshape(-1, 2)[code].T
        return standardised(scores_of(table), mean, deviation)


def moments(sums: Tally) -> dict[str, tuple[float, float]]:
    """Mean and population standard deviation of each query's scores, from `cost-sums`."""
    return {query_id: _moments(*_sums(rows)) for query_id, rows in sums.by_query().items()}


def example_moments(sums: Tally) -> dict[tuple[str, int], tuple[float, float]]:
    """Mean and population standard deviation of the scores of each (query_id, example)."""
    return {key: _moments(*_sums(rows)) for key, rows in _by_two(sums).items()}


def _moments(count: int, first: Fraction, second: Fraction) -> tuple[float, float]:
    mean = first / count
    return float(mean), math.sqrt(second / count - mean * mean)


def standardised(scores: Floats, mean: Floats, deviation: Floats) -> Floats:
    """Scores minus mean, over deviation; the difference if the deviation is 0."""
    return np.asarray((scores - mean) / np.where(deviation > 0, deviation, 1.0))


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

    def apply(self, table: pa.Table, fitted: Json | None, statistics: Tallies, point: TwvParameters | None) -> Floats:
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


#: In sums a q-normed score is an integer in units of 1 / UNIT.
UNIT = 1 << 16

#: By document, channel and window: number of queries, sum of their best scores and of their squares, in units of 1 / UNIT.
QUANTITIES = ("queries", "score_sum", "score_square_sum")

#: Names of a step's sums: of a cohort, or of all queries of the run including the query itself.
COHORT, ALL = "cohort", "all-queries"


class ZtNormOptions(Options):
    """The size of a place."""

    window: PositiveFloat | None = Field(
        None,
        description="length (s) of the stretches of a document that are judged by themselves; null: whole documents, or the "
        "recordings that documents are places in",
    )


class ZtNorm(Step[ZtNormOptions]):
    """Needs `cost-sums` and the sums of a cohort, and no references."""

    name = "zt-norm"
    version = 1
    model = ZtNormOptions

    def apply(self, table: pa.Table, fitted: Json | None, statistics: Tallies, point: TwvParameters | None) -> Floats:
        """Normalised scores."""
        assert statistics is not None  # the entry demands that this step comes first
        z = QNorm(Options()).apply(table, None, statistics, point)
        scored = np.flatnonzero(~np.isnan(z))
        result = np.full(len(z), np.nan)
        if not len(scored):
            return result
        includes_query = ALL in statistics
        cohort_values = statistics[ALL if includes_query else COHORT].values
        rows = table.take(pa.array(scored))
        places, code = _places(rows, self.options.window)
        sums = np.array([cohort_values.get(place, (0, 0, 0)) for place in places], dtype=object)[code]
        if includes_query:
            # Equal to those in the sums: every list of a query contains its best score at each place.
            best_scores = _best(rows, code, z[scored])
            count = (sums[:, 0] > 0).astype(int)  # nothing to subtract at a place without sums
            sums = (
                sums
                - np.stack([np.ones(len(best_scores), int), best_scores, best_scores * best_scores], axis=1)
                * count[:, None]
            )
        moments_of = {row: _cohort_moments(*row) for row in set(map(tuple, sums.tolist()))}
        mean, deviation = np.array([moments_of[row] for row in map(tuple, sums.tolist())]).T
        result[scored] = (z[scored] - mean) / deviation
        return result


def cohort_sums(detections: pa.Table, window: float | None) -> Tally:
    """Sums of a cohort's queries at each place; keys are document, channel and window.

    Args:
        detections: DETECTIONS with q-normed scores, all of each query.
        window: s; None: whole documents.
    """
    if not detections.num_rows:
        return Tally(QUANTITIES)
    places, code = _places(detections, window)
    best = _best(detections, code, detections["score"].to_numpy())
    _, query = coded(detections["query_id"])
    _, first = np.unique(np.stack([query, code]), axis=1, return_index=True)
    values: dict[Key, tuple[int, ...]] = {}
    for row in first.tolist():
        key, score = places[code[row]], int(best[row])
        count, total, squares = values.get(key, (0, 0, 0))
        values[key] = (count + 1, total + score, squares + score * score)
    return Tally(QUANTITIES, values)


def cohort_table(tally: Tally) -> pa.Table:
    """COHORT_SUMS of `cohort_sums`, by document, channel and window."""
    rows = [
        dict(zip(COHORT_SUMS.names, (*key, value[0], Decimal(value[1]), Decimal(value[2])), strict=True))
        for key, value in sorted(tally.values.items())
    ]
    return pa.Table.from_pylist(rows, COHORT_SUMS)


def cohort_of(table: pa.Table) -> Tally:
    """The sums in a table from `cohort_table`."""
    columns = (table[name].to_pylist() for name in COHORT_SUMS.names)
    rows = zip(*columns, strict=True)
    return Tally(QUANTITIES, {(doc, c, k): (n, int(total), int(squares)) for doc, c, k, n, total, squares in rows})


def _places(table: pa.Table, window: float | None) -> tuple[list[Key], Ints]:
    """The distinct places of rows, and each row's among them."""
    names, document = coded(table["doc_id"])
    channel = table["channel"].to_numpy().astype(np.int64)
    start = table["start"].to_numpy()
    number = np.zeros(len(start), np.int64) if window is None else np.floor(start / window).astype(np.int64)
    rows, code = np.unique(np.stack([document, channel, number]), axis=1, return_inverse=True)
    return [(names[d], c, k) for d, c, k in rows.T.tolist()], code.reshape(-1)


def _best(table: pa.Table, place: Ints, z: Floats) -> Ints:
    """The best score of each row's query at its place, in units of 1 / UNIT."""
    _, query = coded(table["query_id"])
    _, pair = np.unique(np.stack([query, place]), axis=1, return_inverse=True)
    pair = pair.reshape(-1)
    best = np.full(int(pair.max()) + 1, np.iinfo(np.int64).min)
    np.maximum.at(best, pair, np.rint(z * UNIT).astype(np.int64))
    return best[pair]


def _cohort_moments(count: int, first: int, second: int) -> tuple[float, float]:
    """Mean and deviation; the deviation is 1 instead of 0, and the mean 0 without queries."""
    if count < 1:
        return 0.0, 1.0
    spread = count * second - first * first  # integers: the deviation of equal scores is exactly 0
    return first / (count * UNIT), math.sqrt(spread) / (count * UNIT) if spread > 0 else 1.0


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

    def apply(self, table: pa.Table, fitted: Json | None, statistics: Tallies, point: TwvParameters | None) -> Floats:
        """Normalised scores; the order within a query and speaker is kept."""
        assert statistics is not None  # the entry demands that this step comes first
        collection = {query_id: _sums(rows) for query_id, rows in statistics[CostSums.name].by_query().items()}
        left = {key: _sums(rows) for key, rows in _by_two(statistics[SpeakerCostSums.name]).items()}
        names, code = coded(table["query_id"])
        pairs, row = np.unique(np.stack([code, table["speaker"].to_numpy()]), axis=1, return_inverse=True)
        scores_of_rows = [
            self._moments(collection[names[query]], left.get((names[query], speaker)))
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


def _by_two(tally: Tally) -> dict[tuple[str, int], list[tuple[Key, tuple[int, ...]]]]:
    """The rows of each query and example, or speaker."""
    rows: dict[tuple[str, int], list[tuple[Key, tuple[int, ...]]]] = {}
    for key, values in tally.values.items():
        rows.setdefault(key[:2], []).append((key, values))
    return rows


def _sums(rows: Iterable[tuple[Key, tuple[int, ...]]]) -> _Sums:
    """Exact: the deviation of equal scores must be 0, without rounding errors."""
    count, first, second = 0, Fraction(0), Fraction(0)
    for (_, _, scale), (candidates, cost, square) in rows:
        count += candidates
        first -= Fraction(cost, scale)
        second += Fraction(square, scale * scale)
    return count, first, second
