"""reduce: candidates of all shards -> detections and score statistics, a bucket of queries at a time."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from swsdist.chains.search.search import candidates_name
from swsdist.fingerprint import fingerprint
from swsdist.io.filesystem import Folder
from swsdist.partition import bucket_of, slots_of
from swsdist.pipeline.state import State
from swsdist.pipeline.task import Context, Done, Stage, Task
from swsdist.reduce.examples import reduce_examples
from swsdist.registries import STATISTICS
from swsdist.store import parquet
from swsdist.types import DETECTIONS, QUERY_STATISTICS


def detections_name(fingerprint: str) -> str:
    """Where a bucket's detections lie in the run folder."""
    return f"tables/detections/{fingerprint}.parquet"


def statistics_name(fingerprint: str) -> str:
    """Where a bucket's score statistics lie in the run folder."""
    return f"tables/statistics/{fingerprint}.parquet"


def candidates_of(run: Folder, name: str, slots: range) -> pa.Table:
    """The candidates of some slots in a file, whatever its row groups are."""
    with parquet.reader(run, name) as file:
        table = file.read_row_groups(parquet.holding(file, "slot", slots[0], slots[-1]), use_threads=False)
    slot = table["slot"]
    return table.filter(pc.and_(pc.greater_equal(slot, slots[0]), pc.less_equal(slot, slots[-1])))


class Reduce(Stage):
    """Each bucket reads its own rows of every file of candidates."""

    name = "reduce"
    version = 2
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
        merge = settings.merge or "best"
        statistics = [STATISTICS.identity(name) for name in state.config.calibrate.statistics]
        query_ids = {q for receipt in state.ended["queries"].receipts for q in receipt.summary["query_ids"]}
        for bucket in sorted({bucket_of(query_id, settings.buckets) for query_id in query_ids}):
            files = [
                candidates_name(receipt.fingerprint) for receipt in searched if bucket in receipt.summary["buckets"]
            ]
            parts = [settings.matters(), merge, nbest, manifest.shift, state.config.system, bucket, how, *statistics]
            parts += [state.unit] if how == "mean" else []
            name = fingerprint(self.name, self.version, *parts, files)
            work = sum(receipt.summary["candidates"] for receipt in searched) / max(1, settings.buckets)
            payload = {"files": files, "nbest": nbest, "shift": manifest.shift, "bucket": bucket}
            payload |= {"merge": merge, "fineness": 1024 * state.unit}
            yield Task(self.name, name, f"bucket {bucket}", round(work), payload)

    def warm(self, context: Context) -> None:
        """Load the compiled kernel."""
        importlib.import_module("swsdist.kernels.suppression")

    def run(self, task: Task, context: Context) -> Done:
        """Overlaps out, the best N kept."""
        rows = 0
        slots = slots_of(task.payload["bucket"], context.config.reduce.buckets)

        def candidates() -> Iterator[pa.Table]:
            nonlocal rows
            rows = 0  # the mean reads them twice
            for name in task.payload["files"]:
                table = candidates_of(context.run, name, slots)
                rows += table.num_rows
                yield table

        reduced = reduce_examples(
            context.config.search.examples,
            candidates,
            tick=task.payload["shift"],
            overlap=context.config.reduce.overlap,
            nbest=task.payload["nbest"],
            system=context.config.system,
            merge=task.payload["merge"],
            statistics=context.config.calibrate.statistics,
            fineness=task.payload["fineness"],
        )
        outputs = (
            parquet.publish(context.run, detections_name(task.fingerprint), [reduced.detections], DETECTIONS),
            parquet.publish(context.run, statistics_name(task.fingerprint), [reduced.statistics], QUERY_STATISTICS),
        )
        summary = {"bucket": task.payload["bucket"], "detections": reduced.detections.num_rows, "candidates": rows}
        return Done(outputs, summary=summary)
