"""The sweep chain scores one search at many points; `swsdist sweep` makes its plans, beside those of searches.

::

    (align.train of a search) -> learn -> compact -> score_points

Points of a plan are those of KST and STO that agree on all but alpha, beta, and which of both it is; or those of fitted
thresholds that agree on all but beta and the folds. The aligned list is read once, to be sorted; a task then scores some
points, and a process that does several tasks keeps the sorted list.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from swsdist.calibrate.thresholding import Method
from swsdist.chains.sweep.compact import Compact
from swsdist.chains.sweep.learn import Learn
from swsdist.chains.sweep.score_points import ScorePoints
from swsdist.config import Config
from swsdist.core.errors import ConfigError
from swsdist.pipeline.chain import Chain, ChainInputs, Step
from swsdist.pipeline.elsewhere import Elsewhere
from swsdist.pipeline.ledger import Ledger


class RescoredPoint(BaseModel):
    """A point.

    Attributes:
        method: which thresholding; or `fitted`, the threshold of best TWV.
        beta: weight of false alarms.
        trials: T.
        alpha: factor on S(w), of a thresholding.
        folds: of a fitted threshold; 1 fits on all (oracle).
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    method: Method | Literal["fitted"]
    beta: float
    trials: int
    alpha: float | None = None
    folds: int | None = None


class SweepOptions(BaseModel):
    """Options of the chain: they are written by `swsdist sweep`, into the plans that it makes.

    Attributes:
        searched: the plan whose search is scored, in the same run folder; empty: none.
        tolerance: s, of the mid-point rule; None where scores, and so pairs, are the same at all points.
        conventions: name of the program whose rules of alignment hold.
        rejects_all: whether a threshold that rejects everything is on the curve of TWV.
        points: to score.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    searched: str = ""
    tolerance: float | None = None
    conventions: str = "stdeval"
    rejects_all: bool = True
    points: tuple[RescoredPoint, ...] = ()


def build(config: Config, ledger: Ledger) -> Chain:
    """The chain of a config.

    Raises:
        ConfigError: its options are not valid.
    """
    try:
        options = SweepOptions.model_validate(config.options)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ConfigError(
            first["msg"],
            where=".".join(["options", *map(str, first["loc"])]),
            remedy="leave chain: sweep to `swsdist sweep`, which writes these options",
        ) from None
    found = Elsewhere(config.run, "align.train:trials", options.searched)
    reads = {"trials": found} if options.searched else {}
    stages = Step("learn", Learn(), reads), Step("compact", Compact(), reads), ScorePoints()
    return Chain("sweep", stages, ChainInputs())
