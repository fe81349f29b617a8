"""The stage collect-queries: the queries of all systems, without reading audio."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from swsdist.chains.fuse.inputs import FuseInputs
from swsdist.chains.fuse.systems import demand_configured
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.task_results import Extracted


class CollectQueries(Stage[Extracted]):
    """A query of several systems has the examples and frames of the first of them."""

    name = "collect-queries"
    version = 1
    unit = "queries"
    phase = "search"
    tables = {"groups": Table(None, None, digested=False)}
    in_driver = True

    def plan(self, inputs: Inputs) -> Iterator[Task[Extracted]]:
        """One task."""
        fuse_inputs = inputs.chain_inputs(FuseInputs)
        fuse_inputs.settle()
        demand_configured(fuse_inputs)
        seen: set[str] = set()
        result: dict[str, Any] = {"examples": 0, "query_ids": [], "frames": 0, "seconds": 0.0, "cuts": []}
        for chain_run in fuse_inputs.chain_runs.values():
            for group in chain_run.results("groups", Extracted):
                fresh = [query_id for query_id in group.query_ids if query_id not in seen]
                if not fresh:
                    continue
                result["query_ids"] += fresh
                result["cuts"] += [cut for cut in group.cuts if cut[0] not in seen]
                for name in ("examples", "frames", "seconds"):
                    result[name] += getattr(group, name) * len(fresh) / len(group.query_ids)
                seen.update(fresh)
        result |= {"examples": round(result["examples"]), "frames": round(result["frames"])}
        yield inputs.task(result, label=f"{len(seen)} queries", work=len(seen), payload=Extracted(**result))

    def run(self, task: Task[Extracted], context: Context) -> TaskOutput:
        """Return the queries."""
        return TaskOutput((), task.payload)
