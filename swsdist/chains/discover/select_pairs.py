"""The stage select-pairs: of each segment's pairs the most alike, or of each line of pairs one, by bucket of documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from swsdist.chains.discover.inputs import DiscoverInputs
from swsdist.chains.discover.propose_pairs import PAIRS, by_slot, collection, files_of, in_groups
from swsdist.discovery.search.neighbours import Neighbours, Pairs, joined, lines, most_alike, ordered, unique
from swsdist.pipeline.inputs import Inputs
from swsdist.pipeline.stage import Context, Table
from swsdist.pipeline.task import Task, TaskOutput
from swsdist.stages.buckets import BucketStage
from swsdist.stages.task_results import Bucket


class Selecting(NamedTuple):
    """The payload of a task."""

    segments: tuple[str, ...]
    files: tuple[str, ...]
    hop: int
    neighbours: Neighbours


class SelectPairs(BucketStage[Selecting]):
    """The pairs that are aligned, the lesser segment first."""

    name = "select-pairs"
    version = 2
    unit = "pairs"
    phase = "search"
    takes = {"segments": "segments", "proposed": "proposed"}
    tables = {"selected": Table(PAIRS, key="left", order=("right",), digested=False)}

    def plan(self, inputs: Inputs) -> Iterator[Task[Selecting]]:
        """A task per bucket of documents."""
        chain_inputs, parts = inputs.chain_inputs(DiscoverInputs), inputs.parts("proposed")
        buckets = inputs.config.reduce.buckets_for(0)
        segments, files, rows = files_of(inputs.parts("segments")), files_of(parts), sum(part.rows for part in parts)
        options = chain_inputs.options
        payload = Selecting(segments, files, options.segments.hop, options.neighbours)
        used = options.neighbours.model_dump(mode="json", include={"by", "kept", "width", "window", "points"})
        for bucket in range(buckets if rows else 0):
            key_parts = segments, files, payload.hop, used, bucket, buckets
            yield self.numbered(bucket, buckets, inputs, *key_parts, work=rows / buckets, payload=payload)

    def run(self, task: Task[Selecting], context: Context) -> TaskOutput:
        """Choose."""
        payload = task.payload
        everything = collection(payload.segments, context)
        pairs = unique(pairs_in(payload.files, task.slots, context))
        if payload.neighbours.by == "diagonals":
            chosen = lines(everything.places, pairs, payload.hop, payload.neighbours)
        else:
            chosen = unique(ordered(most_alike(pairs, payload.neighbours.kept)))
        table = by_slot(chosen, everything)
        return TaskOutput((context.publish(task, "selected", in_groups(table), PAIRS),), Bucket(table.num_rows))


def pairs_in(files: tuple[str, ...], slots: range, context: Context) -> Pairs:
    """Pairs of some slots, of all files."""
    tables = [context.in_slots(name, slots) for name in files]
    return joined([Pairs(*(table[column].to_numpy() for column in Pairs._fields)) for table in tables])
