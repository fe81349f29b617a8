"""logistic: scores become the probability that the detection is right; see `swsdist.calibrate.logistic`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add

import numpy as np
import pyarrow as pa

from swsdist.calibrate.logistic import Labelled, Logistic, Logistics, fit_logistic
from swsdist.calibrate.statistics import Tally
from swsdist.calibrate.steps.interface import Floats, Json, Options, Point, Step, scores_of


class LogisticStep(Step[Options, Labelled]):
    """``p = sigmoid(slope * score + offset)``, fitted on hits and false alarms of aligned lists."""

    name = "logistic"
    version = 1

    def gather(self, aligned: pa.Table, statistics: Mapping[str, Tally] | None, point: Point | None) -> Labelled:
        """Hits and false alarms by score."""
        return Labelled.of(aligned)

    def fit(self, parts: Iterable[Labelled]) -> Json:
        """Slope and offset of greatest likelihood.

        Raises:
            UserError: there are no hits, or no false alarms.
        """
        model = fit_logistic(reduce(add, parts, Labelled.zero()))
        return {"slope": model.slope, "offset": model.offset}

    def average(self, models: Sequence[Json]) -> Json:
        """The mean of log-odds is the logistic of the mean slope and offset."""
        return {name: math.fsum(_number(m, name) for m in models) / len(models) for name in ("slope", "offset")}

    def read(self, data: bytes, where: str) -> Json:
        """From a run's file of steps, or from one that `swsdist calibrate --save` wrote.

        Raises:
            ConfigError: it is no such file.
        """
        (model,) = Logistics.from_json(data, where).models
        return {"slope": model.slope, "offset": model.offset}

    def apply(
        self, table: pa.Table, fitted: Json | None, statistics: Mapping[str, Tally] | None, point: Point | None
    ) -> Floats:
        """Probabilities."""
        assert fitted is not None  # the procedure fits before it applies
        scores = scores_of(table)
        missing = np.isnan(scores)
        model = Logistic(_number(fitted, "slope"), _number(fitted, "offset"))
        found: Floats = np.where(missing, np.nan, model.probability(np.where(missing, 0.0, scores)))
        return found


def _number(model: Json, name: str) -> float:
    value = model[name]
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} is {value!r}")
    return float(value)
