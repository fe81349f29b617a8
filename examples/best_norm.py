"""A calibration step: subtract the best score of the query, or a part of it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from swsdist.calibrate.steps.interface import Json, Options, Step, Tallies, TwvParameters, scores_of
from swsdist.core.arrays import Floats
from swsdist.kernels.coding import coded
from swsdist.registry.entries import StepEntry


class BestNormOptions(Options):
    """Options, under `calibrate.options.best-norm`."""

    part: float = Field(1.0, ge=0, le=1, description="share of the best score to subtract")


class BestNorm(Step[BestNormOptions]):
    """Scores relative to the query's best."""

    name: ClassVar[str] = "best-norm"
    version: ClassVar[int] = 1
    model: ClassVar[type[Options]] = BestNormOptions

    def apply(self, table: pa.Table, fitted: Json | None, statistics: Tallies, point: TwvParameters | None) -> Floats:
        """New scores of a table with all rows of each query; NaN where a row has no score."""
        names, query = coded(table["query_id"])
        scores = scores_of(table)
        best = np.full(len(names), -np.inf)
        np.fmax.at(best, query, scores)
        return scores - self.options.part * best[query]


#: How the step is registered.
STEP = StepEntry(f"{__name__}:BestNorm", 1, takes="any", gives="any", depends_on=("own query",))
