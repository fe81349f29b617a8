"""reduce: candidates of all shards -> detections and score statistics, a bucket of queries at a time."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pyarrow as pa

from swsdist.chains.search.inputs import SearchInputs
from swsdist.chains.search.told import Bucket, Extracted
from swsdist.partition import bucket_of, bucket_slots
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Done, Task
from swsdist.reduce.examples import reduce_examples
from swsdist.store import parquet
from swsdist.types import DETECTIONS, QUERY_STATISTICS


class Reduce(Stage):
    """Each bucket reads its own rows of every file of candidates."""

    name = "reduce"
    version = 1
    unit = "candidates"
    tables = {"detections": Table(DETECTIONS), "statistics": Table(QUERY_STATISTICS)}

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """A task a bucket that holds a query."""
        own, config = inputs.own(SearchInputs), inputs.config
        settings, manifest = config.reduce, own.open_store().manifest
        nbest = settings.nbest.count(manifest.counts["seconds"])
        files = sorted(inputs.parts("candidates"), key=lambda part: part.name)
        how = config.search.examples
        # A template is one example, and of one the best is that.
        averaged = ["mean"] if how == "mean" else []
        query_ids = {q for _, group in inputs.told("examples", Extracted) for q in group.query_ids}
        common = {
            "nbest": nbest,
            "shift": manifest.shift,
            "unit": own.unit(config),
            "overlap": settings.overlap,
            "system": config.system,
        }
        for bucket in sorted({bucket_of(query_id, settings.buckets) for query_id in query_ids}):
            first, last = bucket_slots(bucket, settings.buckets)
            mine = [part for part in files if part.slots[0] <= last and first <= part.slots[1] and part.rows]
            yield inputs.task(
                settings.matters(),
                common,
                [first, last],
                *averaged,
                [part.name for part in mine],
                label=f"bucket {bucket}",
                work=round(sum(part.rows for part in files) / max(1, settings.buckets)),
                payload={
                    **common,
                    "examples": how,
                    "files": [part.name for part in mine],
                    "bucket": bucket,
                    "slots": [first, last],
                },
            )

    def warm(self, task: Task, context: Context) -> None:
        """Load the compiled kernel."""
        importlib.import_module("swsdist.kernels.suppression")

    def run(self, task: Task, context: Context) -> Done:
        """Overlaps out, the best N kept."""
        payload = task.payload
        first, last = payload["slots"]

        def candidates() -> Iterator[pa.Table]:
            for name in payload["files"]:
                yield parquet.in_slots(*context.place(name), (first, last))

        reduced = reduce_examples(
            payload["examples"],
            candidates,
            shift=payload["shift"],
            unit=payload["unit"],
            overlap=payload["overlap"],
            nbest=payload["nbest"],
            system=payload["system"],
        )
        slots = (first, last)
        outputs = (
            context.publish(task, "detections", [reduced.detections], DETECTIONS, slots),
            context.publish(task, "statistics", [reduced.statistics], QUERY_STATISTICS, slots),
        )
        return Done(outputs, Bucket(payload["bucket"], reduced.detections.num_rows))
