"""at-prior: converts log-likelihood ratios to posteriors at a prior, with threshold 1/2.

    p = sigmoid(llr + ln P / (1 - P))

p is 1/2 where llr is ``-ln P / (1 - P)``, the Bayes threshold at the effective prior P (eq. 31). P is that of the operating
point, 1 / (1 + beta); or a number; or 1 / |V|, for queries drawn from a vocabulary of |V| words where errors of both kinds cost
alike.

Source: Rodriguez-Fuentes and Penagarikano 2013, "MediaEval 2013 Spoken Web Search task: system performance measures", eqs. 30,
31 and 36, and section 4.2.3 on 1 / |V|.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from swsdist.calibrate.statistics import Tally
from swsdist.calibrate.steps.interface import Floats, Json, Options, Step, TwvParameters, scores_of
from swsdist.core.codes import calibrate as codes
from swsdist.kernels.regression import log_odds, logarithm, sigmoid


class AtPriorOptions(Options):
    """The prior."""

    prior: Literal["point"] | Annotated[float, Field(gt=0, lt=1)] = Field(
        "point", description="prior that a trial is a target; point: 1 / (1 + beta)"
    )
    vocabulary: Annotated[int, Field(ge=2)] | None = Field(
        None, description="instead: words that queries are drawn from, |V|; the prior is 1 / |V|"
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> AtPriorOptions:
        if self.vocabulary is not None and self.prior != "point":
            raise codes.CONFLICTING_PRIORS.invalid()
        return self


class AtPrior(Step[AtPriorOptions]):
    """Applied to each score; the threshold is 1/2."""

    name = "at-prior"
    version = 1
    model = AtPriorOptions

    def threshold(self, point: TwvParameters) -> float:
        """1/2."""
        return 0.5

    def apply(
        self, table: pa.Table, fitted: Json | None, statistics: Mapping[str, Tally] | None, point: TwvParameters | None
    ) -> Floats:
        """Posteriors."""
        assert point is not None  # the entry demands it
        scores = scores_of(table)
        missing = np.isnan(scores)
        posteriors: Floats = np.where(missing, np.nan, sigmoid(np.where(missing, 0.0, scores) + self._log_odds(point)))
        return posteriors

    def _log_odds(self, point: TwvParameters) -> float:
        if self.options.vocabulary is not None:
            return -float(logarithm(self.options.vocabulary - 1))
        if self.options.prior == "point":
            return -point.bayes_threshold
        return log_odds(self.options.prior)
