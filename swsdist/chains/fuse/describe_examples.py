"""The stage describe-examples: what steps after the fusion want to know of the examples that the systems searched."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from swsdist.audio.commands import are_permitted
from swsdist.calibrate.procedure import required_statistics
from swsdist.calibrate.statistics import load_statistics
from swsdist.chains.fuse.inputs import FuseInputs
from swsdist.features.interface import Precomputed
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.task import Task, Values
from swsdist.registry.registries import STATISTICS
from swsdist.stages.describe import Describe, Describing
from swsdist.stages.task_results import Extracted


class DescribeExamples(Describe):
    """A task per system and group of queries; an example of several systems is described by the sums over them."""

    name = "describe-examples"
    takes = {}

    def plan(self, inputs: Inputs) -> Iterator[Task[Describing]]:
        """A task for the statistics of each group of each system."""
        names = list(load_statistics(required_statistics(inputs.config.calibrate), "examples"))
        for name, chain_run in inputs.chain_inputs(FuseInputs).chain_runs.items():
            searched, config = chain_run.chain.inputs, chain_run.config
            precomputed = any(isinstance(source.extractor, Precomputed) for source in searched.features.sources)
            rows = defaultdict[str, list[Values]](list)
            for row in searched.examples:
                rows[row["query_id"]].append(row)
            for _, group, (part,) in chain_run.table("groups", absolute=True).made(Extracted):
                members = [row for query_id in group.query_ids for row in rows[query_id]]
                trim = config.queries.trim == "auto" and not precomputed
                payload = Describing(part.name, members, names, trim, are_permitted())
                key_parts = [STATISTICS.identity(each) for each in names], part.sha256
                label = f"{name}, {group.examples} examples"
                yield inputs.task(*key_parts, label=label, work=group.examples, payload=payload)
