"""The sweep chain scores one search at many points; `swsdist sweep` makes its plans, beside those of searches.

::

    (align.train of a search) -> learn -> compact -> score_points

Points of a plan are those of KST and STO that agree on all but alpha, beta, and which of both it is; or those of fitted
thresholds that agree on all but beta and the folds. The aligned list is read once, to be sorted; a task then scores some
points, and a process that does several tasks keeps the sorted list.
"""

from __future__ import annotations

from swsdist.chains.sweep.fit_calibration import FitCalibration
from swsdist.chains.sweep.score_points import ScorePoints
from swsdist.chains.sweep.sort_scores import SortScores
from swsdist.config import Config
from swsdist.core.codes import sweep as codes
from swsdist.pipeline.chain import Chain, ChainInputs, Step
from swsdist.pipeline.external_table import ExternalTable
from swsdist.pipeline.ledger import Ledger


def build(config: Config, ledger: Ledger) -> Chain:
    """The chain of a config, whose options `swsdist sweep` has written.

    They are: `searched`, the plan whose search is scored, in the same run folder; `tolerance` (s) of the mid-point rule, None
    where scores, and so pairs, are the same at all points; `conventions`, the program whose rules of alignment hold;
    `rejects_all`, whether a threshold that rejects everything is on the curve of TWV; and `points`, each with `method`
    (`fitted`: the threshold of best TWV), `beta`, `trials`, and `alpha` or `folds` (1: fitted on all).

    Raises:
        ConfigError: it is a config of somebody else.
    """
    if config.options.keys() - {"searched", "tolerance", "conventions", "rejects_all", "points"}:
        raise codes.SWEEP_OPTIONS(where="options", options=", ".join(config.options))
    searched = str(config.options.get("searched", ""))
    reads = {"trials": ExternalTable(config.run, "align.train:trials", searched)} if searched else {}
    stages = Step("fit-calibration", FitCalibration(), reads), Step("sort-scores", SortScores(), reads), ScorePoints()
    return Chain("sweep", stages, ChainInputs())
