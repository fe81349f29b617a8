"""The chain discover: from audio to classes of stretches that recur, and a parse of all speech.

::

    [fit-transforms] -> index -> cut-segments -> propose-pairs | search-segments -> select-pairs -> align-pairs
        -> find-boundaries -> group-matches -> [score-discovery], export
"""

from __future__ import annotations

from swsdist.chains.check import check
from swsdist.chains.discover.cut_segments import CutSegments, SearchSegments
from swsdist.chains.discover.export_classes import KINDS, ExportClasses
from swsdist.chains.discover.group_matches import FindBoundaries, GroupMatches
from swsdist.chains.discover.inputs import DiscoverInputs
from swsdist.chains.discover.propose_pairs import AlignPairs, ProposePairs, SelectPairs
from swsdist.chains.discover.score_discovery import FILES, ScoreDiscovery, notices, publish_report, summary
from swsdist.chains.report.notices import barrier, counts
from swsdist.chains.report.reporting import rejected_rows
from swsdist.config import Config
from swsdist.core.codes import discovery as codes
from swsdist.pipeline.chain import Chain, Stage, Step
from swsdist.pipeline.ledger import Ledger
from swsdist.stages.fit_transforms import FitTransforms
from swsdist.stages.index import Index
from swsdist.stages.inputs.features import is_fitted


def build(config: Config, ledger: Ledger) -> Chain:
    """The chain of a config.

    Raises:
        ConfigError: invalid options, or exports that are of detections only.
    """
    others = [kind for kind in config.report.exports or () if kind not in KINDS]
    if others:
        raise codes.NO_EXPORT_OF_CLASSES(where="report.exports", export=others[0], exports=", ".join(KINDS))
    inputs = DiscoverInputs(config, ledger)
    stages: tuple[Stage | Step, ...] = (
        *([FitTransforms()] if is_fitted(config.features) else []),
        Index(),
        CutSegments(),
        SearchSegments() if inputs.options.neighbours.by == "exact" else ProposePairs(),
        SelectPairs(),
        AlignPairs(),
        FindBoundaries(),
        GroupMatches(),
        ScoreDiscovery(),
        Step("export", ExportClasses()),
    )
    return Chain(
        *("discover", stages, inputs, publish_report, FILES, notices, rejected_rows, check, summary),
        barrier=barrier,
        counts=counts,
    )
