"""align: which detection matches which true occurrence, a bucket of queries at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from swsdist.chains.search.normalise import normalised_name
from swsdist.fingerprint import fingerprint
from swsdist.partition import bucket_of
from swsdist.pipeline.state import State
from swsdist.pipeline.task import Context, Done, Stage, Task
from swsdist.score import align, protocol
from swsdist.store import parquet
from swsdist.types import DETECTIONS, REFERENCES, TRIALS


def aligned_name(fingerprint: str) -> str:
    """Where a bucket's aligned list lies in the run folder."""
    return f"tables/aligned/{fingerprint}.parquet"


class Align(Stage):
    """Alignment ignores decisions, so it comes before them, and its result fits thresholds as well as scores them."""

    name = "align"
    version = 1
    phase = "score"
    unit = "detections"

    def plan(self, state: State) -> Iterator[Task]:
        """A task a bucket that has detections or references; none without references."""
        references = state.references
        if references is None:
            return
        normalised = {receipt.summary["bucket"]: receipt for receipt in state.ended["normalise"].receipts}
        low = min((r.summary["low"] for r in normalised.values()), default=0.0)
        high = max((r.summary["high"] for r in normalised.values()), default=0.0)
        buckets = state.config.reduce.buckets
        true: dict[int, list[int]] = {bucket: [] for bucket in normalised}
        for row, query_id in enumerate(references["query_id"].to_pylist()):
            true.setdefault(bucket_of(query_id, buckets), []).append(row)
        settings = state.config.score
        rules = protocol(settings.protocol, tolerance=settings.tolerance)
        conventions = [] if rules.conventions == "stdeval" else [rules.conventions]
        for bucket, rows in sorted(true.items()):
            mine = references.take(pa.array(rows, pa.int64())).to_pylist()
            found = normalised.get(bucket)
            source = found.fingerprint if found is not None else None
            name = fingerprint(self.name, self.version, rules.tolerance, low, high, source, mine, *conventions)
            payload = {"detections": source, "references": mine, "low": low, "high": high, "tolerance": rules.tolerance}
            payload["conventions"] = rules.conventions
            work = found.summary["detections"] if found is not None else len(mine)
            yield Task(self.name, name, f"bucket {bucket}", work, {**payload, "bucket": bucket})

    def run(self, task: Task, context: Context) -> Done:
        """One-to-one pairs, as the protocol's program makes them."""
        stdeval = task.payload["conventions"] == "stdeval"
        source = task.payload["detections"]
        references = pa.Table.from_pylist(task.payload["references"], REFERENCES)
        if source is None:
            detections = DETECTIONS.empty_table()
        else:
            detections = parquet.read(context.run, normalised_name(source))
        trials = align(
            detections,
            references,
            tolerance=task.payload["tolerance"],
            low=task.payload["low"] if stdeval else None,
            high=task.payload["high"] if stdeval else None,
            conventions=task.payload["conventions"],
        )
        output = parquet.publish(context.run, aligned_name(task.fingerprint), [trials], TRIALS)
        return Done((output,), summary={"bucket": task.payload["bucket"], "trials": trials.num_rows})
