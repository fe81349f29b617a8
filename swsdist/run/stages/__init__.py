"""The stages in their order; each is one file here, which wires plain functions of the lower layers to tasks."""

from __future__ import annotations

from swsdist.run.stages.align import Align
from swsdist.run.stages.decide import Decide
from swsdist.run.stages.export import Export
from swsdist.run.stages.fit import Fit
from swsdist.run.stages.index import Index
from swsdist.run.stages.normalise import Normalise
from swsdist.run.stages.queries import Queries
from swsdist.run.stages.reduce import Reduce
from swsdist.run.stages.score import Score
from swsdist.run.stages.search import Search
from swsdist.run.task import Stage

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
