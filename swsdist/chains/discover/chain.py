"""The chain discover: from audio to classes of stretches that recur, and a parse of all speech.

::

    [fit-transforms] -> index -> cut-segments -> propose-pairs -> select-pairs -> align-pairs -> group-matches
        -> score-discovery
"""

from __future__ import annotations

from swsdist.chains.discover.align_pairs import AlignPairs
from swsdist.chains.discover.cut_segments import CutSegments
from swsdist.chains.discover.group_matches import GroupMatches
from swsdist.chains.discover.inputs import DiscoverInputs
from swsdist.chains.discover.propose_pairs import ProposePairs
from swsdist.chains.discover.score_discovered import ScoreDiscovered
from swsdist.chains.discover.select_pairs import SelectPairs
from swsdist.config import Config
from swsdist.methods.create import create
from swsdist.pipeline.chain import Chain
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.stage import Stage
from swsdist.stages.fit_transforms import FitTransforms
from swsdist.stages.index import Index
from swsdist.stages.inputs.unfitted_models import is_fitted


def build(config: Config, ledger: Ledger) -> Chain:
    """The chain of a config.

    Raises:
        ConfigError: invalid options.
    """
    inputs = DiscoverInputs(config, ledger)
    create(config.search)
    stages: tuple[Stage, ...] = (
        *([FitTransforms()] if is_fitted(config.features) else []),
        Index(),
        CutSegments(),
        ProposePairs(),
        SelectPairs(),
        AlignPairs(),
        GroupMatches(),
        ScoreDiscovered(),
    )
    return Chain("discover", stages, inputs)
