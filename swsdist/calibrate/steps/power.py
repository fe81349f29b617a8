"""power: raises probabilities to a power, which flattens or sharpens a query's list before its sum.

``p^gamma``; before `sto` this is ``p^gamma / sum p^gamma``, the form that Mamou et al. 2013 normalise by. 0 stays 0.

Source: Mamou et al., "System combination and score normalization for spoken term detection", ICASSP 2013.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from pydantic import Field, PositiveFloat

from swsdist.calibrate.statistics import Tally
from swsdist.calibrate.steps.interface import Floats, Json, Options, Step, TwvParameters, scores_of
from swsdist.calibrate.thresholding import checked
from swsdist.kernels.regression import exponential, logarithm


class PowerOptions(Options):
    """The exponent."""

    gamma: PositiveFloat = Field(1.0, description="exponent; below 1 it flattens, above 1 it sharpens")


class Power(Step[PowerOptions]):
    """Applied to each score."""

    name = "power"
    version = 1
    model = PowerOptions

    def apply(
        self, table: pa.Table, fitted: Json | None, statistics: Mapping[str, Tally] | None, point: TwvParameters | None
    ) -> Floats:
        """Probabilities.

        Raises:
            UserError: a score is not a probability.
        """
        scores = scores_of(table)
        missing = np.isnan(scores)
        probabilities = checked(np.where(missing, 0.0, scores))
        if self.options.gamma == 1.0:
            return scores
        some = probabilities > 0
        raised = np.zeros(len(probabilities))
        raised[some] = np.minimum(exponential(self.options.gamma * logarithm(probabilities[some])), 1.0)
        result: Floats = np.where(missing, np.nan, raised)
        return result
