"""The chain sweep: scores one search at many points. `swsdist sweep` makes its plans.

::

    (align.train of a search) -> fit-calibration -> sort-scores -> score_points
    (reduce of a search, if it gives posteriors) --^

The points of a plan are of KST and STO, and differ only in alpha, beta and method; or of fitted thresholds, and differ
only in beta and folds. The aligned list is read once, to be sorted; a task then scores some points, and a process that
does several tasks keeps the sorted list.
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
    """The chain for a config, whose options `swsdist sweep` writes.

    The options: `searched`, the plan of the search, in the same run folder; `sums`, whether S(w) is the search's statistic over
    all candidates, not the sum over its list; `tolerance` (s) of the mid-point rule, None
    if scores, and so pairs, are the same at all points; `conventions`, the program whose alignment rules apply;
    `rejects_all`, whether a threshold that rejects everything is on the curve of TWV; and `points`, each with `method`
    (`fitted`: the threshold of best TWV), `beta`, `trials`, and `alpha` or `folds` (1: fitted on all); `queries`, those of the
    search, which steps are fitted with.

    Raises:
        ConfigError: unknown options.
    """
    if config.options.keys() - {"searched", "queries", "sums", "tolerance", "conventions", "rejects_all", "points"}:
        raise codes.SWEEP_OPTIONS(where="options", options=", ".join(config.options))
    searched = str(config.options.get("searched", ""))
    reads = {"trials": ExternalTable(config.run, "aligned", searched)} if searched else {}
    listed = dict(reads)
    if searched and config.options.get("sums"):
        listed["statistics"] = ExternalTable(config.run, "statistics", searched)
    stages = Step("fit-calibration", FitCalibration(), reads), Step("sort-scores", SortScores(), listed), ScorePoints()
    return Chain("sweep", stages, ChainInputs())
