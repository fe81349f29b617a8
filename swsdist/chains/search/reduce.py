"""reduce: candidates of all shards -> detections and score statistics, a bucket of queries at a time."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.chains.search.search import candidates_name
from swsdist.fingerprint import fingerprint
from swsdist.io.filesystem import Folder
from swsdist.pipeline.state import State
from swsdist.pipeline.task import Context, Done, Stage, Task
from swsdist.reduce.buckets import bucket_of
from swsdist.reduce.examples import reduce_examples
from swsdist.store import parquet
from swsdist.types import DETECTIONS, QUERY_STATISTICS


def detections_name(fingerprint: str) -> str:
    """Where a bucket's detections lie in the run folder."""
    return f"tables/detections/{fingerprint}.parquet"


def statistics_name(fingerprint: str) -> str:
    """Where a bucket's score statistics lie in the run folder."""
    return f"tables/statistics/{fingerprint}.parquet"


def candidates_of(run: Folder, name: str, bucket: int) -> pa.Table:
    """The candidates of a bucket in a file, whatever its row groups are."""
    with parquet.reader(run, name) as file:
        table = file.read_row_groups(parquet.holding(file, "bucket", bucket), use_threads=False)
    return table.filter(pc.equal(table["bucket"], bucket))


class Reduce(Stage):
    """Each bucket reads its own rows of every file of candidates."""

    name = "reduce"
    version = 1
    phase = "search"
    unit = "candidates"

    def plan(self, state: State) -> Iterator[Task]:
        """A task a bucket that holds a query."""
        manifest = state.manifest
        assert manifest is not None  # index has come to its end
        settings = state.config.reduce
        nbest = settings.nbest.count(manifest.counts["seconds"])
        searched = sorted(state.ended["search"].receipts, key=lambda receipt: receipt.fingerprint)
        # A template is one example, and of one the best is that.
        how = "mean" if state.config.search.examples == "mean" else "best"
        query_ids = {q for receipt in state.ended["queries"].receipts for q in receipt.summary["query_ids"]}
        for bucket in sorted({bucket_of(query_id, settings.buckets) for query_id in query_ids}):
            files = [
                candidates_name(receipt.fingerprint) for receipt in searched if bucket in receipt.summary["buckets"]
            ]
            parts = [settings.matters(), nbest, manifest.shift, state.unit, state.config.system, bucket]
            parts += [how] if how != "best" else []
            name = fingerprint(self.name, self.version, *parts, files)
            work = sum(receipt.summary["candidates"] for receipt in searched) / max(1, settings.buckets)
            payload = {"files": files, "nbest": nbest, "shift": manifest.shift, "unit": state.unit, "bucket": bucket}
            yield Task(self.name, name, f"bucket {bucket}", round(work), payload)

    def warm(self, context: Context) -> None:
        """Load the compiled kernel."""
        importlib.import_module("swsdist.kernels.suppression")

    def run(self, task: Task, context: Context) -> Done:
        """Overlaps out, the best N kept."""
        rows = 0

        def candidates() -> Iterator[pa.Table]:
            nonlocal rows
            rows = 0  # the mean reads them twice
            for name in task.payload["files"]:
                table = candidates_of(context.run, name, task.payload["bucket"])
                rows += table.num_rows
                yield table

        reduced = reduce_examples(
            context.config.search.examples,
            candidates,
            shift=task.payload["shift"],
            unit=task.payload["unit"],
            overlap=context.config.reduce.overlap,
            nbest=task.payload["nbest"],
            system=context.config.system,
        )
        outputs = (
            parquet.publish(context.run, detections_name(task.fingerprint), [reduced.detections], DETECTIONS),
            parquet.publish(context.run, statistics_name(task.fingerprint), [reduced.statistics], QUERY_STATISTICS),
        )
        summary = {"bucket": task.payload["bucket"], "detections": reduced.detections.num_rows, "candidates": rows}
        return Done(outputs, summary=summary)
