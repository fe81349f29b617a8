"""fill puts what stands for missing scores into joined lists, and leaves out overlaps within a query."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from swsdist.chains.fuse.inputs import FuseInputs
from swsdist.core.types import DETECTIONS, JOINED
from swsdist.fusion.fusing import without_gaps
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Done, Task
from swsdist.score import score_limits
from swsdist.stages.told import Bucket


class Fill(Stage):
    """The score becomes the mean of the systems' scores, by which of overlapping places of a query the best stays.

    That is before anything is fitted, so what is left out depends on no reference.
    """

    name = "fill"
    version = 1
    unit = "detections"
    phase = "search"
    takes = {"joined": "joined"}
    may_take = {"rescored": "rescored"}
    tables = {"filled": Table(JOINED)}

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """A task a bucket."""
        options = inputs.own(FuseInputs).options
        rule = "average" if options.missing == "average" else "least"
        rescored = inputs.parts("rescored") if inputs.has("rescored") else []
        for receipt, told in inputs.told("joined", Bucket):
            (joined,), (known,) = receipt.parts("joined"), receipt.parts("known")
            mine = [part.name for part in rescored if part.slots == joined.slots]
            yield inputs.task(
                receipt.fingerprint,
                mine,
                rule,
                options.overlap,
                inputs.config.system,
                label=f"bucket {told.bucket}",
                work=told.rows,
                payload={
                    "joined": joined.name,
                    "known": known.name,
                    "rescored": mine,
                    "missing": rule,
                    "overlap": options.overlap,
                    "system": inputs.config.system,
                    "bucket": told.bucket,
                    "slots": joined.slots,
                },
            )

    def run(self, task: Task, context: Context) -> Done:
        """Fill, then suppress."""
        payload = task.payload
        table = without_gaps(
            context.read(payload["joined"]),
            context.read(payload["known"]),
            missing=payload["missing"],
            overlap=payload["overlap"],
            rescored=[context.read(name) for name in payload["rescored"]],
        )
        place = table.schema.get_field_index("system")
        system = pa.array([payload["system"]] * table.num_rows, pa.string())
        table = table.set_column(place, DETECTIONS.field("system"), system)
        output = context.publish(task, "filled", [table], JOINED, tuple(payload["slots"]))
        limits = score_limits(table["score"].to_numpy().astype(np.float64))
        return Done((output,), Bucket(payload["bucket"], table.num_rows, *limits))
