"""The stage impute-scores: fill missing scores of joined lists, and suppress overlaps within a query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import pyarrow as pa

from swsdist.chains.fuse.inputs import FuseInputs
from swsdist.core.types import DETECTIONS, JOINED
from swsdist.fusion.fusing import complete_list
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.buckets import BucketStage


class Filling(NamedTuple):
    """The payload of a task."""

    joined: str
    known: str
    rescored: list[str]
    missing: Literal["average", "least"]
    overlap: float
    system: str
    found_by: int


class ImputeScores(BucketStage[Filling]):
    """The score becomes the mean of the systems' scores; of overlapping places of a query the best is kept.

    Nothing is fitted before, so the suppression depends on no reference.
    """

    name = "impute-scores"
    version = 1
    phase = "search"
    takes = {"joined": "joined", "known": "known"}
    may_take = {"rescored": "rescored"}
    tables = {"filled": Table(JOINED)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Filling]]:
        """One task per bucket."""
        options, system = inputs.chain_inputs(FuseInputs).options, inputs.config.system
        rule: Literal["average", "least"] = "average" if options.missing == "average" else "least"
        rescored = inputs.parts("rescored")
        for joined, statistics in inputs.buckets("joined", "known"):
            rescored_files = [part.name for part in rescored if part.slots == joined.slots]
            payload = Filling(
                joined.name, statistics.name, rescored_files, rule, options.overlap, system, options.found_by
            )
            key_parts = [joined.name, statistics.name, rescored_files, rule, options.overlap, system]
            key_parts += [options.found_by] if options.found_by > 1 else []
            yield self.following(joined, inputs, *key_parts, payload=payload)

    def run(self, task: Task[Filling], context: Context) -> TaskOutput:
        """Fill, then suppress."""
        payload = task.payload
        table = complete_list(
            context.read(payload.joined),
            context.read(payload.known),
            missing=payload.missing,
            overlap=payload.overlap,
            rescored=[context.read(name) for name in payload.rescored],
            found_by=payload.found_by,
        )
        place = table.schema.get_field_index("system")
        system = pa.array([payload.system] * table.num_rows, pa.string())
        return self.done(task, context, table.set_column(place, DETECTIONS.field("system"), system))
