"""The interface of a step of calibration: scores of detections in, other scores out.

A step is a class with a name, a version and options, and an entry in `swsdist.registry.registries.CALIBRATION` that says what
it takes and gives (`swsdist.registry.calibration_entries.StepEntry`). It changes scores and nothing else. The scores of a
query depend only on that query's rows, its statistics, and fitted values. Folds, files and decisions belong to the procedure
(`swsdist.calibrate.procedure`): a step sees the rows that one fitted value is for. `swsdist.testing.conformance` checks a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from swsdist.calibrate.statistics import Tally
from swsdist.kernels.regression import logarithm
from swsdist.registry.calibration_entries import Score

Floats = NDArray[np.float64]

#: Of a file of fitted steps.
STEPS_SCHEMA = "swsdist-steps/1"

#: What was fitted: plain JSON values, finite.
Json = Mapping[str, object]


class TwvParameters(NamedTuple):
    """The operating point.

    Attributes:
        trials: T, of each query.
        beta: weight of false alarms.
    """

    trials: int
    beta: float

    @property
    def bayes_threshold(self) -> float:
        """ln(beta), natural: from it on a log-likelihood ratio is decided YES.

        Source: Rodriguez-Fuentes and Penagarikano 2013, eq. 31.
        """
        return float(logarithm(self.beta))


class Options(BaseModel):
    """Base of a step's options: unknown ones, infinity and NaN are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Addable(Protocol):
    """What a step gathers of labelled detections."""

    def __add__(self, other: Self, /) -> Self: ...


O = TypeVar("O", bound=Options)  # noqa: E741
P = TypeVar("P", bound=Addable)


class Step(Generic[O, P]):
    """Base of all steps: one without options of its own, that is not fitted.

    Attributes:
        name: its name in the registry.
        version: raised whenever the same input gives other scores.
        model: of its options.
        options: those it was made with.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    model: ClassVar[type[Options]] = Options

    def __init__(self, options: O) -> None:
        self.options = options

    def threshold(self, point: TwvParameters) -> float | None:
        """The threshold for the scores it makes, where it knows one."""
        return None

    def wants(self) -> tuple[str, ...]:
        """Names of statistics that it wants with these options, wherever it stands in the order: facts about queries and
        about what the search gave, whatever steps came between."""
        return ()

    def of_list(self) -> bool:
        """Whether a row's score depends, with these options, on other rows of its query. It is fitted on trials, and where
        these are documents only rows of lists for which a column `trial` is true, if there is one, are such rows."""
        return False

    def refuses(self, kind: Score) -> str | None:
        """Why it cannot do with scores of a kind with these options, although its entry says so, and what to do; None: it
        can."""
        return None

    def gather(self, aligned: pa.Table, statistics: Mapping[str, Tally] | None, point: TwvParameters | None) -> P:
        """What is learnt of an aligned list: a value that adds.

        Args:
            aligned: TRIALS, all rows of its queries, in any order. A query that was asked and has neither a detection nor a
                true occurrence has one row, with neither score nor `ref_start`.
            statistics, point: as of `apply`.
        """
        raise NotImplementedError(f"{self.name} is not fitted")

    def fit(self, parts: Iterable[P]) -> Json | None:
        """Fit on what was gathered of some lists.

        Raises:
            UserError: there is too little to learn from.
        """
        return None

    def average(self, models: Sequence[Json]) -> Json:
        """One fitted value out of those of several folds, to be applied to other data."""
        raise NotImplementedError(f"{self.name} is not fitted")

    def apply(
        self, table: pa.Table, fitted: Json | None, statistics: Mapping[str, Tally] | None, point: TwvParameters | None
    ) -> Floats:
        """New scores.

        Args:
            table: DETECTIONS or TRIALS, all rows of each of its queries, at least one row.
            fitted: what `fit` gave.
            statistics: those that its entry names, of all candidates of the queries, unless an earlier step changed the
                scores, so that they no longer describe them; and those that `wants` names. None where there are neither.
            point: the operating point, where its entry wants one.

        Returns:
            float64 (rows,), finite; NaN where there was no score (misses), and only there.
        """
        raise NotImplementedError


def scores_of(table: pa.Table) -> Floats:
    """The scores of a table; NaN where there is none."""
    scores: Floats = table["score"].to_numpy().astype(np.float64)
    return scores
