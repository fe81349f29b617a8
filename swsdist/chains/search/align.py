"""align: which detection matches which true occurrence, a bucket of queries at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from swsdist.chains.search.inputs import SearchInputs
from swsdist.chains.search.told import Bucket
from swsdist.partition import bucket_of, slots_of
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Done, Task
from swsdist.score import align, protocol
from swsdist.types import DETECTIONS, REFERENCES, TRIALS


class Align(Stage):
    """Alignment looks at scores and ignores decisions. So one alignment, of comparable scores, can fit what decides, and
    another, of the final scores, is counted.
    """

    name = "align"
    version = 1
    unit = "detections"
    tables = {"trials": Table(TRIALS)}

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """A task a bucket that has detections or references; none without references."""
        references = inputs.own(SearchInputs).references
        if references is None:
            return
        told = [told for _, told in inputs.told("detections", Bucket)]
        lists = {one.bucket: (part, one) for part, one in zip(inputs.parts("detections"), told, strict=True)}
        settings = inputs.config.score
        rules = protocol(settings.protocol, tolerance=settings.tolerance)
        low = high = None
        if rules.conventions == "stdeval":
            low = min((one.low for one in told), default=0.0)
            high = max((one.high for one in told), default=0.0)
        buckets = inputs.config.reduce.buckets
        true: dict[int, list[int]] = {bucket: [] for bucket in lists}
        for row, query_id in enumerate(references["query_id"].to_pylist()):
            true.setdefault(bucket_of(query_id, buckets), []).append(row)
        for bucket, rows in sorted(true.items()):
            mine = references.take(pa.array(rows, pa.int64())).to_pylist()
            part, one = lists.get(bucket, (None, None))
            yield inputs.task(
                rules.tolerance,
                rules.conventions,
                low,
                high,
                part.name if part is not None else None,
                mine,
                label=f"bucket {bucket}",
                work=one.rows if one is not None else len(mine),
                payload={
                    "detections": part.name if part is not None else None,
                    "references": mine,
                    "rules": {"tolerance": rules.tolerance, "conventions": rules.conventions, "low": low, "high": high},
                    "bucket": bucket,
                    "slots": [slots_of(bucket, buckets)[0], slots_of(bucket, buckets)[-1]],
                },
            )

    def run(self, task: Task, context: Context) -> Done:
        """One-to-one pairs, as the protocol's program makes them."""
        source = task.payload["detections"]
        references = pa.Table.from_pylist(task.payload["references"], REFERENCES)
        detections = DETECTIONS.empty_table() if source is None else context.read(source)
        trials = align(detections, references, **task.payload["rules"])
        output = context.publish(task, "trials", [trials], TRIALS, tuple(task.payload["slots"]))
        return Done((output,), Bucket(task.payload["bucket"], trials.num_rows))
