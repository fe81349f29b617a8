"""KST and STO: a threshold per term, from the sum of the probabilities of its detections, S(w).

S(w) is over all candidates of the search if the scores are the search's, and over the list of detections if a logistic
computed the probabilities: see docs/decisions/0006-posterior-sums-in-a-run.md. S(w) estimates the number of true trials, so
for document trials it is over the best detection of each document. Equations: `swsdist.calibrate.thresholding`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field, PositiveFloat

from swsdist.calibrate.statistics import Tally, posterior_sums
from swsdist.calibrate.steps.interface import Floats, Json, Options, Step, TwvParameters, scores_of
from swsdist.calibrate.thresholding import ALPHA, Method, PosteriorSums, Thresholding
from swsdist.kernels.coding import coded


class ByTermOptions(Options):
    """Options of KST and STO."""

    alpha: PositiveFloat = Field(ALPHA, description="a query is taken to occur alpha times its sum of probabilities")


class ByTerm(Step[ByTermOptions]):
    """A method of `swsdist.calibrate.thresholding`."""

    model = ByTermOptions
    method: ClassVar[Method]

    def threshold(self, point: TwvParameters) -> float:
        """1/2, or eq. 5 of Wang and Metze 2014."""
        return self._how(point).threshold

    def of_list(self) -> bool:
        """S(w) is a sum over the query's list."""
        return True

    def apply(
        self, table: pa.Table, fitted: Json | None, statistics: Mapping[str, Tally] | None, point: TwvParameters | None
    ) -> Floats:
        """Normalised scores.

        Raises:
            UserError: a score is not a probability.
        """
        assert point is not None  # the entry demands it
        names, code = coded(table["query_id"])
        if "trial" in table.column_names:
            sums = PosteriorSums.of(table.filter(table["trial"])).values(names)
        elif statistics is None:
            sums = PosteriorSums.of(table).values(names)
        else:
            sums_of = posterior_sums(statistics["posterior-sums"])
            sums = np.array([sums_of.get(name, 0.0) for name in names], np.float64)
        scores = scores_of(table)
        missing = np.isnan(scores)
        normalised = self._how(point).normalised(np.where(missing, 0.0, scores), sums[code])
        result: Floats = np.where(missing, np.nan, normalised)
        return result

    def _how(self, point: TwvParameters) -> Thresholding:
        return Thresholding(self.method, point.trials, point.beta, self.options.alpha)


class Kst(ByTerm):
    """p (1 - thr) / (p (1 - thr) + (1 - p) thr), thr being the threshold of the term (eqs. 3 and 4).

    So the odds of the score are those of p divided by those of thr, and the threshold is 1/2.
    """

    name = "kst"
    version = 1
    method = "kst"


class Sto(ByTerm):
    """A probability over the sum of those of its term (eqs. 5 and 6)."""

    name = "sto"
    version = 1
    method = "sto"
