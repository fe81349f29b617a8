"""pooled-statistics: examples of all groups of queries -> their mean and variance, for `search.documents_by: pooled`.

The search adds the collection's to them, so that documents and queries are normalised by all frames together. Sums are
integers (`features.fitting.moments.Sums`), so groups do not affect the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from swsdist.core.types import STATISTICS
from swsdist.features.fitting.moments import Sums
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.queries import demand_examples, read_group
from swsdist.stages.task_results import Extracted


class Pooling(NamedTuple):
    """The payload of the task: files of the groups with examples."""

    groups: list[str]


class Pooled(NamedTuple):
    """Result: examples, and their frames."""

    examples: int
    frames: int


class PooledStatistics(Stage[Pooling]):
    """One task, over all queries."""

    name = "pooled-statistics"
    version = 1
    needs_run = "all queries"
    unit = "examples"
    phase = "search"
    takes = {"queries": "groups"}
    grows_with_hours = "same"
    grows_with_queries = "more"
    # Candidates contain their effect.
    tables = {"pooled_statistics": Table(STATISTICS, None, digested=False)}
    # Without them nothing could be normalised.
    all_or_nothing = True

    def plan(self, inputs: Inputs) -> Iterator[Task[Pooling]]:
        """The task, if there are queries."""
        groups = list(inputs.made("queries", Extracted))
        demand_examples(inputs, groups)
        some = [(part, group) for _, group, (part,) in groups if group.examples]
        if some:
            payload = Pooling([part.name for part, _ in some])
            examples = sum(group.examples for _, group in some)
            yield inputs.task(
                [part.sha256 for part, _ in some],
                label=f"mean and variance of {examples} examples",
                work=examples,
                payload=payload,
            )

    def run(self, task: Task[Pooling], context: Context) -> TaskOutput:
        """Sum the frames of all examples."""
        sums = []
        for name in task.payload.groups:
            for batch in read_group(context, name).select(["frames", "features"]).to_batches(max_chunksize=64):
                for row in batch.to_pylist():
                    frames = np.frombuffer(row["features"], "<f4").reshape(row["frames"], -1)
                    sums.append(Sums.from_blocks([frames], frames.shape[1]))
        total = reduce(add, sums)
        value = total.statistics()
        table = pa.Table.from_pylist(
            [
                {
                    "scope": "pooled",
                    "name": "",
                    "frames": value.frames,
                    "mean": value.mean.tolist(),
                    "variance": value.variance.tolist(),
                    "frozen": True,
                    "taken_from": [],
                }
            ],
            STATISTICS,
        )
        output = context.publish(task, "pooled_statistics", [table], STATISTICS)
        return TaskOutput((output,), Pooled(len(sums), value.frames))
