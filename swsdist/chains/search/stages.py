"""The stages in their order; each is one file here, which wires plain functions of the lower layers to tasks."""

from __future__ import annotations

from swsdist.chains.search.align import Align
from swsdist.chains.search.decide import Decide
from swsdist.chains.search.export import Export
from swsdist.chains.search.fit import Fit
from swsdist.chains.search.index import Index
from swsdist.chains.search.normalise import Normalise
from swsdist.chains.search.queries import Queries
from swsdist.chains.search.reduce import Reduce
from swsdist.chains.search.score import Score
from swsdist.chains.search.search import Search
from swsdist.pipeline.task import Stage

#: All stages by name, in the order in which they run.
STAGES: dict[str, Stage] = {
    stage.name: stage
    for stage in (
        Index(),
        Queries(),
        Search(),
        Reduce(),
        Normalise(),
        Align(),
        Fit(),
        Decide(),
        Score(),
        Export(),
    )
}
