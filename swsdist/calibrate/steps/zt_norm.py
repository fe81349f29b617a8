"""zt-norm: q-normed scores minus the mean of a cohort's scores at the same place, over their standard deviation.

Some places match every query: long documents, noise, a fast speaker. So each document (where documents are places in
recordings each recording; or a stretch, `window`) is normalised by queries without any other use: the cohort
(`corpus.cohort`). With z the q-normed score of a query at a place, and z_c the best of each cohort query c there,

    zt = (z - mean z_c) / deviation z_c

t-norm of z-normed scores. With a single cohort query the score is the difference from it; without any it is z.

Without `corpus.cohort` the run's other queries are the cohort. Decisions then depend on other queries, which evaluations may
forbid; a query's own score is subtracted from the sums.

Source: Auckenthaler, Carey and Lloyd-Thomas 2000, "Score normalization for text-independent speaker verification systems",
Digital Signal Processing 10 (t-norm, z-norm, and the two one after the other), with a query for the speaker's model and a place
for the test utterance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat

from swsdist.calibrate.statistics import Key, Tally
from swsdist.calibrate.steps.interface import Floats, Json, Options, Step, TwvParameters
from swsdist.calibrate.steps.norms import QNorm
from swsdist.core.types import COHORT_SUMS
from swsdist.kernels.coding import coded

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

    def apply(
        self, table: pa.Table, fitted: Json | None, statistics: Mapping[str, Tally] | None, point: TwvParameters | None
    ) -> Floats:
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
        moments_of = {row: _moments(*row) for row in set(map(tuple, sums.tolist()))}
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


def _places(table: pa.Table, window: float | None) -> tuple[list[Key], NDArray[np.int64]]:
    """The distinct places of rows, and each row's among them."""
    names, document = coded(table["doc_id"])
    channel = table["channel"].to_numpy().astype(np.int64)
    start = table["start"].to_numpy()
    number = np.zeros(len(start), np.int64) if window is None else np.floor(start / window).astype(np.int64)
    rows, code = np.unique(np.stack([document, channel, number]), axis=1, return_inverse=True)
    return [(names[d], c, k) for d, c, k in rows.T.tolist()], code.reshape(-1)


def _best(table: pa.Table, place: NDArray[np.int64], z: Floats) -> NDArray[np.int64]:
    """The best score of each row's query at its place, in units of 1 / UNIT."""
    _, query = coded(table["query_id"])
    _, pair = np.unique(np.stack([query, place]), axis=1, return_inverse=True)
    pair = pair.reshape(-1)
    best = np.full(int(pair.max()) + 1, np.iinfo(np.int64).min)
    np.maximum.at(best, pair, np.rint(z * UNIT).astype(np.int64))
    return best[pair]


def _moments(count: int, first: int, second: int) -> tuple[float, float]:
    """Mean and deviation; the deviation is 1 instead of 0, and the mean 0 without queries."""
    if count < 1:
        return 0.0, 1.0
    spread = count * second - first * first  # integers: the deviation of equal scores is exactly 0
    return first / (count * UNIT), math.sqrt(spread) / (count * UNIT) if spread > 0 else 1.0
