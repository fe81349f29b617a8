"""Scores become probabilities: ``p = sigmoid(slope * score + offset)``, fitted on labelled detections.

Labels come from an aligned list (schema TRIALS): a paired detection is a hit, an unpaired one a false alarm. Fitted on all
of them as they are, p is the probability that a detection with that score is right, as keyword specific thresholds and
posterior sums want it. With an effective prior given, hits and false alarms are weighted to it, and p is the posterior
at that prior.

Modes of fitting are those of `swsdist.calibrate.threshold`: crossfit, oracle, file. What was fitted is a readable JSON
file that says what it was fitted on; from a file of several folds their log-odds are averaged.

Sources: Rodriguez-Fuentes and Penagarikano 2013, section 5 (prior-weighted linear calibration);
Brummer and du Preez 2006, "Application-independent evaluation of speaker detection".
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from swsdist.calibrate.regression import Fitted, linear, maximise, prior_weights, sigmoid
from swsdist.calibrate.threshold import fold_of
from swsdist.errors import ConfigError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SCHEMA = "swsdist-logistic/1"

#: Of a run's own file of fitted steps (`swsdist.calibrate.procedure`), which may hold logistics.
STEPS_SCHEMA = "swsdist-steps/1"


@dataclass(frozen=True, eq=False)
class Labelled:
    """Labelled detections by their score: a value that adds, with a zero.

    Attributes:
        score: float64 (n,), distinct, ascending.
        hits: int64 (n,), paired detections with that score.
        false_alarms: int64 (n,), unpaired ones.
        missed: true occurrences without a detection.
    """

    score: Floats
    hits: Ints
    false_alarms: Ints
    missed: int = 0

    @classmethod
    def zero(cls) -> Labelled:
        """Nothing."""
        none = np.zeros(0, dtype=np.int64)
        return cls(np.zeros(0), none, none)

    @classmethod
    def of(cls, aligned: pa.Table) -> Labelled:
        """Count an aligned list (schema TRIALS), rows in any order; queries without true occurrences count too."""
        detected = pc.is_valid(aligned["score"]).to_numpy()
        true = pc.is_valid(aligned["ref_start"]).to_numpy()
        score = pc.fill_null(aligned["score"], 0.0).to_numpy()[detected]
        hit = true[detected].astype(np.int64)
        return _summed(score, hit, 1 - hit, int((true & ~detected).sum()))

    def __add__(self, other: Labelled) -> Labelled:
        return _summed(
            np.concatenate([self.score, other.score]),
            np.concatenate([self.hits, other.hits]),
            np.concatenate([self.false_alarms, other.false_alarms]),
            self.missed + other.missed,
        )


def _summed(score: Floats, hits: Ints, false_alarms: Ints, missed: int) -> Labelled:
    distinct, which = np.unique(score + 0.0, return_inverse=True)  # -0.0 and 0.0 are one score
    true, false = (np.zeros(len(distinct), dtype=np.int64) for _ in range(2))
    np.add.at(true, which, hits)
    np.add.at(false, which, false_alarms)
    return Labelled(distinct, true, false, missed)


@dataclass(frozen=True)
class Logistic:
    """``p = sigmoid(slope * score + offset)``."""

    slope: float
    offset: float

    def log_odds(self, scores: ArrayLike) -> Floats:
        """ln(p / (1 - p)); at an effective prior that is the log-likelihood ratio plus the prior's log-odds."""
        values = np.asarray(scores, dtype=np.float64)
        return linear(values.reshape(-1, 1), Fitted((self.slope,), self.offset)).reshape(values.shape)

    def probability(self, scores: ArrayLike) -> Floats:
        """p of scores of any shape."""
        return sigmoid(self.log_odds(scores))


def fit_logistic(labelled: Labelled, *, prior: float | None = None) -> Logistic:
    """The logistic of greatest likelihood, made unique and finite by a weak prior on the slope (see `regression`).

    Warns if the slope is not positive: then higher scores are not more likely hits, against this project's convention.

    Args:
        labelled: the training data.
        prior: effective prior that hits are weighted to; None: as they are.

    Raises:
        UserError: no hits or no false alarms; the prior is not between 0 and 1.
    """
    fitted = maximise(labelled.score.reshape(-1, 1), *prior_weights(labelled.hits, labelled.false_alarms, prior))
    slope = fitted.slopes[0]
    if slope <= 0:
        warnings.warn(f"the logistic's slope is {slope:.4g}: higher scores are not more likely hits here", stacklevel=2)
    return Logistic(slope, fitted.offset)


