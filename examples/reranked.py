"""The search, with a step after reduce that reads `detections` and makes `detections`: here 5 is added to each score."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pyarrow.compute as pc

from swsdist.chains.check import assemble
from swsdist.config import Config
from swsdist.core.types import DETECTIONS
from swsdist.pipeline.chain import Chain, Context, Inputs, Table
from swsdist.pipeline.ledger import Ledger
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.registry.entries import ChainEntry
from swsdist.stages.buckets import BucketStage
from swsdist.stages.steps import steps


class Rerank(BucketStage[str]):
    """A task for each bucket of queries; its payload is the name of a file."""

    name = "rerank"
    version = 1
    phase = "search"
    takes: ClassVar[dict[str, str]] = {"detections": "detections"}
    tables: ClassVar[dict[str, Table]] = {"detections": Table(DETECTIONS)}

    def plan(self, inputs: Inputs) -> Iterator[Task[str]]:
        """The outputs depend on the input's bytes only, besides stage and version."""
        for (part,) in inputs.buckets("detections"):
            yield self.following(part, inputs, part.sha256, payload=part.name)

    def run(self, task: Task[str], context: Context) -> TaskOutput:
        """Rescore; detections stay best first within each query."""
        table = context.read(task.payload)
        place = table.schema.get_field_index("score")
        scores = pc.add(table["score"], 5.0)
        return self.done(task, context, table.set_column(place, table.schema.field(place), scores))


def build(config: Config, ledger: Ledger) -> Chain:
    """The steps of a search and this one, with the report, checks and warnings of a search."""
    stages = [*steps(config)]
    stages.insert(1 + [stage.name for stage in stages].index("reduce"), Rerank())
    return assemble(config, ledger, stages)


#: How the chain is registered; its lists can be fused and swept.
CHAIN = ChainEntry(f"{__name__}:build", 1, searches=True)
