"""The threshold that decides, fitted on some queries and applied to others.

``decision = score >= threshold``. How it is fitted:

=========  ============================================================================================
crossfit   queries are cut into folds by a stable hash of their ids; each fold is decided by the threshold
           of the maximum TWV of all the others
oracle     on all that is scored; optimistic by definition, and labelled so in every output
FILE       as an earlier run fitted it and saved it; its folds, if it has several, are averaged
none       no decision is made
=========  ============================================================================================

What was fitted is a readable JSON file that says what it was fitted on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdist.calibrate.coding import coded
from swsdist.errors import ConfigError, UserError
from swsdist.fingerprint import stable_hash
from swsdist.score import Counts
from swsdist.score.parts.spilled import SpilledCounts, threshold_of
from swsdist.types import DETECTIONS

SCHEMA = "swsdist-calibration/1"


@dataclass(frozen=True)
class Calibration:
    """Thresholds, and where they come from.

    Attributes:
        fit: `crossfit`, `oracle` or `file`.
        thresholds: one a fold of queries, or a single one for all; a fold without one is decided NO throughout.
        trained_on: fingerprint of the aligned lists it was fitted on, queries, references and operating point.
    """

    fit: str
    thresholds: tuple[float | None, ...]
    trained_on: dict[str, object]
    schema: str = SCHEMA

    def threshold(self, query_id: str) -> float:
        """The threshold for one query; infinite where there is none."""
        value = self.thresholds[fold_of(query_id, len(self.thresholds))]
        return math.inf if value is None else value

    def to_json(self) -> bytes:
        """As a file."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False).encode()

    @classmethod
    def from_run(cls, data: bytes) -> Calibration:
        """From a run's own file, folds and all."""
        values = json.loads(data)
        return cls(**{**values, "thresholds": tuple(values["thresholds"])})

    @classmethod
    def from_json(cls, data: bytes, where: str) -> Calibration:
        """From a file, to be applied to other data: several folds become their mean.

        Raises:
            ConfigError: it is not such a file, or holds no threshold.
        """
        try:
            values = json.loads(data)
            if values["schema"] != SCHEMA:
                raise ValueError(f"its schema is {values['schema']}")
            given = [float(value) for value in values["thresholds"] if value is not None]
            if not given:
                raise ValueError("it holds no threshold")
            if not all(map(math.isfinite, given)):
                raise ValueError("a threshold is not finite")
            return cls("file", (math.fsum(given) / len(given),), values["trained_on"])
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"not a calibration of swsdist ({error})",
                where=where,
                remedy="name a file of the folder calibration/ of an earlier run",
            ) from None


def fold_of(query_id: str, folds: int) -> int:
    """The fold of a query: a stable hash, so that it never depends on the other queries."""
    return stable_hash(f"fold {query_id}") % folds if folds > 1 else 0


def folds_of(table: pa.Table, folds: int) -> NDArray[np.int64]:
    """The fold of each row, int64 (rows,); the table has a column `query_id`."""
    names, code = coded(table["query_id"])
    result: NDArray[np.int64] = np.array([fold_of(name, folds) for name in names], dtype=np.int64)[code]
    return result


def by_fold(table: pa.Table, folds: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each fold that has any, folds ascending; the table has a column `query_id`."""
    fold = folds_of(table, folds)
    for k in np.unique(fold).tolist():
        yield k, table.filter(pa.array(fold == k))


def fit(
    counts: Mapping[int, Counts], folds: int, *, trials: int, beta: float, trained_on: dict[str, object]
) -> Calibration:
    """Fit one threshold (folds = 1: oracle) or one a fold (crossfit).

    Args:
        counts: of each fold's queries.
        folds: how many.
        trials: N of each query.
        beta: weight of false alarms.
        trained_on: goes into the file.
    """
    with ExitStack() as held:
        parts = [held.enter_context(SpilledCounts()) for _ in range(folds)]
        for fold, one in counts.items():
            parts[fold].add(one)
        return fit_parts(parts, trials=trials, beta=beta, trained_on=trained_on)


def fit_parts(
    parts: Sequence[SpilledCounts], *, trials: int, beta: float, trained_on: dict[str, object]
) -> Calibration:
    """The same from counts that need not fit into memory; arguments as of `fit`.

    Args:
        parts: of each fold's queries; a single one: oracle.
    """
    thresholds: list[float | None] = []
    for fold in range(len(parts)):
        others = [part for k, part in enumerate(parts) if len(parts) == 1 or k != fold]
        try:
            thresholds.append(threshold_of(others, trials=trials, beta=beta))
        except UserError:
            thresholds.append(None)  # nothing to learn from: such a fold decides NO
    return Calibration("oracle" if len(parts) == 1 else "crossfit", tuple(thresholds), trained_on)


def decide(table: pa.Table, calibration: Calibration | None) -> pa.Table:
    """Set the column `decision` of DETECTIONS or TRIALS; null where nothing decides, or nothing was detected."""
    place = table.schema.get_field_index("decision")
    if calibration is None:
        decisions = pa.nulls(table.num_rows, pa.bool_())
    else:
        names, code = coded(table["query_id"])
        limit = np.array([calibration.threshold(name) for name in names], np.float64)[code]
        scores = table["score"].to_numpy().astype(np.float64)
        decisions = pa.array(scores >= limit, mask=np.isnan(scores))
    return table.set_column(place, DETECTIONS.field("decision"), decisions)