@dataclass(frozen=True)
class Logistics:
    """Logistics, and where they come from.

    Attributes:
        fit: `crossfit`, `oracle` or `file`.
        models: one a fold of queries, or a single one for all.
        trained_on: fingerprint of the aligned lists, number of queries, and what else tells where they come from.
    """

    fit: str
    models: tuple[Logistic, ...]
    trained_on: dict[str, object]

    def of(self, query_id: str) -> Logistic:
        """The one for a query."""
        return self.models[fold_of(query_id, len(self.models))]

    def apply(self, table: pa.Table) -> pa.Table:
        """Put probabilities in the place of the scores of DETECTIONS or TRIALS; null stays null."""
        place = table.schema.get_field_index("score")
        if not table.num_rows:
            return table
        query = table["query_id"].combine_chunks().dictionary_encode()
        models = [self.of(name) for name in query.dictionary.to_pylist()]
        code = query.indices.to_numpy()
        score = table["score"].to_numpy(zero_copy_only=False).astype(np.float64)
        missing = np.isnan(score)
        slope, offset = (np.array(part)[code] for part in zip(*map(_pair, models), strict=True))
        values = pa.array(sigmoid(slope * np.where(missing, 0.0, score) + offset), mask=missing)
        return table.set_column(place, table.schema.field(place), values)

    def to_json(self, **more: object) -> bytes:
        """As a file; `more` is put beside it."""
        return json.dumps({"schema": SCHEMA, **asdict(self), **more}, indent=1, ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, data: bytes, where: str, *, average: bool = True) -> Logistics:
        """From a file.

        Args:
            data: what `to_json` gave.
            where: its name, for messages.
            average: several folds become their mean, to be applied to other data; else they stay folds.

        Raises:
            ConfigError: it is not such a file.
        """
        try:
            values = json.loads(data)
            if values["schema"] == STEPS_SCHEMA:
                steps = [step for step in values["steps"] if step["name"] == "logistic"]
                if not steps:
                    raise ValueError("no logistic is among its steps")
                values = {**values, "schema": SCHEMA, "models": steps[0]["models"]}
            if values["schema"] != SCHEMA:
                raise ValueError(f"its schema is {values['schema']}")
            models = tuple(Logistic(float(m["slope"]), float(m["offset"])) for m in values["models"])
            if not models:
                raise ValueError("it holds no logistic")
            if not all(math.isfinite(value) for m in models for value in (m.slope, m.offset)):
                raise ValueError("a coefficient is not finite")
            if not average:
                return cls(str(values["fit"]), models, values["trained_on"])
            mean = Logistic(*(math.fsum(part) / len(models) for part in zip(*map(_pair, models), strict=True)))
            return cls("file", (mean,), values["trained_on"])
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"not a logistic calibration of swsdist ({error})",
                where=where,
                remedy="name a file that `swsdist calibrate --save` wrote, or one of calibration/ of a run with a logistic",
            ) from None


def _pair(model: Logistic) -> tuple[float, float]:
    return model.slope, model.offset


def fit_logistics(
    labelled: Mapping[int, Labelled], folds: int, *, trained_on: dict[str, object], prior: float | None = None
) -> Logistics:
    """Fit one logistic (folds = 1: oracle) or one a fold, on the queries of all other folds (crossfit).

    Args:
        labelled: of each fold's queries.
        folds: how many.
        trained_on: goes into the file.
        prior: as of `fit_logistic`.

    Raises:
        UserError: there are no hits, or no false alarms, to learn from.
    """
    models = []
    for fold in range(folds):
        others = Labelled.zero()
        for k in sorted(labelled):
            if folds == 1 or k != fold:
                others = others + labelled[k]
        models.append(fit_logistic(others, prior=prior))
    return Logistics("oracle" if folds == 1 else "crossfit", tuple(models), trained_on)
