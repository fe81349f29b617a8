"""The decision threshold: fitted on some queries, applied to others.

``decision = score >= threshold``. Ways to fit:

=========  ============================================================================================
crossfit   queries are assigned to folds by a stable hash of their ids; each fold is decided by the threshold
           of the maximum TWV of all other folds
oracle     on all scored queries; optimistic by definition, and labelled so in every output
FILE       as saved by an earlier run; several folds are averaged
none       no decision is made
=========  ============================================================================================

Thresholds are fitted and saved like the steps of calibration (`swsdist.calibrate.procedure`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.core.codes import calibrate as codes
from swsdist.core.fingerprint import stable_hash
from swsdist.core.types import DETECTIONS
from swsdist.kernels.coding import coded


def fold_of(query_id: str, folds: int) -> int:
    """The fold of a query, by a stable hash, independent of other queries."""
    return stable_hash(f"fold {query_id}") % folds if folds > 1 else 0


def check_folds(queries: Mapping[int, int], folds: int) -> None:
    """Check that each fold can be fitted on others.

    Args:
        queries: numbers of queries with references, by fold.
        folds: number of folds; 1 fits on all queries.

    Raises:
        UserError: none occurs, or all that do are in one fold.
    """
    numbers = [number for number in queries.values() if number]
    if not numbers:
        raise codes.NO_QUERIES_TO_FIT()
    if folds > 1 and len(numbers) < 2:
        raise codes.TOO_FEW_QUERIES_TO_FIT(folds=folds, count=sum(numbers))


def thresholds_for(queries: Collection[str], thresholds: Sequence[float | None]) -> list[float | None]:
    """Thresholds for some queries: one for all, or one per fold, with None for folds without queries."""
    used = {fold_of(query, len(thresholds)) for query in queries}
    return [value if len(thresholds) == 1 or k in used else None for k, value in enumerate(thresholds)]


def queries_without_threshold(queries: Collection[str], thresholds: Sequence[float | None]) -> list[str]:
    """Queries in folds without a threshold, sorted."""
    return sorted(query for query in queries if thresholds and thresholds[fold_of(query, len(thresholds))] is None)


def folds_of(table: pa.Table, folds: int) -> NDArray[np.int64]:
    """The fold of each row, int64 (rows,); the table has a column `query_id`."""
    names, code = coded(table["query_id"])
    result: NDArray[np.int64] = np.array([fold_of(name, folds) for name in names], dtype=np.int64)[code]
    return result


def by_fold(table: pa.Table, folds: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each non-empty fold, folds ascending; the table has a column `query_id`."""
    fold = folds_of(table, folds)
    for k in np.unique(fold).tolist():
        yield k, table.filter(pa.array(fold == k))


def decide(table: pa.Table, thresholds: Sequence[float | None] | None) -> pa.Table:
    """Set the column `decision` of DETECTIONS or TRIALS; null without thresholds, or for misses.

    Args:
        table: any rows.
        thresholds: one for all queries or one per fold; a fold without a threshold is decided NO. None: no decisions.
    """
    place = table.schema.get_field_index("decision")
    if thresholds is None:
        decisions = pa.nulls(table.num_rows, pa.bool_())
    else:
        limits = np.array([math.inf if value is None else value for value in thresholds], np.float64)
        scores = table["score"].to_numpy().astype(np.float64)
        decisions = pa.array(scores >= limits[folds_of(table, len(limits))], mask=np.isnan(scores))
    return table.set_column(place, DETECTIONS.field("decision"), decisions)
