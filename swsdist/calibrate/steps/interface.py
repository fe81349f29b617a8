"""The interface of a step of calibration: scores of detections in, scores out.

A step is a class with a name, a version and options, and an entry in `swsdist.registry.registries.CALIBRATION` that declares
its input and output (`swsdist.registry.entries.StepEntry`). It only changes scores. The scores of a query depend
on that query's rows, its statistics, and fitted values. Folds, files and decisions are the task of the procedure
(`swsdist.calibrate.procedure`): a step receives the rows of one fitted value. `swsdist.testing.conformance` checks a step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from swsdist.calibrate.statistics import Tally
from swsdist.core.arrays import Floats
from swsdist.kernels.regression import Labelled, logarithm
from swsdist.registry.entries import Options as Options
from swsdist.registry.entries import Score

#: Schema of a file of fitted steps.
STEPS_SCHEMA = "swsdist-steps/1"

#: A fitted model: plain, finite JSON values.
Json = Mapping[str, object]

#: Statistics of candidates and examples by name; None: there are none.
Tallies = Mapping[str, Tally] | None


class TwvParameters(NamedTuple):
    """The parameters of TWV at an operating point.

    Attributes:
        trials: T, of each query.
        beta: weight of false alarms.
    """

    trials: int
    beta: float

    @property
    def bayes_threshold(self) -> float:
        """ln(beta), natural: the threshold for log-likelihood ratios.

        Source: Rodriguez-Fuentes and Penagarikano 2013, eq. 31.
        """
        return float(logarithm(self.beta))


O = TypeVar("O", bound=Options)  # noqa: E741


class Step(Generic[O]):
    """Base of all steps, without options and not fitted.

    Attributes:
        name: its name in the registry.
        version: raised whenever the same input gives other scores.
        model: of its options.
        options: of this instance.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    model: ClassVar[type[Options]] = Options

    def __init__(self, options: O) -> None:
        self.options = options

    def threshold(self, point: TwvParameters) -> float | None:
        """The threshold for the step's output, if it has one."""
        return None

    def wants(self) -> tuple[str, ...]:
        """Names of statistics that the step needs with these options, in any position: about queries, and about the search's
        output regardless of preceding steps.
        """
        return ()

    def of_list(self) -> bool:
        """Whether a row's score depends, with these options, on other rows of its query. For document trials only rows with a
        true column `trial` count, if the column exists.
        """
        return False

    def refuses(self, kind: Score) -> str | None:
        """Why the step cannot process a kind of scores with these options although its entry accepts it, with a remedy; None
        if it can.
        """
        return None

    def gather(self, aligned: pa.Table, statistics: Tallies, point: TwvParameters | None) -> Labelled:
        """Collect training data from an aligned list.

        Args:
            aligned: TRIALS, all rows of its queries, in any order. A searched query with neither a detection nor a
                true occurrence has one row, with neither score nor `ref_start`.
            statistics, point: as of `apply`.
        """
        raise NotImplementedError(f"{self.name} is not fitted")

    def fit(self, parts: Iterable[Labelled], point: TwvParameters | None) -> Json | None:
        """Fit on collected training data.

        Args:
            parts: of `gather`.
            point: as of `apply`.

        Raises:
            UserError: there is too little training data.
        """
        return None

    def average(self, models: Sequence[Json]) -> Json:
        """Average the models of several folds, for other data."""
        raise NotImplementedError(f"{self.name} is not fitted")

    def apply(self, table: pa.Table, fitted: Json | None, statistics: Tallies, point: TwvParameters | None) -> Floats:
        """New scores.

        Args:
            table: DETECTIONS or TRIALS, all rows of each of its queries, at least one row.
            fitted: output of `fit`.
            statistics: those of its entry, over all candidates of the queries, unless an earlier step changed the
                scores; and those of `wants`. None if there are neither.
            point: the operating point, if its entry needs it.

        Returns:
            float64 (rows,), finite; NaN where there was no score (misses), and only there.
        """
        raise NotImplementedError


def scores_of(table: pa.Table) -> Floats:
    """The scores of a table; NaN for null."""
    scores: Floats = table["score"].to_numpy().astype(np.float64)
    return scores


def of_scores(table: pa.Table, values: Callable[[Floats], Floats]) -> Floats:
    """New scores of the rows that have one, NaN for the others; `values` gets 0 in the place of a missing one."""
    scores = scores_of(table)
    missing = np.isnan(scores)
    result: Floats = np.where(missing, np.nan, values(np.where(missing, 0.0, scores)))
    return result


def number_in(model: Json, name: str) -> float:
    """A finite number of a model.

    Raises:
        ValueError: it is none.
    """
    value = model[name]
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} is {value!r}")
    return float(value)
