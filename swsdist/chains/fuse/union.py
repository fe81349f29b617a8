"""union joins the lists of the systems, one bucket of queries at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from swsdist.chains.fuse.inputs import FuseInputs
from swsdist.core.errors import ConfigError
from swsdist.core.partition import bucket_of, slots_of
from swsdist.core.types import DETECTIONS, JOINED
from swsdist.fusion.fusing import joined
from swsdist.fusion.weights import KNOWN
from swsdist.pipeline.course import Course
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Stage, Table
from swsdist.pipeline.task import Done, Task
from swsdist.score import score_limits
from swsdist.stages.told import Bucket

#: The table of a system's run that its scores are taken from.
TABLES = {"normalised": "normalise:normalised", "q-norm": "normalise:normalised", "final": "decide:scored"}


class Union(Stage):
    """A row a place that any system found, with the scores there are; and what is known of each system's scores by query."""

    name = "union"
    version = 1
    unit = "detections"
    phase = "search"
    tables = {"joined": Table(JOINED), "known": Table(KNOWN, digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task]:
        """A task a bucket that any list may have rows of.

        Raises:
            ConfigError: final scores are wanted, and were fitted on what is fused.
        """
        own = inputs.own(FuseInputs)
        options, buckets = own.options, inputs.config.reduce.buckets
        if options.scores == "final":
            for name, course in own.courses.items():
                demand_independent(name, course)
        lists = dict(zip(own.courses, inputs.made["lists"], strict=True))
        common = {"scores": options.scores, "meet": options.meet, "overlap": options.overlap}
        for bucket in range(buckets):
            slots = slots_of(bucket, buckets)
            near = {name: [part for part in lists[name].parts if part.meets(slots)] for name in sorted(lists)}
            work = sum(part.rows for parts in near.values() for part in parts)
            if not any(near.values()):
                continue
            span = [slots[0], slots[-1]]
            yield inputs.task(
                common,
                span,
                {name: [part.sha256 for part in parts] for name, parts in near.items()},
                label=f"bucket {bucket}",
                work=work,
                payload={
                    **common,
                    "lists": {name: [part.name for part in parts] for name, parts in near.items()},
                    "bucket": bucket,
                    "buckets": buckets,
                    "slots": span,
                },
            )

    def run(self, task: Task, context: Context) -> Done:
        """Join; rows of other buckets' queries are left to them."""
        payload = task.payload
        lists = {name: self._mine(names, payload, context) for name, names in payload["lists"].items()}
        standardise = payload["scores"] == "q-norm"
        table, known = joined(lists, standardise=standardise, meet=payload["meet"], overlap=payload["overlap"])
        slots = tuple(payload["slots"])
        outputs = (
            context.publish(task, "joined", [table], JOINED, slots),
            context.publish(task, "known", [known], KNOWN, slots),
        )
        limits = score_limits(table["score"].to_numpy().astype(np.float64))
        return Done(outputs, Bucket(payload["bucket"], table.num_rows, *limits))

    def _mine(self, names: Sequence[str], payload: Mapping[str, int], context: Context) -> pa.Table:
        tables = [DETECTIONS.empty_table(), *(context.read(name) for name in names)]
        whole = pa.concat_tables(tables)
        bucket, buckets = payload["bucket"], payload["buckets"]
        coded = whole["query_id"].combine_chunks().dictionary_encode()
        mine = [bucket_of(query_id, buckets) == bucket for query_id in coded.dictionary.to_pylist()]
        if all(mine):
            return whole
        return whole.filter(pa.array(np.array(mine, bool)[coded.indices.to_numpy()]))


def demand_independent(name: str, course: Course) -> None:
    """Refuse final scores that a system's calibration was fitted for on the references of its own run.

    Raises:
        ConfigError: they were.
    """
    settings = course.config.calibrate
    if settings.fitted and settings.fit in ("crossfit", "oracle"):
        raise ConfigError(
            f"the final scores of {name} were fitted on the references of its run ({', '.join(settings.fitted)}, "
            f"{settings.fit}), so a fusion of them would be fitted on what it is fitted with",
            where="options.scores: final",
            remedy="set options.scores: normalised, or fit that system on other data (calibrate.fit: FILE)",
        )
